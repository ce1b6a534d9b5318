"""The interface of `store.authorizations`."""

from typing import Protocol

from taproof.core.model import SessionKey
from taproof.core.oidc.model import Authorization, NewAuthorization, NewCode, NewTokens


class AuthorizationStorage(Protocol):
    """Sign-ins through the OpenID provider, and pushed authorization requests."""

    async def create_authorization(self, authorization: NewAuthorization) -> bool:
        """Store a sign-in. Return False if its user code is taken."""

    async def read_authorization(self, authorization_id: str) -> Authorization | None:
        """Return the sign-in with this id."""

    async def read_authorization_by_code(self, code_hash: bytes) -> Authorization | None:
        """Return the sign-in with this authorization code, redeemed or not."""

    async def read_authorization_by_access_token(self, access_token_hash: bytes) -> Authorization | None:
        """Return the sign-in with this access token, expired or not."""

    async def read_authorization_by_user_code(self, user_code: str, now: int) -> Authorization | None:
        """Return the sign-in with this user code, if it has not expired at `now` and no browser is bound to it."""

    async def poll_authorization(
        self, device_code_hash: bytes, now: int, since: int
    ) -> tuple[Authorization, bool] | None:
        """Return the sign-in of a device, and whether the device has polled after `since`. Record the poll at `now`."""

    async def bind_browser(self, authorization_id: str, browser_hash: bytes, now: int) -> bool:
        """Bind a device's sign-in to a browser. Return False if it is bound already, has ended or has expired."""

    async def replace_session(
        self,
        authorization_id: str,
        previous: SessionKey | None,
        session: SessionKey,
        encrypted_session: bytes,
        now: int,
    ) -> bool:
        """Give a sign-in another session.

        Return False if the current one is not `previous`, or if the sign-in is finished, has ended or has expired.
        """

    async def end_authorization(self, authorization_id: str, now: int) -> bool:
        """End a sign-in that is not finished. Return False if it is finished or has ended."""

    async def finish_authorization(
        self, authorization_id: str, session: SessionKey, now: int, given: NewCode | NewTokens
    ) -> bool:
        """Consume a confirmed session and store the code, or the tokens, that it gives, in one transaction.

        Return False if the session is not the sign-in's current one, or is not confirmed. Also return False if the
        sign-in is finished, has ended or has expired, or if its client has lost the grant. Of concurrent calls, only
        one succeeds.
        """

    async def redeem_code(self, code_hash: bytes, tokens: NewTokens, now: int) -> bool:
        """Store the tokens that a code gives. Of concurrent calls, only one succeeds.

        An expired code gives none. Nor does one whose session was reported or erased, or whose client has lost the
        grant.
        """

    async def revoke_tokens(self, authorization_id: str, now: int) -> bool:
        """Revoke the tokens of a sign-in. Return False if it has none, or if they were revoked before."""

    async def purge_authorizations(self, ended_before: int, limit: int) -> int:
        """Erase at most `limit` sign-ins that had expired, with their access tokens, at `ended_before` (ms)."""

    async def create_pushed_request(self, uri_hash: bytes, client_id: str, parameters: str, expires_at: int) -> None:
        """Store an authorization request that a client pushed (RFC 9126)."""

    async def take_pushed_request(self, uri_hash: bytes, client_id: str, now: int) -> str | None:
        """Return and erase the parameters of a client's pushed request. Of concurrent calls, only one gets them."""

    async def purge_pushed_requests(self, now: int, limit: int) -> int:
        """Erase at most `limit` pushed requests that have expired."""
