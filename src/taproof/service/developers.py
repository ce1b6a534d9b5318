"""Developer accounts and their access tokens (contract.md, Identifiers and secrets)."""

import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from taproof.core.accounts import AccessToken, Actor, Developer, Plan
from taproof.core.clock import MINUTE, Clock, iso8601
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    AccessDenied,
    AccessTokenNotFound,
    DeveloperExists,
    DeveloperNotFound,
    InvalidAccessToken,
    InvalidRequest,
    StoreUnavailable,
    TooManyAccessTokens,
)
from taproof.core.identifiers import is_key, key_hash, key_preview, new_id, new_key
from taproof.core.names import name_problem
from taproof.service.audit import audit_entry
from taproof.storage.protocol import Storage

EMAIL_LIMIT: Final = 254
ACCESS_TOKEN_LIMIT: Final = 100
"""Access tokens of one developer that have not expired; who had more before there was a limit keeps them."""
_EMAIL: Final = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_TOUCH_EVERY: Final = MINUTE
"""How exact a token's last-used time is: one write a minute at most, however busy the token is."""


@dataclass(frozen=True, slots=True)
class CreatedAccessToken:
    """A new access token; `plaintext` is never to be had again."""

    token: AccessToken
    plaintext: str


class Developers:
    """Adds developers, gives out their access tokens and recognises them."""

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    async def create_developer(self, email: str, plan: Plan, *, is_owner: bool | None = None) -> Developer:
        """Add a developer account, as the operator does on the command line.

        Args:
            email: an address that no other developer has.
            plan: the account's plan.
            is_owner: whether it may invite others; None: whether it is the first one.

        Raises:
            InvalidRequest: not an e-mail address.
            DeveloperExists: the address is taken.
        """
        email = checked_email(email)
        if is_owner is None:
            is_owner = not await self._storage.list_developers()
        now = self._clock()
        developer = Developer(new_id("dev", self._entropy), email, plan, now, is_owner)
        entry = audit_entry(
            Actor(developer, "command_line"),
            "developer.created",
            now,
            self._entropy,
            subject=developer.id,
            details={"email": email, "plan": plan, "is_owner": is_owner},
        )
        if not await self._storage.create_developer(developer, entry=entry):
            raise DeveloperExists
        return developer

    async def read_developer(self, email: str) -> Developer:
        """Return the developer with this e-mail address.

        Raises:
            DeveloperNotFound: there is none.
        """
        email = email.strip()
        developer = await self._storage.read_developer(email) if _EMAIL.fullmatch(email) else None
        if developer is None:
            raise DeveloperNotFound
        return developer

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        """Return the developer whom this messenger account signs in; None when it signs in nobody."""
        return await self._storage.read_developer_by_messenger_id(messenger_id)

    async def list_developers(self) -> list[Developer]:
        """Return all developers, oldest first."""
        return await self._storage.list_developers()

    async def create_access_token(
        self,
        actor: Actor,
        name: str,
        *,
        expires_at: int | None = None,
        still_stands: Callable[[], Awaitable[bool]] | None = None,
    ) -> CreatedAccessToken:
        """Make an access token.

        Args:
            actor: who makes it.
            name: what it is called.
            expires_at: in ms; None: it stays valid until it is revoked.
            still_stands: asked once the token is stored, of the sign-in that it is made for; see `SealedSignIn`.

        Raises:
            AccessDenied: the sign-in does not stand any more, and the token is revoked.
            InvalidRequest: an impossible name, or an expiry that is not in the future.
            TooManyAccessTokens: the developer has `ACCESS_TOKEN_LIMIT` that have not expired.
        """
        name = name.strip()
        if (problem := name_problem(name)) is not None:
            raise InvalidRequest(f"name {problem}.")
        now = self._clock()
        if expires_at is not None and expires_at <= now:
            raise InvalidRequest("expires_at must be in the future.")
        plaintext = new_key("tap", self._entropy)
        preview = key_preview(plaintext)
        token = AccessToken(new_id("tok", self._entropy), actor.developer.id, name, preview, now, expires_at=expires_at)
        until = None if expires_at is None else iso8601(expires_at)
        details = {"name": name, "preview": preview, "expires_at": until}
        entry = audit_entry(actor, "access_token.created", now, self._entropy, subject=token.id, details=details)
        if not await self._storage.create_access_token(
            token, key_hash(plaintext), limit=ACCESS_TOKEN_LIMIT, entry=entry
        ):
            raise TooManyAccessTokens
        if still_stands is not None and not await still_stands():
            with contextlib.suppress(AccessTokenNotFound):  # The report was first.
                await self.delete_access_token(actor, token.id)
            raise AccessDenied
        return CreatedAccessToken(token, plaintext)

    async def authenticate(self, bearer: str | None) -> tuple[AccessToken, Developer]:
        """Return the valid access token that this is, and whose it is.

        Raises:
            InvalidAccessToken: missing, malformed, unknown, revoked or expired.
        """
        if bearer is None or not is_key(bearer, "tap"):
            raise InvalidAccessToken
        found = await self._storage.read_access_token(key_hash(bearer))
        if found is None:
            raise InvalidAccessToken
        token, developer = found
        now = self._clock()
        if token.expires_at is not None and now >= token.expires_at:
            raise InvalidAccessToken("This access token has expired. Make a new one.")
        if token.last_used_at is None or now - token.last_used_at >= _TOUCH_EVERY:
            # A note for the developer's eyes: a store that cannot be written just now must not keep reads from working.
            with contextlib.suppress(StoreUnavailable):
                await self._storage.touch_access_token(token.id, now)
        return token, developer

    async def list_access_tokens(self, developer_id: str) -> list[AccessToken]:
        """Return a developer's access tokens, newest first."""
        return await self._storage.list_access_tokens(developer_id)

    async def delete_access_token(self, actor: Actor, token_id: str) -> None:
        """Revoke an access token at once and for good.

        Raises:
            AccessTokenNotFound: this developer has no such token.
        """
        developer_id = actor.developer.id
        tokens = {token.id: token for token in await self._storage.list_access_tokens(developer_id)}
        if token_id not in tokens:
            raise AccessTokenNotFound
        token = tokens[token_id]
        details = {"name": token.name, "preview": token.preview}
        entry = audit_entry(
            actor, "access_token.revoked", self._clock(), self._entropy, subject=token_id, details=details
        )
        if not await self._storage.delete_access_token(developer_id, token_id, entry=entry):
            raise AccessTokenNotFound


def checked_email(email: str) -> str:
    """Return an e-mail address as it is stored, without the white space around it.

    Raises:
        InvalidRequest: not an e-mail address.
    """
    email = email.strip()
    if len(email) > EMAIL_LIMIT or _EMAIL.fullmatch(email) is None:
        raise InvalidRequest("email must be an e-mail address, such as ada@example.com.")
    return email
