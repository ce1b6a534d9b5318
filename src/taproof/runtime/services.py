"""Wire the use cases of one process to the store, the messenger and each other.

`app.py` adds the server and the background parts.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from taproof.api.health import Readiness
from taproof.config.settings import Settings
from taproof.core.bot_token import bot_id_of
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.origins import NotAnOrigin, read_origin
from taproof.http.cells import SharedMetrics
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.messengers.telegram.accounts import fetch_account
from taproof.oidc.services import ProviderServices
from taproof.runtime.bot_runtime import open_bot_api
from taproof.runtime.deeplinks import Deeplinks
from taproof.runtime.geoip import place_finder
from taproof.runtime.store import open_encryptor, open_plans, open_projects, open_storage
from taproof.runtime.traces import Tracing, open_traces
from taproof.service.analytics import AnalyticsReader
from taproof.service.audit import AuditLog
from taproof.service.bots import Bots
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.console.sign_in import DeveloperSignIns
from taproof.service.deliveries import Deliveries
from taproof.service.developers import Developers
from taproof.service.erasure import Erasure
from taproof.service.installation import check_mode
from taproof.service.invitations import Invitations
from taproof.service.managed_bots import ManagedBots
from taproof.service.members import Members
from taproof.service.oidc.clients import OidcClients
from taproof.service.oidc.devices import Devices
from taproof.service.oidc.keys import SigningKeys
from taproof.service.oidc.requests import AuthorizationRequests
from taproof.service.oidc.sign_in import OidcSignIns
from taproof.service.oidc.tokens import Tokens
from taproof.service.plans import Plans
from taproof.service.projects import Projects
from taproof.service.sessions.create_and_verify import SignInSessions
from taproof.service.sessions.decide import Decisions
from taproof.service.sessions.list import SessionReader
from taproof.service.sessions.prompts import Prompts
from taproof.service.sessions.wait import Waiting
from taproof.service.signals import Signals
from taproof.service.user_export import UserExports
from taproof.service.users import Users
from taproof.service.webhooks import Webhooks
from taproof.storage.protocol import Storage
from taproof.webhooks.http_client import WebhookClient, open_webhook_client


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases, wired."""

    storage: Storage
    encryptor: Encryptor
    deeplinks: Deeplinks
    sign_in_sessions: SignInSessions
    waiting: Waiting
    decisions: Decisions
    prompts: Prompts
    signals: Signals
    prompt_ended: asyncio.Event
    """Set when a prompt must be edited, so that this process's bot does so immediately."""
    developers: Developers
    projects: Projects
    oidc_clients: OidcClients
    plans: Plans
    erasure: Erasure
    users: Users
    exports: UserExports
    bots: Bots
    managed_bots: ManagedBots
    console_sessions: ConsoleSessions
    developer_sign_ins: DeveloperSignIns
    invitations: Invitations
    members: Members
    session_reader: SessionReader
    analytics: AnalyticsReader
    audit: AuditLog
    deliveries: Deliveries
    webhooks: Webhooks
    webhook_client: WebhookClient
    openid: ProviderServices
    recorded: asyncio.Event
    """Set when an event may be due, so that this process's sender checks immediately."""
    metrics: Metrics
    readiness: Readiness
    limits: RateLimits
    tracing: Tracing


