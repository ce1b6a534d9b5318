"""The store for many nodes: PostgreSQL, where calls of one kind that come together are one statement."""

from typing import Self

from taproof.core.clock import Clock
from taproof.storage import protocol
from taproof.storage.postgres.bots import PostgresBots
from taproof.storage.postgres.counts import PostgresCounts
from taproof.storage.postgres.deliveries import PostgresDeliveries
from taproof.storage.postgres.encrypted_values import PostgresEncryptedValues
from taproof.storage.postgres.erasure import PostgresErasure
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.pool import PostgresPool, migrate_postgres
from taproof.storage.postgres.projects import PostgresProjects
from taproof.storage.postgres.sessions import PostgresSessions
from taproof.storage.queries.audit import AuditQueries
from taproof.storage.queries.credentials import CredentialQueries
from taproof.storage.queries.developers import DeveloperQueries
from taproof.storage.queries.leases import LeaseQueries
from taproof.storage.queries.metadata import MetadataQueries
from taproof.storage.queries.plans import PlanQueries
from taproof.storage.queries.users import UserQueries


class PostgresStorage:
    """Storage in one PostgreSQL database, composed of its parts. See `storage.protocol` for what each promises."""

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
        self.counts: protocol.CountStorage = PostgresCounts(pool)
        self.erasure: protocol.ErasureStorage = PostgresErasure(pool, partitions)
        self.encrypted_values: protocol.EncryptedValueStorage = PostgresEncryptedValues(pool, partitions)
        self.leases: protocol.LeaseStorage = LeaseQueries(pool)
        self.metadata: protocol.MetadataStorage = MetadataQueries(pool)

    @classmethod
    async def open(cls, dsn: str, now: int, clock: Clock | None = None, *, pgbouncer: bool = False) -> Self:
        """Connect to a database and bring its schema up to date where needed.

        Args:
            dsn: `postgresql://user:password@host:port/database`.
            now: when its schema is brought up to date, in ms.
            clock: see `PostgresSessions`.
            pgbouncer: the address is that of a PgBouncer in transaction mode. Nothing is prepared by name then, and
                decisions are not heard from other nodes.

        Raises:
            PostgresTooOld: the server is older than 14.
            StoreUnavailable: the database cannot be reached; the sentence says what to check.
            MigrationChanged: it was made by a release with another history.
        """
        await migrate_postgres(dsn, now)
        return cls(await PostgresPool.open(dsn, pgbouncer=pgbouncer), clock, pgbouncer=pgbouncer)

    async def close(self) -> None:
        for part in self._batching:
            await part.close()
        await self.pool.close()

    async def ping(self) -> None:
        await self.pool.fetch("SELECT 1")
