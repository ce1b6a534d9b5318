"""The store for many nodes: PostgreSQL, with one statement for concurrent calls of the same kind."""

from typing import Final, Self

from taproof.core.clock import Clock
from taproof.storage.postgres.bots import PostgresBots
from taproof.storage.postgres.connection import Pooling, find_pooler, migrate_database
from taproof.storage.postgres.database import PostgresDatabase
from taproof.storage.postgres.deliveries import PostgresDeliveries
from taproof.storage.postgres.encrypted_values import PostgresEncryptedValues
from taproof.storage.postgres.erasure import PostgresErasure
from taproof.storage.postgres.mini_apps import PostgresMiniApps
from taproof.storage.postgres.notify import Announcer
from taproof.storage.postgres.oidc.authorizations import PostgresAuthorizations
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.projects import PostgresProjects
from taproof.storage.postgres.prompts import PostgresPrompts
from taproof.storage.postgres.sessions import PostgresSessions
from taproof.storage.protocol import DatabaseFacts, Storage

_DESCRIBE: Final = """
SELECT current_setting('server_version'), (SELECT MAX(version) FROM schema_migrations),
  pg_database_size(current_database())"""


class PostgresStorage(Storage):
    """A store in one PostgreSQL database, composed of its parts. See `storage.protocol` for each part's contract."""

    sessions: PostgresSessions

    def __init__(self, database: PostgresDatabase, clock: Clock | None, *, pooling: Pooling) -> None:
        """Use `open`."""
        super().__init__(database)
        self.database = database
        partitions = Partitions(database)
        announcer = Announcer(database)
        self.sessions = PostgresSessions(database, partitions, announcer, clock, hears=pooling != "transaction")
        self.mini_apps = PostgresMiniApps(database, partitions, clock)
        self.prompts = PostgresPrompts(database, announcer)
        self.deliveries = PostgresDeliveries(database)
        self.projects = PostgresProjects(database)
        self.bots = bots = PostgresBots(database)
        self.erasure = PostgresErasure(database)
        self.authorizations = PostgresAuthorizations(database)
        self.encrypted_values = PostgresEncryptedValues(database, partitions)
        self._batching = (self.prompts, self.sessions, bots, self.deliveries)

    @classmethod
    async def open(cls, dsn: str, now: int, clock: Clock | None = None, *, pgbouncer: bool = False) -> Self:
        """Connect to a database, and migrate its schema if needed.

        Args:
            dsn: an address of a database, as `read_address` reads it.
            now: the time recorded for migrations, in ms.
            clock: see `SessionQueries`.
            pgbouncer: true if `dsn` points to a pooler in transaction mode; otherwise, `find_pooler` finds out. With
                such a pooler, no statement is prepared by name, and decisions of other nodes are not received.

        Raises:
            NotPostgres, PostgresTooOld, StoreUnavailable, MigrationChanged: as for `migrate_database`.
        """
        await migrate_database(dsn, now)
        pooling: Pooling = "transaction" if pgbouncer else await find_pooler(dsn)
        return cls(await PostgresDatabase.open(dsn, pooling=pooling), clock, pooling=pooling)

    async def close(self) -> None:
        for part in self._batching:
            await part.close()
        await self.database.close()

    async def ping(self) -> None:
        await self.database.ping()

    async def describe(self) -> DatabaseFacts:
        ((version, schema_version, size),) = await self.database.read(_DESCRIBE)
        return DatabaseFacts("postgresql", version.split()[0], schema_version, size)
