"""What signs developers in, on SQLite: access tokens and console sessions."""

import apsw

from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, EndedToken
from taproof.core.model import DeveloperSignIn
from taproof.storage.protocol import CONSOLE_SESSIONS_KEPT, EXPIRED_TOKENS_KEPT, NO_LIMIT, DescribeTokens
from taproof.storage.queries import credentials as queries
from taproof.storage.rows import console_session_values, token_values
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.rights import add_entry, require_sign_in


class SqliteCredentials(queries.CredentialQueries[SqliteDatabase]):
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
        outdated = (token.developer_id, token.created_at, EXPIRED_TOKENS_KEPT)

        def write(connection: apsw.Connection) -> bool:
            require_sign_in(connection, sign_in, token.developer_id)
            if not rows(connection, queries.CREATE_ACCESS_TOKEN, (*token_values(token, token_hash), limit)):
                return False
            connection.execute(queries.ERASE_EXPIRED_TOKENS, outdated)
            add_entry(connection, entry)
            return True

        return await self._database.writer.run(write)

    async def delete_access_token(
        self, developer_id: str, token_id: str, *, keep_created: bool = False, describe: DescribeTokens | None = None
    ) -> list[EndedToken]:
        values = (developer_id, token_id)

        def write(connection: apsw.Connection) -> list[EndedToken]:
            found = rows(connection, queries.READ_ENDED_TOKEN, values)
            if not found:
                return []
            if keep_created:
                connection.execute(queries.ADOPT_ACCESS_TOKENS, (token_id, developer_id))
            else:
                found += rows(connection, queries.FIND_ACCESS_TOKENS_CREATED, values)
            ended = [EndedToken(*row) for row in found]
            # Before they go: one of them may be the credential that acts.
            for entry in describe(ended) if describe is not None else ():
                add_entry(connection, entry)
            for each in ended:
                connection.execute(queries.DELETE_CONSOLE_SESSIONS_OF_TOKEN, (developer_id, each.id))
                connection.execute(queries.DELETE_ACCESS_TOKEN, (developer_id, each.id))
            return ended

        return await self._database.writer.run(write)

    async def create_console_session(
        self,
        session: ConsoleSession,
        token_hash: bytes,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        values = console_session_values(session, token_hash)

        def write(connection: apsw.Connection) -> bool:
            require_sign_in(connection, sign_in)
            if not rows(connection, queries.CREATE_CONSOLE_SESSION, values):
                return False
            others = (session.developer_id, session.id, CONSOLE_SESSIONS_KEPT - 1)
            connection.execute(queries.TRIM_CONSOLE_SESSIONS, others)
            add_entry(connection, entry)
            return True

        return await self._database.writer.run(write)

    async def delete_console_session(
        self, developer_id: str, session_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        def write(connection: apsw.Connection) -> bool:
            if not rows(connection, queries.FIND_CONSOLE_SESSION, (developer_id, session_id)):
                return False
            add_entry(connection, entry)  # First, since it may be the session that acts.
            connection.execute(queries.DELETE_CONSOLE_SESSION, (developer_id, session_id))
            return True

        return await self._database.writer.run(write)

    async def delete_console_sessions(self, developer_id: str, *, entry: AuditEntry | None = None) -> int:
        def write(connection: apsw.Connection) -> int:
            if not rows(connection, queries.ANY_CONSOLE_SESSION, (developer_id,)):
                return 0
            add_entry(connection, entry)
            return len(rows(connection, queries.DELETE_CONSOLE_SESSIONS, (developer_id,)))

        return await self._database.writer.run(write)
