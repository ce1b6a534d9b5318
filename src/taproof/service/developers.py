"""Developer accounts and their access tokens (contract.md, Identifiers and secrets)."""

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from taproof.contract.access_token import ACCESS_TOKEN_ID, AccessScope
from taproof.contract.account import Plan
from taproof.contract.audit import Via
from taproof.core.accounts import AccessToken, Actor, AuditEntry, Developer, EndedToken, RemovedDeveloper
from taproof.core.clock import MINUTE, Clock, iso8601
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    AccessTokenNotFound,
    DeveloperExists,
    DeveloperNotFound,
    InvalidAccessToken,
    InvalidRequest,
    ProjectsNeedOwner,
    StoreUnavailable,
    TooManyAccessTokens,
)
from taproof.core.identifiers import is_key, key_hash, key_preview, new_id, new_key
from taproof.core.names import name_problem
from taproof.core.sessions import DeveloperSignIn
from taproof.service.audit import audit_entry
from taproof.storage.protocol import Storage

EMAIL_LIMIT: Final = 254
ACCESS_TOKEN_LIMIT: Final = 100
"""The maximum number of unexpired access tokens per developer. Excess tokens created before this limit existed stay
valid."""
_EMAIL: Final = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_TOKEN_ID: Final = re.compile(ACCESS_TOKEN_ID.pattern)
_TOUCH_EVERY: Final = MINUTE
"""The precision (ms) of a token's last-used time: at most one write per minute, however often the token is used."""


@dataclass(frozen=True, slots=True)
class CreatedAccessToken:
    """A new access token. `plaintext` cannot be retrieved later."""

    token: AccessToken
    plaintext: str


