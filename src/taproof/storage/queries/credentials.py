"""Developers' credentials: access tokens and console sessions."""

from collections.abc import Callable, Sequence
from typing import Final

from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, Developer, EndedToken
from taproof.core.sessions import DeveloperSignIn
from taproof.storage.queries.database import NO_LIMIT, Purge, Queries
from taproof.storage.queries.rights import FIND_DEVELOPER, require_sign_in
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import (
    console_session_from,
    console_session_values,
    session_and_developer_from,
    token_and_developer_from,
    token_from,
    token_values,
)

DEVELOPER_COLUMNS: Final = "d.id, d.email, d.plan, d.created_at, d.is_owner, d.messenger_id, d.messenger_name"
CREATE_ACCESS_TOKEN: Final = """
INSERT INTO access_tokens (id, developer_id, name, preview, token_hash, created_at, expires_at, scopes, parent_id,
  sign_in)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 WHERE (
  SELECT COUNT(*) FROM access_tokens WHERE developer_id = $2 AND (expires_at IS NULL OR expires_at > $6)) < $11
RETURNING id"""
ERASE_EXPIRED_TOKENS: Final = """
DELETE FROM access_tokens WHERE developer_id = $1 AND expires_at <= $2 AND id NOT IN (
  SELECT id FROM access_tokens WHERE developer_id = $1 AND expires_at <= $2
  ORDER BY expires_at DESC, id DESC LIMIT $3)"""
_TOKEN: Final = """t.id, t.developer_id, t.name, t.preview, t.created_at, t.last_used_at, t.expires_at, t.scopes,
  t.parent_id, t.sign_in"""
READ_ACCESS_TOKEN: Final = f"""
SELECT {_TOKEN}, {DEVELOPER_COLUMNS}
FROM access_tokens t JOIN developers d ON d.id = t.developer_id WHERE t.token_hash = $1"""
TOUCH_ACCESS_TOKEN: Final = """
UPDATE access_tokens SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)"""
LIST_ACCESS_TOKENS: Final = f"""
SELECT {_TOKEN} FROM access_tokens t WHERE t.developer_id = $1 ORDER BY t.created_at DESC, t.id DESC"""
READ_ENDED_TOKEN: Final = (
    "SELECT id, developer_id, name, preview FROM access_tokens WHERE developer_id = $1 AND id = $2"
)
DELETE_ACCESS_TOKEN: Final = "DELETE FROM access_tokens WHERE developer_id = $1 AND id = $2"
FIND_ACCESS_TOKENS_CREATED: Final = """
WITH RECURSIVE created (id) AS (
  SELECT t.id FROM access_tokens t WHERE t.developer_id = $1 AND t.parent_id = $2
  UNION SELECT t.id FROM created c JOIN access_tokens t ON t.parent_id = c.id AND t.developer_id = $1
)
SELECT id, developer_id, name, preview FROM access_tokens WHERE id IN (SELECT id FROM created)
ORDER BY created_at, id"""
"""Finds the tokens that a token created, directly or indirectly."""
ADOPT_ACCESS_TOKENS: Final = """
UPDATE access_tokens SET parent_id = (SELECT p.parent_id FROM access_tokens p WHERE p.id = $1)
WHERE parent_id = $1 AND developer_id = $2"""
"""Sets the parent of the tokens that a token created to that token's own parent."""
DELETE_ACCESS_TOKENS_OF_SIGN_IN: Final = """
DELETE FROM access_tokens WHERE developer_id = $1 AND sign_in >= substr($2, 1, 12)
RETURNING id, developer_id, name, preview"""
"""Includes later sign-ins: the first 12 characters of a session id are its prefix and the time of creation."""
DELETE_ACCESS_TOKENS: Final = """
DELETE FROM access_tokens WHERE developer_id = $1 RETURNING id, developer_id, name, preview"""

# ---- console sessions

