"""The store for one machine: a SQLite file in WAL mode, read on the event loop and written by one group commit."""

from pathlib import Path
from typing import Final, Self

from taproof.core.clock import Clock
from taproof.storage.protocol import DatabaseFacts, Storage
from taproof.storage.queries.audit import AuditQueries
from taproof.storage.queries.bots import BotQueries
from taproof.storage.queries.counts import CountQueries
from taproof.storage.queries.credentials import CredentialQueries
from taproof.storage.queries.developers import DeveloperQueries
from taproof.storage.queries.encrypted_values import EncryptedValueQueries
from taproof.storage.queries.erasure import ErasureQueries
from taproof.storage.queries.leases import LeaseQueries
from taproof.storage.queries.members import MemberQueries
from taproof.storage.queries.metadata import MetadataQueries
from taproof.storage.queries.oidc.authorizations import AuthorizationQueries
from taproof.storage.queries.oidc.clients import OidcClientQueries
from taproof.storage.queries.oidc.grants import GrantQueries
from taproof.storage.queries.oidc.logouts import LogoutQueries
from taproof.storage.queries.oidc.signing_keys import SigningKeyQueries
from taproof.storage.queries.plans import PlanQueries
from taproof.storage.queries.projects import ProjectQueries
from taproof.storage.queries.users import UserQueries
from taproof.storage.sqlite.connection import migrate_database, open_connections
from taproof.storage.sqlite.counts import Counters
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.deliveries import SqliteDeliveries
from taproof.storage.sqlite.group_commit import GroupCommit
from taproof.storage.sqlite.mini_apps import SqliteMiniApps
from taproof.storage.sqlite.prompts import SqlitePrompts
from taproof.storage.sqlite.sessions import SqliteSessions

_DESCRIBE: Final = """
SELECT sqlite_version(), (SELECT MAX(version) FROM schema_migrations), c.page_count * s.page_size
FROM pragma_page_count c, pragma_page_size s"""


class SqliteStorage(Storage):
    """A store in one SQLite file, composed of its parts. See `storage.protocol` for each part's contract."""

    def __init__(self, database: SqliteDatabase, counters: Counters, clock: Clock | None) -> None:
        """Use `open`."""
        self.database = database
        self.sessions = SqliteSessions(database, counters, clock)
        self.mini_apps = SqliteMiniApps(database, counters, clock)
        self.projects = ProjectQueries(database)
        self.oidc_clients = OidcClientQueries(database)
        self.bots = BotQueries(database)
        self.users = UserQueries(database)
        self.prompts = SqlitePrompts(database)
        self.deliveries = SqliteDeliveries(database)
        self.developers = DeveloperQueries(database)
        self.credentials = CredentialQueries(database)
        self.members = MemberQueries(database)
        self.audit = AuditQueries(database)
        self.plans = PlanQueries(database)
        self.counts = CountQueries(database)
        self.erasure = ErasureQueries(database)
        self.authorizations = AuthorizationQueries(database)
        self.grants = GrantQueries(database)
        self.logouts = LogoutQueries(database)
        self.signing_keys = SigningKeyQueries(database)
        self.encrypted_values = EncryptedValueQueries(database)
        self.leases = LeaseQueries(database)
        self.metadata = MetadataQueries(database)

    @classmethod
    def open(cls, path: Path, now: int, clock: Clock | None = None) -> Self:
        """Open the file. Create it (mode 0600) and migrate its schema first, if needed.

        Args:
            path: the file.
            now: the time recorded for migrations, in ms.
            clock: see `SessionQueries`.

        Raises:
            SqliteTooOld, StoreUnavailable, MigrationChanged: as for `migrate_database`.
        """
        migrate_database(path, now)
        reader, writer, lookup = open_connections(path)
        counters = Counters()
        group_commit = GroupCommit(writer, counters.clear, counters.write)
        return cls(SqliteDatabase(reader, group_commit, lookup), counters, clock)

    async def close(self) -> None:
        await self.database.close()

    async def ping(self) -> None:
        self.database.rows("SELECT 1")

    async def describe(self) -> DatabaseFacts:
        ((version, schema_version, size),) = await self.database.read(_DESCRIBE)
        return DatabaseFacts("sqlite", version.split()[0], schema_version, size)
