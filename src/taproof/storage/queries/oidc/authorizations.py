"""Sign-ins through the OpenID provider."""

from typing import Any, Final

from taproof.core.oidc.grants import NewGrant
from taproof.core.oidc.model import Authorization, NewAuthorization, NewCode, NewTokens
from taproof.core.sessions import SessionKey
from taproof.storage.queries.counts import COUNT
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.oidc.grants import BY_ID, create_grant, end_grants, hold_user
from taproof.storage.queries.oidc.groups import admits
from taproof.storage.queries.sessions import CONSUME_SESSION
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import Row, Values

_COLUMNS: Final = """
  id, client_id, project_id, request, created_at, expires_at, browser_hash, session_day, session_hash,
  encrypted_session, user_code, expected_user, ended_at, code_expires_at, redeemed_at, access_expires_at, revoked_at"""
CREATE_AUTHORIZATION: Final = """
INSERT INTO oidc_authorizations (id, client_id, project_id, request, created_at, expires_at, browser_hash, session_day,
  session_hash, encrypted_session, device_code_hash, user_code, expected_user, kept_until)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $6)
ON CONFLICT (user_code) DO NOTHING RETURNING id"""
_READ: Final = f"SELECT {_COLUMNS} FROM oidc_authorizations"
READ_AUTHORIZATION: Final = f"{_READ} WHERE id = $1"
READ_AUTHORIZATION_BY_CODE: Final = f"{_READ} WHERE code_hash = $1"
# A new client secret and a block end access tokens without a write for each of them.
READ_AUTHORIZATION_BY_ACCESS_TOKEN: Final = f"""
{_READ} WHERE access_token_hash = $1
  AND client_version = (SELECT c.version FROM oidc_clients c WHERE c.id = oidc_authorizations.client_id)
  AND NOT EXISTS (SELECT 1 FROM sessions s JOIN blocks b ON b.messenger_id = s.messenger_id
    WHERE s.day = oidc_authorizations.session_day AND s.token_hash = oidc_authorizations.session_hash
      AND b.project_id = oidc_authorizations.project_id)"""
READ_AUTHORIZATION_BY_USER_CODE: Final = f"""
{_READ} WHERE user_code = $1 AND expires_at > $2 AND browser_hash IS NULL AND ended_at IS NULL"""
LOCK_AUTHORIZATION_BY_DEVICE_CODE: Final = (
    f"SELECT polled_at, {_COLUMNS} FROM oidc_authorizations WHERE device_code_hash = $1"
)
RECORD_POLL: Final = "UPDATE oidc_authorizations SET polled_at = $1 WHERE device_code_hash = $2"
_OPEN: Final = "ended_at IS NULL AND code_expires_at IS NULL AND redeemed_at IS NULL"
BIND_BROWSER: Final = f"""
UPDATE oidc_authorizations SET browser_hash = $1
WHERE id = $2 AND browser_hash IS NULL AND expires_at > $3 AND {_OPEN} RETURNING id"""
# Without a previous session, `$5` is empty: no hash is.
REPLACE_SESSION: Final = f"""
UPDATE oidc_authorizations SET session_day = $1, session_hash = $2, encrypted_session = $3
WHERE id = $4 AND (session_hash IS NULL OR session_hash = $5) AND expires_at > $6 AND {_OPEN} RETURNING id"""
END_AUTHORIZATION: Final = f"UPDATE oidc_authorizations SET ended_at = $1 WHERE id = $2 AND {_OPEN} RETURNING id"
# Removing a grant type from a client ends the sign-ins that use it, without a write for each of them.
_HAS_GRANT_TYPE: Final = """EXISTS (SELECT 1 FROM oidc_clients c WHERE c.id = oidc_authorizations.client_id AND CASE
    WHEN oidc_authorizations.user_code IS NULL THEN c.grant_types LIKE '%authorization_code%'
    ELSE c.devices_since <= oidc_authorizations.created_at END)"""
