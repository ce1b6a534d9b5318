"""Developer accounts and their access tokens (contract.md, Identifiers and secrets)."""

import contextlib
import re
from dataclasses import dataclass
from typing import Final

from taproof.core.clock import MINUTE, Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    AccessTokenNotFound,
    DeveloperExists,
    DeveloperNotFound,
    InvalidAccessToken,
    InvalidRequest,
    StoreUnavailable,
)
from taproof.core.identifiers import is_key, key_hash, key_preview, new_id, new_key
from taproof.core.model import AccessToken, Developer, Plan
from taproof.core.names import name_problem
from taproof.storage.protocol import Storage

EMAIL_LIMIT: Final = 254
_EMAIL: Final = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_TOKEN_ID: Final = re.compile(r"tok_[A-Za-z0-9]{1,40}")
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

    async def create_developer(self, email: str, plan: Plan) -> Developer:
        """Add a developer account.

        Raises:
            InvalidRequest: not an e-mail address.
            DeveloperExists: the address is taken.
        """
        email = email.strip()
        if len(email) > EMAIL_LIMIT or _EMAIL.fullmatch(email) is None:
            raise InvalidRequest("email must be an e-mail address, such as ada@example.com.")
        developer = Developer(new_id("dev", self._entropy), email, plan, self._clock())
        if not await self._storage.create_developer(developer):
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

    async def list_developers(self) -> list[Developer]:
        """Return all developers, oldest first."""
        return await self._storage.list_developers()

    async def create_access_token(
        self, developer_id: str, name: str, *, expires_at: int | None = None
    ) -> CreatedAccessToken:
        """Make an access token; `expires_at` in ms, None for one that stays valid until it is revoked.

        Raises:
            InvalidRequest: an impossible name, or an expiry that is not in the future.
        """
        name = name.strip()
        if (problem := name_problem(name)) is not None:
            raise InvalidRequest(f"name {problem}.")
        now = self._clock()
        if expires_at is not None and expires_at <= now:
            raise InvalidRequest("expires_at must be in the future.")
        plaintext = new_key("tap", self._entropy)
        token = AccessToken(
            new_id("tok", self._entropy), developer_id, name, key_preview(plaintext), now, expires_at=expires_at
        )
        await self._storage.create_access_token(token, key_hash(plaintext))
        return CreatedAccessToken(token, plaintext)

    async def authenticate(self, bearer: str | None) -> Developer:
        """Return the developer whose valid access token this is.

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
        return developer

    async def list_access_tokens(self, developer_id: str) -> list[AccessToken]:
        """Return a developer's access tokens, newest first."""
        return await self._storage.list_access_tokens(developer_id)

    async def delete_access_token(self, developer_id: str, token_id: str) -> None:
        """Revoke an access token at once and for good.

        Raises:
            AccessTokenNotFound: this developer has no such token.
        """
        if not (_TOKEN_ID.fullmatch(token_id) and await self._storage.delete_access_token(developer_id, token_id)):
            raise AccessTokenNotFound
