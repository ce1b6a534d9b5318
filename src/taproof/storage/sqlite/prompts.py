"""The messages that show sessions to their owners, on SQLite."""

from collections.abc import Sequence

import apsw

from taproof.core.sessions import Hint, SessionKey
from taproof.storage.queries import prompts as queries
from taproof.storage.sqlite import notify
from taproof.storage.sqlite.database import SqliteDatabase


class SqlitePrompts(queries.PromptQueries):
    """See `storage.queries.prompts.PromptQueries`."""

    _database: SqliteDatabase

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database, self._announce_hints)

    async def _announce_hints(self, hints: Sequence[tuple[SessionKey, Hint]]) -> None:
        def write(connection: apsw.Connection) -> None:
            for key, hint in hints:
                notify.record(connection, key, hint)

        if hints:
            await self._database.writer.run(write)
