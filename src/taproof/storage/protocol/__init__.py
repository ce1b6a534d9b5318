"""The interface of a store. Each method is one atomic operation, and a write is durable when it returns.

A store is composed of parts (`store.sessions`, `store.projects`, …), one Protocol each. Any method may raise
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

from taproof.storage.protocol.audit import AuditStorage
from taproof.storage.protocol.bots import BotStorage
from taproof.storage.protocol.counts import CountStorage
from taproof.storage.protocol.credentials import CredentialStorage
from taproof.storage.protocol.deliveries import DeliveryStorage
from taproof.storage.protocol.developers import DeveloperStorage
from taproof.storage.protocol.encrypted_values import EncryptedValueStorage
from taproof.storage.protocol.erasure import ErasureStorage
from taproof.storage.protocol.leases import LeaseStorage
from taproof.storage.protocol.members import MemberStorage
from taproof.storage.protocol.metadata import MetadataStorage
from taproof.storage.protocol.mini_apps import MiniAppStorage
from taproof.storage.protocol.oidc.authorizations import AuthorizationStorage
from taproof.storage.protocol.oidc.clients import OidcClientStorage
from taproof.storage.protocol.oidc.signing_keys import SigningKeyStorage
from taproof.storage.protocol.plans import PlanStorage
from taproof.storage.protocol.projects import ProjectStorage
from taproof.storage.protocol.prompts import PromptStorage
from taproof.storage.protocol.sessions import SessionStorage
from taproof.storage.protocol.users import UserStorage


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
    projects: ProjectStorage
    oidc_clients: OidcClientStorage
    bots: BotStorage
    users: UserStorage
    prompts: PromptStorage
    deliveries: DeliveryStorage
    developers: DeveloperStorage
    credentials: CredentialStorage
    members: MemberStorage
    audit: AuditStorage
    plans: PlanStorage
    counts: CountStorage
    erasure: ErasureStorage
    authorizations: AuthorizationStorage
    signing_keys: SigningKeyStorage
    encrypted_values: EncryptedValueStorage
    leases: LeaseStorage
    metadata: MetadataStorage

    async def close(self) -> None:
        """Close the database after finishing the writes in progress."""

    async def ping(self) -> None:
        """Run the smallest read that proves that the store responds."""

    async def describe(self) -> DatabaseFacts:
        """Return the version and the size of the database."""
