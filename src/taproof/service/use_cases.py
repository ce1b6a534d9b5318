"""The use cases of a process, assembled once: the developer API, the console and the sandbox get all of them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.service.analytics import AnalyticsReader
from taproof.service.audit import AuditLog
from taproof.service.bots import Bots
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.console.sign_in import DeveloperSignIns
from taproof.service.deliveries import Deliveries
from taproof.service.developers import Developers
from taproof.service.erasure import Erasure
from taproof.service.invitations import Invitations
from taproof.service.managed_bots import ManagedBots
from taproof.service.members import Members
from taproof.service.oidc.client_grants import ClientGrants
from taproof.service.oidc.clients import OidcClients
from taproof.service.plans import Plans
from taproof.service.projects import Projects
from taproof.service.sessions.create_and_verify import SignInSessions
from taproof.service.sessions.list import SessionReader
from taproof.service.sessions.wait import Waiting
from taproof.service.user_export import UserExports
from taproof.service.users import Users
from taproof.service.webhooks import SignedRequest, WebhookResponse, Webhooks
from taproof.storage.protocol import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """What developers and their applications can do."""

    sign_in_sessions: SignInSessions
    waiting: Waiting
    developers: Developers
    developer_sign_ins: DeveloperSignIns
    console_sessions: ConsoleSessions
    invitations: Invitations
    members: Members
    projects: Projects
    clients: OidcClients
    client_grants: ClientGrants
    bots: Bots
    managed_bots: ManagedBots
    plans: Plans
    session_reader: SessionReader
    users: Users
    exports: UserExports
    erasure: Erasure
    analytics: AnalyticsReader
    audit: AuditLog
    webhooks: Webhooks
    deliveries: Deliveries


def assemble(
    storage: Storage,
    encryptor: Encryptor,
    clock: Clock,
    entropy: Entropy,
    *,
    sign_in_sessions: SignInSessions,
    waiting: Waiting,
    projects: Projects,
    plans: Plans,
    bots: Bots,
    webhooks: Webhooks,
    post: Callable[[SignedRequest], Awaitable[WebhookResponse]],
    event_recorded: Callable[[], None],
    find_manager: Callable[[], str | None],
    new_bot_link_base: str,
    base_url: str,
) -> UseCases:
    """Return all use cases: the given ones, which depend on settings, and those that are made of them."""
    clients = OidcClients(storage, clock, entropy)
    return UseCases(
        sign_in_sessions=sign_in_sessions,
        waiting=waiting,
        developers=Developers(storage, clock, entropy),
        developer_sign_ins=DeveloperSignIns(storage, encryptor, sign_in_sessions, clock, entropy, waiting=waiting),
        console_sessions=ConsoleSessions(storage, clock, entropy),
        invitations=Invitations(storage, clock, entropy),
        members=Members(storage, clock, entropy, base_url=base_url),
        projects=projects,
        clients=clients,
        client_grants=ClientGrants(storage, clients, clock, entropy),
        bots=bots,
        managed_bots=ManagedBots(
            storage, encryptor, clock, bots=bots, find_manager=find_manager, link_base=new_bot_link_base
        ),
        plans=plans,
        session_reader=SessionReader(storage, encryptor, clock),
        users=Users(storage),
        exports=UserExports(storage, encryptor, clock),
        erasure=Erasure(storage, clock, entropy),
        analytics=AnalyticsReader(storage, clock),
        audit=AuditLog(storage),
        webhooks=webhooks,
        deliveries=Deliveries(storage, encryptor, clock, entropy, webhooks, post=post, recorded=event_recorded),
    )