_ADMITTED: Final = admits(
    "oidc_authorizations.client_id",
    """(SELECT m.messenger_id FROM sessions m
    WHERE m.day = oidc_authorizations.session_day AND m.token_hash = oidc_authorizations.session_hash)""",
)
# After a report or an erasure, a code gives nothing.
REDEEM_CODE: Final = f"""
UPDATE oidc_authorizations SET redeemed_at = $1, access_token_hash = $2, access_expires_at = $3, kept_until = $3,
  client_version = $4
WHERE code_hash = $5 AND redeemed_at IS NULL AND code_expires_at > $1
  AND EXISTS (SELECT 1 FROM sessions s WHERE s.day = oidc_authorizations.session_day
    AND s.token_hash = oidc_authorizations.session_hash AND s.reported_at IS NULL)
  AND {_HAS_GRANT_TYPE} AND {_ADMITTED}
RETURNING id"""
REVOKE_TOKENS: Final = """
UPDATE oidc_authorizations SET revoked_at = $1 WHERE id = $2 AND redeemed_at IS NOT NULL AND revoked_at IS NULL
RETURNING id"""
END_ACCESS_TOKEN: Final = """
UPDATE oidc_authorizations SET access_token_hash = NULL
WHERE access_token_hash BETWEEN $1 AND $2 AND client_id = $3 RETURNING id"""
CREATE_PUSHED_REQUEST: Final = """
INSERT INTO oidc_pushed_requests (uri_hash, client_id, parameters, expires_at) VALUES ($1, $2, $3, $4)"""
TAKE_PUSHED_REQUEST: Final = """
DELETE FROM oidc_pushed_requests WHERE uri_hash = $1 AND client_id = $2 AND expires_at > $3 RETURNING parameters"""
PURGE_AUTHORIZATIONS: Final = Purge("oidc_authorizations", "id", "kept_until <= $1")
PURGE_PUSHED_REQUESTS: Final = Purge("oidc_pushed_requests", "uri_hash", "expires_at <= $1")
FINISHED: Final = f"""code_hash = $1, code_expires_at = $2, access_token_hash = $3, access_expires_at = $4,
  client_version = $5, redeemed_at = $6, kept_until = $7, expected_user = NULL
WHERE id = $8 AND session_hash = $9 AND expires_at > $10 AND {_OPEN} AND {_HAS_GRANT_TYPE} AND {_ADMITTED}"""
"""The changes that finish a sign-in, with the values of `finish_values`."""
FINISH_AUTHORIZATION: Final = f"""
UPDATE oidc_authorizations SET {FINISHED}
  AND EXISTS (SELECT 1 FROM sessions s JOIN projects p ON p.id = s.project_id
    WHERE s.day = $11 AND s.token_hash = $9 AND s.status = 'confirmed'
      AND (oidc_authorizations.expected_user IS NULL OR oidc_authorizations.expected_user = s.messenger_id))
RETURNING id"""


def finish_values(authorization_id: str, session: SessionKey, now: int, given: NewCode | NewTokens) -> Values:
    """Return the values of `FINISHED`."""
    found = (authorization_id, session.token_hash, now)
    if isinstance(given, NewCode):
        return (*given, None, None, None, None, given.code_expires_at, *found)
    return (None, None, *given, now, given.access_expires_at, *found)


