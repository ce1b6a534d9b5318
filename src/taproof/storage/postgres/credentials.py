"""What signs developers in, on PostgreSQL: access tokens and console sessions."""

from typing import Final

import asyncpg

from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, EndedToken
from taproof.core.model import DeveloperSignIn
from taproof.storage.postgres.pool import PostgresPool, has_nul
from taproof.storage.postgres.rights import HOLD_DEVELOPER, add_entry, require_sign_in
from taproof.storage.protocol import CONSOLE_SESSIONS_KEPT, EXPIRED_TOKENS_KEPT, NO_LIMIT, DescribeTokens
from taproof.storage.queries import credentials as queries
from taproof.storage.rows import console_session_values, token_values

TRIM_CONSOLE_SESSIONS: Final = """
WITH kept AS MATERIALIZED (
  SELECT id FROM console_sessions WHERE developer_id = $1 AND id <> $2 ORDER BY last_seen_at DESC, id DESC LIMIT $3
), old AS MATERIALIZED (
  SELECT id FROM console_sessions WHERE developer_id = $1 AND id <> $2 AND id NOT IN (SELECT id FROM kept)
  ORDER BY id FOR UPDATE
)
DELETE FROM console_sessions s USING old WHERE s.id = old.id"""
DELETE_CONSOLE_SESSIONS: Final = """
WITH ended AS MATERIALIZED (SELECT id FROM console_sessions WHERE developer_id = $1 ORDER BY id FOR UPDATE)
DELETE FROM console_sessions s USING ended e WHERE s.id = e.id RETURNING s.id"""


class PostgresCredentials(queries.CredentialQueries[PostgresPool]):
    """See `storage.protocol.CredentialStorage`."""

    async def create_access_token(
        self,
        token: AccessToken,
        token_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        developer_id, values = token.developer_id, (*token_values(token, token_hash), limit)

        async def create(connection: asyncpg.Connection) -> bool:
            await connection.execute(HOLD_DEVELOPER, developer_id)
            await require_sign_in(connection, sign_in, developer_id)
            if not await connection.fetch(queries.CREATE_ACCESS_TOKEN, *values):
                return False
            outdated = (developer_id, token.created_at, EXPIRED_TOKENS_KEPT)
            await connection.execute(queries.ERASE_EXPIRED_TOKENS, *outdated)
            await add_entry(connection, entry)
            return True

        return await self._database.transact(create)

    async def delete_access_token(
        self, developer_id: str, token_id: str, *, keep_created: bool = False, describe: DescribeTokens | None = None
    ) -> list[EndedToken]:
        values = (developer_id, token_id)

        async def delete(connection: asyncpg.Connection) -> list[EndedToken]:
            # Whoever creates a token with one of these waits, and then finds it gone.
            await connection.execute(HOLD_DEVELOPER, developer_id)
            found = await connection.fetch(queries.READ_ENDED_TOKEN, *values)
            if not found:
                return []
            if keep_created:
                await connection.execute(queries.ADOPT_ACCESS_TOKENS, token_id, developer_id)
            else:
                found += await connection.fetch(queries.FIND_ACCESS_TOKENS_CREATED, *values)
            ended = [EndedToken(*row) for row in found]
            # Before they go: one of them may be the credential that acts.
            for entry in describe(ended) if describe is not None else ():
                await add_entry(connection, entry)
            for each in ended:
                await connection.execute(queries.DELETE_CONSOLE_SESSIONS_OF_TOKEN, developer_id, each.id)
                await connection.execute(queries.DELETE_ACCESS_TOKEN, developer_id, each.id)
            return ended

        return [] if has_nul(*values) else await self._database.transact(delete)

    async def create_console_session(
        self,
        session: ConsoleSession,
        token_hash: bytes,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        values = console_session_values(session, token_hash)

        async def create(connection: asyncpg.Connection) -> bool:
            await connection.execute(HOLD_DEVELOPER, session.developer_id)
            await require_sign_in(connection, sign_in)
            if not await connection.fetch(queries.CREATE_CONSOLE_SESSION, *values):
                return False
            others = (session.developer_id, session.id, CONSOLE_SESSIONS_KEPT - 1)
            await connection.execute(TRIM_CONSOLE_SESSIONS, *others)
            await add_entry(connection, entry)
            return True

        return await self._database.transact(create)

    async def delete_console_session(
        self, developer_id: str, session_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        async def delete(connection: asyncpg.Connection) -> bool:
            await connection.execute(HOLD_DEVELOPER, developer_id)
            if not await connection.fetch(queries.FIND_CONSOLE_SESSION, developer_id, session_id):
                return False
            await add_entry(connection, entry)  # First, since it may be the session that acts.
            await connection.execute(queries.DELETE_CONSOLE_SESSION, developer_id, session_id)
            return True

        return not has_nul(developer_id, session_id) and await self._database.transact(delete)

    async def delete_console_sessions(self, developer_id: str, *, entry: AuditEntry | None = None) -> int:
        async def delete(connection: asyncpg.Connection) -> int:
            await connection.execute(HOLD_DEVELOPER, developer_id)
            if not await connection.fetch(queries.ANY_CONSOLE_SESSION, developer_id):
                return 0
            await add_entry(connection, entry)
            return len(await connection.fetch(DELETE_CONSOLE_SESSIONS, developer_id))

        return 0 if has_nul(developer_id) else await self._database.transact(delete)
