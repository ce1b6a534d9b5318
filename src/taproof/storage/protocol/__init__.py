"""The interface of a store. Each method is one atomic operation, and a write is durable when it returns.

A store is composed of parts (`store.sessions`, `store.projects`, …). A part that each database implements in its own
way is a Protocol of this package. The others are the classes in `queries/`, of which a database overrides few methods.

Any method may raise
`StoreUnavailable` if the database is locked, full, read-only or unreachable; nothing is changed in this case. Times are
milliseconds since the epoch. If a method that makes a change returns False, None or an empty result, nothing was
changed.

A method that takes an `entry` adds it to the audit log in the transaction of the change, if anything was changed. If
the entry's actor used an access token or a console session, the same transaction checks that this credential still
exists. Otherwise the method raises InvalidAccessToken or SignedOut and changes nothing. So a credential that has ended
cannot create another one (docs/explanation/rights.md). A change with `sign_in` requires that this
messenger sign-in was not reported; otherwise the method raises AccessDenied.

A method named `purge_…` erases in bounded steps and returns the number of erased items (0: none is left).
"""

from typing import Literal, NamedTuple, Protocol

from taproof.storage.protocol.deliveries import DeliveryStorage
from taproof.storage.protocol.mini_apps import MiniAppStorage
from taproof.storage.protocol.sessions import SessionStorage
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
from taproof.storage.queries.prompts import PromptQueries
from taproof.storage.queries.users import UserQueries


class DatabaseFacts(NamedTuple):
    """The database of a store: its program and that program's version, the schema version, and the size in bytes."""

    program: Literal["sqlite", "postgresql"]
    version: str
    schema_version: int
    size: int


class Storage(Protocol):
    """The store: SQLite on one machine, PostgreSQL for many."""

    sessions: SessionStorage
    mini_apps: MiniAppStorage
    projects: ProjectQueries
    oidc_clients: OidcClientQueries
    bots: BotQueries
    users: UserQueries
    prompts: PromptQueries
    deliveries: DeliveryStorage
    developers: DeveloperQueries
    credentials: CredentialQueries
    members: MemberQueries
    audit: AuditQueries
    plans: PlanQueries
    counts: CountQueries
    erasure: ErasureQueries
    authorizations: AuthorizationQueries
    grants: GrantQueries
    logouts: LogoutQueries
    signing_keys: SigningKeyQueries
    encrypted_values: EncryptedValueQueries
    leases: LeaseQueries
    metadata: MetadataQueries

    async def close(self) -> None:
        """Close the database after finishing the writes in progress."""

    async def ping(self) -> None:
        """Run the smallest read that proves that the store responds."""

    async def describe(self) -> DatabaseFacts:
        """Return the version and the size of the database."""