class AuthorizationQueries(Queries):
    """Sign-ins through the OpenID provider, and pushed authorization requests."""

    async def create_authorization(self, authorization: NewAuthorization) -> bool:
        """Store a sign-in. Return False if its user code is taken."""
        new = authorization
        named = (new.id, new.client_id, new.project_id, new.request, new.created_at, new.expires_at, new.browser_hash)
        values = (*named, *(new.session or (None, None)), new.encrypted_session, new.device_code_hash)
        values = (*values, new.user_code, new.expected_user)
        return bool(await self._database.add(CREATE_AUTHORIZATION, *values))

    async def read_authorization(self, authorization_id: str) -> Authorization | None:
        """Return the sign-in with this id."""
        return await self._find(READ_AUTHORIZATION, authorization_id)

    async def read_authorization_by_code(self, code_hash: bytes) -> Authorization | None:
        """Return the sign-in with this authorization code, redeemed or not."""
        return await self._find(READ_AUTHORIZATION_BY_CODE, code_hash)

    async def read_authorization_by_access_token(self, access_token_hash: bytes) -> Authorization | None:
        """Return the sign-in with this access token, expired or not.

        Return None if the client has got another secret since, or if the user has blocked the project.
        """
        return await self._find(READ_AUTHORIZATION_BY_ACCESS_TOKEN, access_token_hash)

    async def read_authorization_by_user_code(self, user_code: str, now: int) -> Authorization | None:
        """Return the sign-in with this user code, if it has not expired at `now` and no browser is bound to it."""
        return await self._find(READ_AUTHORIZATION_BY_USER_CODE, user_code, now)

    async def _find(self, statement: str, *values: Any) -> Authorization | None:
        found = await self._database.read(statement, *values)
        return _authorization_from(found[0]) if found else None

    async def poll_authorization(
        self, device_code_hash: bytes, now: int, since: int
    ) -> tuple[Authorization, bool] | None:
        """Return the sign-in of a device, and whether the device has polled after `since`. Record the poll at `now`."""

        async def poll(transaction: Transaction) -> tuple[Authorization, bool] | None:
            found = await transaction.lock(LOCK_AUTHORIZATION_BY_DEVICE_CODE, device_code_hash)
            if not found:
                return None
            polled_at, *row = found[0]
            await transaction.fetch(RECORD_POLL, now, device_code_hash)
            return _authorization_from(row), polled_at is not None and polled_at > since

        return await self._database.in_transaction(poll)

    async def bind_browser(self, authorization_id: str, browser_hash: bytes, now: int) -> bool:
        """Bind a device's sign-in to a browser. Return False if it is bound already, has ended or has expired."""
        return bool(await self._database.change(BIND_BROWSER, browser_hash, authorization_id, now))

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
        before = b"" if previous is None else previous.token_hash
        values = (*session, encrypted_session, authorization_id, before, now)
        return bool(await self._database.change(REPLACE_SESSION, *values))

    async def end_authorization(self, authorization_id: str, now: int) -> bool:
        """End a sign-in that is not finished. Return False if it is finished or has ended."""
        return bool(await self._database.change(END_AUTHORIZATION, now, authorization_id))

    async def finish_authorization(
        self,
        authorization_id: str,
        session: SessionKey,
        now: int,
        given: NewCode | NewTokens,
        grant: NewGrant | None = None,
    ) -> bool:
        """Consume a confirmed session and store the code, or the tokens and the grant, that it gives, in a transaction.

        Return False if the session is not the sign-in's current one, is not confirmed, or was confirmed by another
        account than the expected one. Also return False if the sign-in is finished, has ended or has expired, if its
        client has lost the grant type, or if it does not admit the user. With `grant`, also return False if the user
        has blocked the project. Of concurrent calls, only one succeeds.
        """
        values = (*finish_values(authorization_id, session, now, given), session.day)

        async def finish(transaction: Transaction) -> bool:
            if grant is not None and not await hold_user(transaction, grant):
                return False
            if not await self._finish(transaction, values, session, now):
                return False
            if grant is not None:
                await create_grant(transaction, grant)
            return True

        return await self._database.in_transaction(finish)

    async def _finish(self, transaction: Transaction, values: Values, session: SessionKey, now: int) -> bool:
        if not await transaction.fetch(FINISH_AUTHORIZATION, *values):
            return False
        ((project_id, *_),) = await transaction.fetch(CONSUME_SESSION, now, *session)
        await transaction.fetch(COUNT, project_id, session.day, 0, 0, 0, 1, 0)
        return True

    async def redeem_code(self, code_hash: bytes, tokens: NewTokens, now: int, grant: NewGrant | None = None) -> bool:
        """Store the tokens, and the grant, that a code gives. Of concurrent calls, only one succeeds.

        An expired code gives none. Nor does one whose session was reported or erased, or whose client has lost the
        grant type or does not admit the user. A code gives no grant if its user has blocked the project, and then no
        tokens either.
        """
        values = (now, *tokens, code_hash)
        if grant is None:
            return bool(await self._database.change(REDEEM_CODE, *values))

        async def redeem(transaction: Transaction) -> bool:
            if not await hold_user(transaction, grant) or not await transaction.fetch(REDEEM_CODE, *values):
                return False
            await create_grant(transaction, grant)
            return True

        return await self._database.in_transaction(redeem)

    async def revoke_tokens(self, authorization_id: str, now: int) -> bool:
        """Revoke the tokens of a sign-in, whose code was used again, and end its grant.

        Return False if it has no tokens, or if they were revoked before.
        """

        async def revoke(transaction: Transaction) -> bool:
            if not await transaction.fetch(REVOKE_TOKENS, now, authorization_id):
                return False
            await end_grants(transaction, BY_ID, (authorization_id,), now, "reused")
            return True

        return await self._database.in_transaction(revoke)

    async def end_access_token(self, client_id: str, lowest: bytes, highest: bytes) -> bool:
        """Forget a client's access token whose hash is in this range, which is too small for a second one.

        Return False if there is none.
        """
        return bool(await self._database.change(END_ACCESS_TOKEN, lowest, highest, client_id))

    async def purge_authorizations(self, ended_before: int, limit: int) -> int:
        """Erase at most `limit` sign-ins that expired, with their access tokens, at or before `ended_before` (ms)."""
        return await self._database.purge(PURGE_AUTHORIZATIONS, ended_before, limit)

    async def create_pushed_request(self, uri_hash: bytes, client_id: str, parameters: str, expires_at: int) -> None:
        """Store an authorization request that a client pushed (RFC 9126)."""
        await self._database.add(CREATE_PUSHED_REQUEST, uri_hash, client_id, parameters, expires_at)

    async def take_pushed_request(self, uri_hash: bytes, client_id: str, now: int) -> str | None:
        """Return and erase the parameters of a client's pushed request. Of concurrent calls, only one gets them."""
        found = await self._database.change(TAKE_PUSHED_REQUEST, uri_hash, client_id, now)
        return found[0][0] if found else None

    async def purge_pushed_requests(self, now: int, limit: int) -> int:
        """Erase at most `limit` pushed requests that have expired."""
        return await self._database.purge(PURGE_PUSHED_REQUESTS, now, limit)


def _authorization_from(row: Row) -> Authorization:
    """Return the sign-in of a row of `_COLUMNS`."""
    *named, day, token_hash = row[:9]
    session = None if token_hash is None else SessionKey(day, token_hash)
    return Authorization(*[*named, session, *row[9:]])