CREATE_CONSOLE_SESSION: Final = """
INSERT INTO console_sessions (id, token_hash, developer_id, created_at, last_seen_at, access_token_id, address,
  user_agent, messenger_id, scopes, expires_at, sign_in)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 WHERE
  CASE WHEN CAST($6 AS TEXT) IS NULL
    THEN EXISTS (SELECT 1 FROM developers d WHERE d.id = $3 AND d.messenger_id IS NOT DISTINCT FROM $9)
    ELSE EXISTS (SELECT 1 FROM access_tokens t WHERE t.id = $6 AND t.developer_id = $3
      AND (t.expires_at IS NULL OR t.expires_at > $4)) END
RETURNING id"""
_CONSOLE_SESSION: Final = (
    "s.id, s.developer_id, s.created_at, s.last_seen_at, s.access_token_id, s.address, s.user_agent, s.messenger_id, "
    "s.scopes, s.expires_at, s.sign_in"
)
_LIVES: Final = """s.last_seen_at > $2
  AND (s.access_token_id IS NOT NULL OR s.messenger_id IS NOT DISTINCT FROM d.messenger_id)
  AND (s.access_token_id IS NULL OR EXISTS (
    SELECT 1 FROM access_tokens t WHERE t.id = s.access_token_id AND t.developer_id = s.developer_id
      AND (t.expires_at IS NULL OR t.expires_at > $3)))"""
READ_CONSOLE_SESSION: Final = f"""
SELECT {_CONSOLE_SESSION}, {DEVELOPER_COLUMNS} FROM console_sessions s JOIN developers d ON d.id = s.developer_id
WHERE s.token_hash = $1 AND {_LIVES}"""
TOUCH_CONSOLE_SESSION: Final = """
UPDATE console_sessions SET last_seen_at = $1 WHERE id = $2 AND last_seen_at < $1"""
LIST_CONSOLE_SESSIONS: Final = f"""
SELECT {_CONSOLE_SESSION} FROM console_sessions s JOIN developers d ON d.id = s.developer_id
WHERE s.developer_id = $1 AND {_LIVES}
ORDER BY s.created_at DESC, s.id DESC"""
TRIM_CONSOLE_SESSIONS: Final = """
DELETE FROM console_sessions WHERE developer_id = $1 AND id <> $2 AND id NOT IN (
  SELECT id FROM console_sessions WHERE developer_id = $1 AND id <> $2
  ORDER BY last_seen_at DESC, id DESC LIMIT $3)"""
FIND_CONSOLE_SESSION: Final = "SELECT 1 FROM console_sessions WHERE developer_id = $1 AND id = $2"
FIND_CONSOLE_SESSIONS: Final = "SELECT id FROM console_sessions WHERE developer_id = $1 ORDER BY id"
ANY_CONSOLE_SESSION: Final = "SELECT 1 FROM console_sessions WHERE developer_id = $1 LIMIT 1"
DELETE_CONSOLE_SESSIONS_OF_TOKEN: Final = (
    "DELETE FROM console_sessions WHERE developer_id = $1 AND access_token_id = $2"
)
DELETE_MEMBER_INVITATIONS_OF_TOKEN: Final = (
    "DELETE FROM member_invitations WHERE inviter_id = $1 AND access_token_id = $2"
)
DELETE_CONSOLE_SESSION: Final = "DELETE FROM console_sessions WHERE developer_id = $1 AND id = $2 RETURNING id"
DELETE_CONSOLE_SESSIONS: Final = "DELETE FROM console_sessions WHERE developer_id = $1 RETURNING id"
PURGE_CONSOLE_SESSIONS: Final = Purge("console_sessions", "id", "last_seen_at <= $1")
PURGE_INVITATIONS: Final = Purge("invitations", "id", "expires_at <= $1")
PURGE_MEMBER_INVITATIONS: Final = Purge("member_invitations", "id", "expires_at <= $1")


