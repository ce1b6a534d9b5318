"""The store for one machine: a SQLite file in WAL mode, read on the event loop and written by one group commit."""

from functools import partial
from pathlib import Path
from typing import Final, Self

from taproof.core.clock import Clock
from taproof.storage.protocol import DatabaseFacts, Storage
from taproof.storage.queries.prompts import PromptQueries
from taproof.storage.sqlite import notify
from taproof.storage.sqlite.connection import migrate_database, open_connections
from taproof.storage.sqlite.counts import Counters
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.deliveries import SqliteDeliveries
from taproof.storage.sqlite.group_commit import LOCK_PATIENCE, GroupCommit
from taproof.storage.sqlite.mini_apps import SqliteMiniApps
from taproof.storage.sqlite.sessions import SqliteSessions

_DESCRIBE: Final = """
SELECT sqlite_version(), (SELECT MAX(version) FROM schema_migrations), c.page_count * s.page_size
FROM pragma_page_count c, pragma_page_size s"""


class SqliteStorage(Storage):
    """A store in one SQLite file, composed of its parts. See `storage.protocol` for each part's contract."""

    def __init__(self, database: SqliteDatabase, counters: Counters, clock: Clock | None) -> None:
        """Use `open`."""
        super().__init__(database)
        self.database = database
        self.sessions = SqliteSessions(database, counters, clock)
        self.mini_apps = SqliteMiniApps(database, counters, clock)
        self.prompts = PromptQueries(database, partial(notify.record_hints, database))
        self.deliveries = SqliteDeliveries(database)

    @classmethod
    def open(cls, path: Path, now: int, clock: Clock | None = None, *, lock_patience: float = LOCK_PATIENCE) -> Self:
        """Open the file. Create it (mode 0600) and migrate its schema first, if needed.

        Args:
            path: the file.
            now: the time recorded for migrations, in ms.
            clock: see `SessionQueries`.
            lock_patience: see `GroupCommit`.

        Raises:
            SqliteTooOld, StoreUnavailable, MigrationChanged: as for `migrate_database`.
        """
        migrate_database(path, now)
        reader, writer, lookup = open_connections(path)
        counters = Counters()
        group_commit = GroupCommit(writer, counters.clear, counters.write, lock_patience=lock_patience)
        return cls(SqliteDatabase(reader, group_commit, lookup), counters, clock)

    async def close(self) -> None:
        await self.database.close()

    async def ping(self) -> None:
        self.database.rows("SELECT 1")

    async def describe(self) -> DatabaseFacts:
        ((version, schema_version, size),) = await self.database.read(_DESCRIBE)
        return DatabaseFacts("sqlite", version.split()[0], schema_version, size)