@asynccontextmanager
async def open_services(settings: Settings, shared_metrics: SharedMetrics | None = None) -> AsyncIterator[Services]:
    """Yield the use cases, on the configured store."""
    async with AsyncExitStack() as stack:
        tracing = await stack.enter_async_context(open_traces(settings))
        storage = tracing.storage(await open_storage(settings.database_url, pgbouncer=settings.pgbouncer))
        stack.push_async_callback(storage.close)
        await check_mode(storage, sandbox=settings.sandbox)
        encryptor = await open_encryptor(settings, storage)
        deeplinks = _deeplinks(settings)
        recorded, prompt_ended = asyncio.Event(), asyncio.Event()
        projects = open_projects(settings, storage, encryptor)
        plans = open_plans(settings, storage)
        metrics = Metrics(CollectorRegistry(), version("taproof"), shared_metrics)
        waiting = Waiting(storage, system_clock)
        signals = Signals(
            decided=waiting.wake,
            hint_changed=waiting.notice,
            event_recorded=recorded.set,
            prompt_ended=prompt_ended.set,
            count_decision=metrics.count_decision,
        )
        sign_in_sessions = SignInSessions(
            storage,
            encryptor,
            deeplinks.of_service_bot,
            system_clock,
            system_entropy,
            signals=signals,
            project_bot_link_base=deeplinks.of_project_bot,
            require_room=plans.require_room,
            find_place=place_finder(settings.geoip_file, system_clock),
            own_origin=_own_origin(settings.base_url),
        )
        webhooks = Webhooks(storage, encryptor, system_clock, system_entropy, f"Taproof/{version('taproof')}")
        client = tracing.webhooks(
            await stack.enter_async_context(
                open_webhook_client(settings.address_rules, settings.webhook_ports, allow_http=settings.sandbox)
            )
        )
        bot_api = tracing.bot_api(open_bot_api(settings))
        stack.push_async_callback(bot_api.close)
        bots = Bots(
            storage,
            encryptor,
            system_clock,
            system_entropy,
            projects=projects,
            ask=partial(fetch_account, bot_api),
            is_service_bot=deeplinks.is_service_bot,
            limited=metrics.rate_limited["bot_token"].inc,
        )
        erasure = Erasure(storage, system_clock, system_entropy)
        yield Services(
            storage=storage,
            encryptor=encryptor,
            deeplinks=deeplinks,
            sign_in_sessions=sign_in_sessions,
            waiting=waiting,
            decisions=Decisions(storage, encryptor, system_clock, system_entropy, signals=signals),
            prompts=Prompts(storage, system_clock, signals=signals),
            signals=signals,
            prompt_ended=prompt_ended,
            developers=Developers(storage, system_clock, system_entropy),
            projects=projects,
            oidc_clients=OidcClients(storage, system_clock, system_entropy),
            plans=plans,
            erasure=erasure,
            users=Users(storage),
            exports=UserExports(storage, encryptor, system_clock),
            bots=bots,
            managed_bots=ManagedBots(
                storage,
                encryptor,
                system_clock,
                bots=bots,
                find_manager=deeplinks.find_manager,
                link_base=f"{settings.base_url}/sandbox/newbot/" if settings.sandbox else "https://t.me/newbot/",
            ),
            console_sessions=ConsoleSessions(storage, system_clock, system_entropy),
            developer_sign_ins=DeveloperSignIns(
                storage, encryptor, sign_in_sessions, system_clock, system_entropy, waiting=waiting
            ),
            invitations=Invitations(storage, system_clock, system_entropy),
            members=Members(storage, system_clock, system_entropy, base_url=settings.base_url),
            session_reader=SessionReader(storage, encryptor, system_clock),
            analytics=AnalyticsReader(storage, system_clock),
            audit=AuditLog(storage),
            deliveries=Deliveries(
                storage,
                encryptor,
                system_clock,
                system_entropy,
                webhooks,
                post=client.post,
                recorded=recorded.set,
            ),
            webhooks=webhooks,
            webhook_client=client,
            openid=_provider_services(settings, storage, encryptor, sign_in_sessions, waiting, signals=signals),
            recorded=recorded,
            metrics=metrics,
            readiness=Readiness(storage.ping, lambda: deeplinks.is_known or not settings.serves_api),
            limits=RateLimits(
                metrics,
                system_clock,
                generate_address=settings.generate_limit_address,
                generate_project=settings.generate_limit_project,
                local_only=settings.local_only,
                developer=settings.developer_limit,
                developer_write=settings.developer_write_limit,
            ),
            tracing=tracing,
        )


def _provider_services(
    settings: Settings,
    storage: Storage,
    encryptor: Encryptor,
    sessions: SignInSessions,
    waiting: Waiting,
    *,
    signals: Signals,
) -> ProviderServices:
    keys = SigningKeys(storage, encryptor, system_clock, system_entropy)
    sign_ins = OidcSignIns(
        storage,
        encryptor,
        sessions,
        system_clock,
        system_entropy,
        signals=signals,
        waiting=waiting,
        base_url=settings.base_url,
    )
    return ProviderServices(
        requests=AuthorizationRequests(storage, system_clock, system_entropy),
        sign_ins=sign_ins,
        tokens=Tokens(
            storage,
            encryptor,
            keys,
            system_clock,
            system_entropy,
            issuer=settings.base_url,
            email_domain=urlsplit(settings.base_url).hostname or "localhost",
        ),
        devices=Devices(storage, sign_ins, settings.base_url, system_clock, system_entropy),
        keys=keys,
    )


def _own_origin(base_url: str) -> str:
    """Return the service's origin as browsers write it; "" if no page can have it, or it is unknown."""
    try:
        return read_origin(base_url)
    except NotAnOrigin:
        return ""


def _deeplinks(settings: Settings) -> Deeplinks:
    token = settings.bot_token.get_secret_value() if settings.bot_token is not None else ""
    bots = f"{settings.base_url}/sandbox/phone/" if settings.sandbox else "https://t.me/"
    return Deeplinks(settings.messenger_link_base, bots, bot_id_of(token))