class Developers:
    """Adds developers, issues their access tokens, at most `token_limit` to each, and authenticates them."""

    def __init__(
        self, storage: Storage, clock: Clock, entropy: Entropy, *, token_limit: int = ACCESS_TOKEN_LIMIT
    ) -> None:
        self._token_limit = token_limit
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    async def create_developer(
        self, email: str, plan: Plan, *, is_owner: bool | None = None, via: Via = "command_line"
    ) -> Developer:
        """Add a developer account on behalf of the operator. Without `is_owner`, only the first developer is an owner.

        Raises:
            InvalidRequest: `email` is not an e-mail address.
            DeveloperExists: the address is taken.
        """
        email = checked_email(email)
        if is_owner is None:
            is_owner = not await self._storage.developers.list_developers()
        now = self._clock()
        developer = Developer(new_id("dev", self._entropy), email, plan, now, is_owner)
        actor, details = Actor(developer, via), {"email": email, "plan": plan, "is_owner": is_owner}
        entry = audit_entry(actor, "developer.created", now, self._entropy, subject=developer.id, details=details)
        if not await self._storage.developers.create_developer(developer, entry=entry):
            raise DeveloperExists
        return developer

    async def read_developer(self, email: str) -> Developer:
        """Return the developer with this e-mail address, or raise DeveloperNotFound."""
        email = email.strip()
        developer = await self._storage.developers.read_developer(email) if _EMAIL.fullmatch(email) else None
        if developer is None:
            raise DeveloperNotFound
        return developer

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        """Return the developer who signs in with this messenger account; None if there is none."""
        return await self._storage.developers.read_developer_by_messenger_id(messenger_id)

    async def list_developers(self) -> list[Developer]:
        """Return all developers, oldest first."""
        return await self._storage.developers.list_developers()

    async def remove_developer(
        self, email: str, *, transfer_to: str | None = None, delete_projects: bool = False
    ) -> RemovedDeveloper:
        """Remove a developer on behalf of the operator: erase the account, and end its credentials and memberships.

        The projects of which the developer is the only owner pass to the developer with the address `transfer_to`, or
        are deleted with `delete_projects`. What the developer did stays in the audit logs.

        Raises:
            InvalidRequest: both are given, or the developer would be their own successor.
            DeveloperNotFound: one of the two developers does not exist.
            ProjectsNeedOwner: there are such projects, and neither is given.
        """
        developer = await self.read_developer(email)
        successor = None if transfer_to is None else await self.read_developer(transfer_to)
        if successor is not None and delete_projects:
            raise InvalidRequest("Use either --transfer-to or --delete-projects.")
        if successor is not None and successor.id == developer.id:
            raise InvalidRequest("The projects must pass to another developer than the one who is removed.")
        now = self._clock()
        actor = Actor(developer, "command_line")

        def describe(removed: RemovedDeveloper) -> list[AuditEntry]:
            entry = partial(audit_entry, actor, now=now, entropy=self._entropy)
            entries = [entry(action="developer.removed", subject=developer.id, details={"email": developer.email})]
            for project_id, name in removed.deleted:
                entries.append(entry(action="project.deleted", subject=project_id, details={"name": name}))
            for project_id, _ in (*removed.transferred, *removed.left):
                details = {"email": developer.email}
                entries.append(
                    entry(action="member.removed", subject=developer.id, details=details, project_id=project_id)
                )
            if successor is not None:
                joined = {"role": "owner", "email": successor.email}
                entry = partial(audit_entry, Actor(successor, "command_line"), now=now, entropy=self._entropy)
                entries += [
                    entry(action="member.joined", subject=successor.id, details=joined, project_id=project_id)
                    for project_id, _ in removed.transferred
                ]
            return entries

        try:
            removed = await self._storage.developers.remove_developer(
                developer.id,
                now,
                successor_id=None if successor is None else successor.id,
                delete_projects=delete_projects,
                describe=describe,
            )
        except ProjectsNeedOwner as error:
            raise ProjectsNeedOwner(developer.email, error.names) from None
        if removed is None:
            raise DeveloperNotFound
        return removed

    async def create_access_token(
        self,
        actor: Actor,
        name: str,
        *,
        expires_at: int | None = None,
        scopes: Iterable[AccessScope] | None = None,
        sign_in: DeveloperSignIn | None = None,
    ) -> CreatedAccessToken:
        """Create an access token. It never has more scopes than the acting credential and never outlives it.

        Without `scopes` or `expires_at` (ms), it has those of the acting credential. `sign_in` is the messenger sign-in
        with which `taproof login` creates the token. A call that raises creates no token.

        Raises:
            InsufficientScope: the acting credential lacks the scope `tokens`.
            InvalidAccessToken, SignedOut: the acting credential has ended.
            AccessDenied: the sign-in was reported.
            InvalidRequest: the name is invalid, the expiry is not in the future, or the rights exceed those of `actor`.
            TooManyAccessTokens: the developer already has `ACCESS_TOKEN_LIMIT` unexpired tokens.
        """
        name = name.strip()
        if (problem := name_problem(name)) is not None:
            raise InvalidRequest(f"name {problem}.")
        now = self._clock()
        if expires_at is not None and expires_at <= now:
            raise InvalidRequest("expires_at must be in the future.")
        grant = actor.grant.derive(scopes, expires_at)
        plaintext = new_key("tap", self._entropy)
        preview = key_preview(plaintext)
        token = AccessToken(
            new_id("tok", self._entropy),
            actor.developer.id,
            name,
            preview,
            now,
            expires_at=grant.expires_at,
            scopes=grant.scopes,
            parent_id=grant.access_token_id,
            sign_in=grant.sign_in if sign_in is None else sign_in.id,
        )
        until = None if token.expires_at is None else iso8601(token.expires_at)
        details = {"name": name, "preview": preview, "expires_at": until, "scopes": token.scopes}
        entry = audit_entry(actor, "access_token.created", now, self._entropy, subject=token.id, details=details)
        if not await self._storage.credentials.create_access_token(
            token, key_hash(plaintext), limit=self._token_limit, sign_in=sign_in, entry=entry
        ):
            raise TooManyAccessTokens
        return CreatedAccessToken(token, plaintext)

    async def authenticate(self, bearer: str | None) -> tuple[AccessToken, Developer]:
        """Return the access token with this plaintext, and its developer.

        Raises:
            InvalidAccessToken: the token is missing, malformed, unknown, revoked or expired.
        """
        if bearer is None or not is_key(bearer, "tap"):
            raise InvalidAccessToken
        found = await self._storage.credentials.read_access_token(key_hash(bearer))
        if found is None:
            raise InvalidAccessToken
        token, developer = found
        now = self._clock()
        if token.expires_at is not None and now >= token.expires_at:
            raise InvalidAccessToken("This access token has expired. Create a new one.")
        if token.last_used_at is None or now - token.last_used_at >= _TOUCH_EVERY:
            # The last-used time is only informative. Reads must work even while the store cannot be written.
            with contextlib.suppress(StoreUnavailable):
                await self._storage.credentials.touch_access_token(token.id, now)
        return token, developer

    async def list_access_tokens(self, developer_id: str) -> list[AccessToken]:
        """Return a developer's access tokens, newest first."""
        return await self._storage.credentials.list_access_tokens(developer_id)

    async def delete_access_token(self, actor: Actor, token_id: str, *, keep_created: bool = False) -> int:
        """Revoke an access token and the tokens created with it; return the number of revoked tokens.

        With `keep_created`, the tokens created with it are kept. Console sessions opened with it always end.

        Raises:
            AccessTokenNotFound: this developer has no such token.
            InvalidRequest: the acting credential was created with that token, so `keep_created` is not possible.
            InsufficientScope: the acting credential lacks the scope `tokens`, and the token is not its own.
            InvalidAccessToken, SignedOut: the acting credential has ended.
        """
        if _TOKEN_ID.fullmatch(token_id) is None:
            raise AccessTokenNotFound
        if token_id not in {actor.via_id, actor.grant.access_token_id}:
            actor.grant.require("tokens")
        if keep_created and token_id in await self._ancestors(actor):
            raise InvalidRequest(
                "created cannot be keep: the credential of this request was created with that token, and ends with it."
            )
        entry = partial(audit_entry, actor, "access_token.revoked", self._clock(), self._entropy)

        def describe(ended: Sequence[EndedToken]) -> list[AuditEntry]:
            entries = []
            for each in ended:
                details = {"name": each.name, "preview": each.preview}
                with_parent = details if each.id == token_id else {**details, "created_with": token_id}
                entries.append(entry(subject=each.id, details=with_parent))
            return entries

        ended = await self._storage.credentials.delete_access_token(
            actor.developer.id, token_id, keep_created=keep_created, describe=describe
        )
        if not ended:
            raise AccessTokenNotFound
        return len(ended)

    async def _ancestors(self, actor: Actor) -> set[str]:
        """Return the ids of the access tokens from which the acting token derives, directly or indirectly."""
        own = actor.grant.access_token_id
        if own is None:
            return set()
        tokens = await self._storage.credentials.list_access_tokens(actor.developer.id)
        parents = {each.id: each.parent_id for each in tokens}
        found: set[str] = set()
        above = parents.get(own)
        while above is not None and above not in found:
            found.add(above)
            above = parents.get(above)
        return found


def checked_email(email: str) -> str:
    """Return an e-mail address without white space around it. Raise InvalidRequest if it is not an address."""
    email = email.strip()
    if len(email) > EMAIL_LIMIT or _EMAIL.fullmatch(email) is None:
        raise InvalidRequest("email must be an e-mail address, such as ada@example.com.")
    return email