CONSOLE_SESSIONS_KEPT: Final = 50
"""The maximum number of console sessions per developer. One page lists them all, and signing in again is easy."""
EXPIRED_TOKENS_KEPT: Final = 100
"""The number of expired access tokens kept per developer, so that the list of tokens can show them."""
DescribeTokens = Callable[[Sequence[EndedToken]], Sequence[AuditEntry]]
"""Returns the audit entries for revoked tokens. If it raises, the revocation is rolled back. A driver may call it more
than once, so it must have no side effects."""


class CredentialQueries(Queries):
    """Developers' credentials: access tokens and console sessions."""

    async def create_access_token(
        self,
        token: AccessToken,
        token_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Store an access token under the SHA-256 of its plaintext.

        `sign_in` is the sign-in that directly created the token, by `taproof login`. The account that confirmed it must
        still be linked to the developer; otherwise this raises AccessDenied.

        Return False if the developer has `limit` tokens that have not expired. Of the expired ones, the
        `EXPIRED_TOKENS_KEPT` that expired last are kept.
        """
        developer_id, values = token.developer_id, (*token_values(token, token_hash), limit)

        async def create(transaction: Transaction) -> bool:
            await transaction.lock(FIND_DEVELOPER, developer_id)
            await require_sign_in(transaction, sign_in, developer_id)
            if not await transaction.add(CREATE_ACCESS_TOKEN, *values):
                return False
            outdated = (developer_id, token.created_at, EXPIRED_TOKENS_KEPT)
            await transaction.fetch(ERASE_EXPIRED_TOKENS, *outdated)
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(create)

    async def read_access_token(self, token_hash: bytes) -> tuple[AccessToken, Developer] | None:
        """Return the token with this hash, expired or not, and its developer; None if it is unknown or revoked."""
        found = await self._database.read(READ_ACCESS_TOKEN, token_hash)
        return token_and_developer_from(found[0]) if found else None

    async def touch_access_token(self, token_id: str, now: int) -> None:
        """Record that the token was used at `now`."""
        await self._database.change(TOUCH_ACCESS_TOKEN, now, token_id)

    async def list_access_tokens(self, developer_id: str) -> list[AccessToken]:
        """Return a developer's tokens, newest first."""
        return [token_from(row) for row in await self._database.read(LIST_ACCESS_TOKENS, developer_id)]

    async def delete_access_token(
        self, developer_id: str, token_id: str, *, keep_created: bool = False, describe: DescribeTokens | None = None
    ) -> list[EndedToken]:
        """Revoke a token with all tokens that it created, directly or indirectly; return them, this one first.

        With `keep_created`, the created tokens are kept, and this token's parent becomes their parent. Console sessions
        that were opened with a revoked token end, and so do the open invitations to projects that were created with it.
        """
        values = (developer_id, token_id)

        async def delete(transaction: Transaction) -> list[EndedToken]:
            # A concurrent call that creates a token with one of these tokens waits for this lock, and then fails
            # because that token no longer exists.
            await transaction.lock(FIND_DEVELOPER, developer_id)
            found = await transaction.fetch(READ_ENDED_TOKEN, *values)
            if not found:
                return []
            if keep_created:
                await transaction.fetch(ADOPT_ACCESS_TOKENS, token_id, developer_id)
            else:
                found += await transaction.fetch(FIND_ACCESS_TOKENS_CREATED, *values)
            ended = [EndedToken(*row) for row in found]
            # Add the entries before the tokens are deleted: one of these may be the acting credential.
            for entry in describe(ended) if describe is not None else ():
                await transaction.add_entry(entry)
            for each in ended:
                await transaction.fetch(DELETE_CONSOLE_SESSIONS_OF_TOKEN, developer_id, each.id)
                await transaction.fetch(DELETE_ACCESS_TOKEN, developer_id, each.id)
                # Last, because deleting the token waits for calls that use it.
                await transaction.fetch(DELETE_MEMBER_INVITATIONS_OF_TOKEN, developer_id, each.id)
            return ended

        return await self._database.in_transaction(delete)

    async def create_console_session(
        self,
        session: ConsoleSession,
        token_hash: bytes,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Store a console session under the SHA-256 of its cookie.

        Return False if the access token used to sign in has ended or, without one, the developer now has another
        messenger account. At most `CONSOLE_SESSIONS_KEPT` sessions remain; those least recently seen end.
        """
        values = console_session_values(session, token_hash)

        async def create(transaction: Transaction) -> bool:
            await transaction.lock(FIND_DEVELOPER, session.developer_id)
            await require_sign_in(transaction, sign_in)
            if not await transaction.add(CREATE_CONSOLE_SESSION, *values):
                return False
            others = (session.developer_id, session.id, CONSOLE_SESSIONS_KEPT - 1)
            await transaction.lock(FIND_CONSOLE_SESSIONS, session.developer_id)
            await transaction.fetch(TRIM_CONSOLE_SESSIONS, *others)
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(create)

    async def read_console_session(
        self, token_hash: bytes, now: int, idle_since: int
    ) -> tuple[ConsoleSession, Developer] | None:
        """Return the session with this hash and its developer.

        Return None if the session is unknown or was last seen at or before `idle_since`. Also return None if the access
        token used to sign in has ended at `now` or, without one, the developer now has another messenger account.
        """
        found = await self._database.read(READ_CONSOLE_SESSION, token_hash, idle_since, now)
        return session_and_developer_from(found[0]) if found else None

    async def touch_console_session(self, session_id: str, now: int) -> None:
        """Record that the session was seen at `now`."""
        await self._database.change(TOUCH_CONSOLE_SESSION, now, session_id)

    async def list_console_sessions(self, developer_id: str, now: int, idle_since: int) -> list[ConsoleSession]:
        """Return the sessions of a developer that `read_console_session` would return, newest first."""
        found = await self._database.read(LIST_CONSOLE_SESSIONS, developer_id, idle_since, now)
        return [console_session_from(row) for row in found]

    async def delete_console_session(
        self, developer_id: str, session_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """End a session; False if this developer has no such session."""

        async def delete(transaction: Transaction) -> bool:
            await transaction.lock(FIND_DEVELOPER, developer_id)
            if not await transaction.fetch(FIND_CONSOLE_SESSION, developer_id, session_id):
                return False
            await transaction.add_entry(entry)  # First, because this may be the acting session.
            await transaction.fetch(DELETE_CONSOLE_SESSION, developer_id, session_id)
            return True

        return await self._database.in_transaction(delete)

    async def delete_console_sessions(self, developer_id: str, *, entry: AuditEntry | None = None) -> int:
        """End all sessions of a developer; return their number."""

        async def delete(transaction: Transaction) -> int:
            await transaction.lock(FIND_DEVELOPER, developer_id)
            if not await transaction.fetch(ANY_CONSOLE_SESSION, developer_id):
                return 0
            await transaction.add_entry(entry)
            return await end_console_sessions(transaction, developer_id)

        return await self._database.in_transaction(delete)

    async def purge_console_access(self, now: int, idle_since: int, limit: int) -> int:
        """Erase at most `limit` console sessions not seen since `idle_since`, and of each kind expired invitations."""
        ended = await self._database.purge(PURGE_CONSOLE_SESSIONS, idle_since, limit)
        ended += await self._database.purge(PURGE_INVITATIONS, now, limit)
        return ended + await self._database.purge(PURGE_MEMBER_INVITATIONS, now, limit)


async def end_console_sessions(transaction: Transaction, developer_id: str) -> int:
    """End all console sessions of a developer; return their number."""
    await transaction.lock(FIND_CONSOLE_SESSIONS, developer_id)
    return len(await transaction.fetch(DELETE_CONSOLE_SESSIONS, developer_id))
