"""The store for many nodes: PostgreSQL, with one statement for concurrent calls of the same kind."""

from typing import Self

from taproof.core.clock import Clock
from taproof.storage import protocol
from taproof.storage.postgres.bots import PostgresBots
from taproof.storage.postgres.deliveries import PostgresDeliveries
from taproof.storage.postgres.encrypted_values import PostgresEncryptedValues
from taproof.storage.postgres.erasure import PostgresErasure
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.pool import PostgresPool, migrate_postgres
from taproof.storage.postgres.projects import PostgresProjects
from taproof.storage.postgres.sessions import PostgresSessions
from taproof.storage.queries.audit import AuditQueries
from taproof.storage.queries.counts import CountQueries
from taproof.storage.queries.credentials import CredentialQueries
from taproof.storage.queries.developers import DeveloperQueries
from taproof.storage.queries.leases import LeaseQueries
from taproof.storage.queries.metadata import MetadataQueries
from taproof.storage.queries.plans import PlanQueries
from taproof.storage.queries.users import UserQueries


class PostgresStorage:
    """A store in one PostgreSQL database, composed of its parts. See `storage.protocol` for each part's contract."""

    def __init__(self, pool: PostgresPool, clock: Clock | None, *, pgbouncer: bool) -> None:
        """Use `open`."""
        self.pool = pool
        partitions = Partitions(pool)
        sessions = PostgresSessions(pool, partitions, clock, hears=not pgbouncer)
        projects = PostgresProjects(pool)
        bots = PostgresBots(pool)
        deliveries = PostgresDeliveries(pool)
        self._batching = (sessions, projects, bots, deliveries)
        self.sessions: protocol.SessionStorage = sessions
        self.projects: protocol.ProjectStorage = projects
        self.bots: protocol.BotStorage = bots
        self.users: protocol.UserStorage = UserQueries(pool)
        self.deliveries: protocol.DeliveryStorage = deliveries
        self.developers: protocol.DeveloperStorage = DeveloperQueries(pool)
        self.credentials: protocol.CredentialStorage = CredentialQueries(pool)
        self.audit: protocol.AuditStorage = AuditQueries(pool)
        self.plans: protocol.PlanStorage = PlanQueries(pool)
        self.counts: protocol.CountStorage = CountQueries(pool)
        self.erasure: protocol.ErasureStorage = PostgresErasure(pool, partitions)
        self.encrypted_values: protocol.EncryptedValueStorage = PostgresEncryptedValues(pool, partitions)
        self.leases: protocol.LeaseStorage = LeaseQueries(pool)
        self.metadata: protocol.MetadataStorage = MetadataQueries(pool)

    @classmethod
    async def open(cls, dsn: str, now: int, clock: Clock | None = None, *, pgbouncer: bool = False) -> Self:
        """Connect to a database, and migrate its schema if needed.

        Args:
            dsn: `postgresql://user:password@host:port/database`.
            now: the time recorded for migrations, in ms.
            clock: see `SessionQueries`.
            pgbouncer: true if `dsn` points to a PgBouncer in transaction mode. In this case, no statement is prepared
                by name, and decisions of other nodes are not received.

        Raises:
            PostgresTooOld, StoreUnavailable, MigrationChanged: as for `migrate_postgres`.
        """
        await migrate_postgres(dsn, now)
        return cls(await PostgresPool.open(dsn, pgbouncer=pgbouncer), clock, pgbouncer=pgbouncer)

    async def close(self) -> None:
        for part in self._batching:
            await part.close()
        await self.pool.close()

    async def ping(self) -> None:
        await self.pool.fetch("SELECT 1")
