"""The interface of a store. Each method is one atomic operation, and a write is durable when it returns.

A store is composed of parts (`store.sessions`, `store.projects`, …): the classes in `queries/`, of which a database
overrides few methods, and Protocols for what each database does in its own way.

Any method may raise `StoreUnavailable` if the database is locked, full, read-only or unreachable; nothing is changed in
this case. Times are milliseconds since the epoch. If a method that makes a change returns False, None or an empty
result, nothing was changed.

A method that takes an `entry` adds it to the audit log in the transaction of the change, if anything was changed. The
same transaction checks that the access token or console session of the entry's actor still exists. Otherwise the method
raises InvalidAccessToken or SignedOut and changes nothing, so a credential that has ended cannot create another one
(docs/explanation/rights.md). A change with `sign_in` raises AccessDenied if this messenger sign-in was reported.

A method named `purge_…` erases in bounded steps and returns the number of erased items (0: none is left).
"""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

from taproof.storage.protocol.sessions import SessionQueries
from taproof.storage.queries.audit import AuditQueries
from taproof.storage.queries.bots import BotQueries
from taproof.storage.queries.counts import CountQueries
from taproof.storage.queries.credentials import CredentialQueries
from taproof.storage.queries.database import Database
from taproof.storage.queries.deliveries import DeliveryQueries
from taproof.storage.queries.developers import DeveloperQueries
from taproof.storage.queries.encrypted_values import EncryptedValueQueries
from taproof.storage.queries.erasure import ErasureQueries
from taproof.storage.queries.leases import LeaseQueries
from taproof.storage.queries.members import MemberQueries
from taproof.storage.queries.metadata import MetadataQueries
from taproof.storage.queries.mini_apps import MiniAppStorage
from taproof.storage.queries.oidc.authorizations import AuthorizationQueries
from taproof.storage.queries.oidc.clients import OidcClientQueries
from taproof.storage.queries.oidc.grants import GrantQueries
from taproof.storage.queries.oidc.logouts import LogoutQueries
from taproof.storage.queries.oidc.signing_keys import SigningKeyQueries
from taproof.storage.queries.plans import PlanQueries
from taproof.storage.queries.projects import ProjectQueries
from taproof.storage.queries.prompts import PromptQueries
from taproof.storage.queries.users import UserQueries


class DatabaseFacts(NamedTuple):
    """The database of a store: its program and that program's version, the schema version, and the size in bytes."""

    program: Literal["sqlite", "postgresql"]
    version: str
    schema_version: int
    size: int


class Storage(ABC):
    """The store: SQLite on one machine, PostgreSQL for many. A driver adds or replaces the parts that differ."""

    sessions: SessionQueries
    mini_apps: MiniAppStorage
    prompts: PromptQueries
    deliveries: DeliveryQueries

    def __init__(self, database: Database) -> None:
        self.projects = ProjectQueries(database)
        self.oidc_clients = OidcClientQueries(database)
        self.bots = BotQueries(database)
        self.users = UserQueries(database)
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

    @abstractmethod
    async def close(self) -> None:
        """Close the database after finishing the writes in progress."""

    @abstractmethod
    async def ping(self) -> None:
        """Run the smallest read that proves that the store responds."""

    @abstractmethod
    async def describe(self) -> DatabaseFacts:
        """Return the version and the size of the database."""
