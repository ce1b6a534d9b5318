"""Wire the use cases of one process to the store, the messenger and each other.

`app.py` adds the server and the background parts.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields
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
from taproof.messengers.telegram.bot_api import BotApiClient
from taproof.oidc.services import ProviderServices
from taproof.runtime.bot_api import open_bot_api
from taproof.runtime.deeplinks import Deeplinks
from taproof.runtime.geoip import place_finder
from taproof.runtime.store import open_encryptor, open_storage
from taproof.runtime.traces import Tracing, open_traces
from taproof.service.bots import Bots
from taproof.service.installation import check_mode
from taproof.service.oidc.access_tokens import AccessTokens
from taproof.service.oidc.devices import Devices
from taproof.service.oidc.grants import Grants
from taproof.service.oidc.issuing import TokenIssuer
from taproof.service.oidc.keys import SigningKeys
from taproof.service.oidc.logouts import Logouts
from taproof.service.oidc.requests import AuthorizationRequests
from taproof.service.oidc.sign_in import OidcSignIns
from taproof.service.oidc.sign_outs import SignOuts
from taproof.service.oidc.tokens import Tokens
from taproof.service.plans import Plans
from taproof.service.projects import Projects
from taproof.service.sessions.create_and_verify import SignInSessions
from taproof.service.sessions.decide import Decisions
from taproof.service.sessions.prompts import Prompts
from taproof.service.sessions.wait import Waiting
from taproof.service.signals import Signals
from taproof.service.use_cases import UseCases, assemble
from taproof.service.webhooks import Webhooks
from taproof.storage.protocol import Storage
from taproof.webhooks.http_client import WebhookClient, open_webhook_client


@dataclass(frozen=True, slots=True, kw_only=True)
class Services(UseCases):
    """The use cases of a process, and the parts that they share."""

    storage: Storage
    encryptor: Encryptor
    deeplinks: Deeplinks
    decisions: Decisions
    prompts: Prompts
    signals: Signals
    prompt_ended: asyncio.Event
    """Set when a prompt must be edited, so that this process's bot does so immediately."""
    recorded: asyncio.Event
    """Set when an event may be due, so that this process's sender checks immediately."""
    bot_api: BotApiClient
    """Shared by all bots."""
    webhook_client: WebhookClient
    openid: ProviderServices
    logouts: Logouts
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
        project_bots = f"{settings.base_url}/sandbox/phone/" if settings.sandbox else "https://t.me/"
        deeplinks = Deeplinks(settings.messenger_link_base, project_bots, bot_id_of(settings.service_bot_token))
        recorded, prompt_ended = asyncio.Event(), asyncio.Event()
        projects = Projects(
            storage,
            encryptor,
            system_clock,
            system_entropy,
            address_rules=settings.address_rules,
            webhook_ports=settings.webhook_ports,
            # Only the sandbox accepts webhook URLs on plain HTTP, to loopback.
            allow_loopback_http=settings.sandbox,
            limits=settings.plan_projects,
        )
        limits = {"projects": settings.plan_projects, "sign_ins": settings.plan_sign_ins}
        plans = Plans(storage, system_clock, system_entropy, **limits)
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
            deeplinks.of_bot,
            system_clock,
            system_entropy,
            signals=signals,
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
        use_cases = assemble(
            storage,
            encryptor,
            system_clock,
            system_entropy,
            sign_in_sessions=sign_in_sessions,
            waiting=waiting,
            projects=projects,
            plans=plans,
            bots=bots,
            webhooks=webhooks,
            post=client.post,
            event_recorded=recorded.set,
            find_manager=deeplinks.find_manager,
            new_bot_link_base=f"{settings.base_url}/sandbox/newbot/" if settings.sandbox else "https://t.me/newbot/",
            base_url=settings.base_url,
        )
        openid = _provider_services(settings, storage, encryptor, sign_in_sessions, waiting, signals=signals)
        logouts = Logouts(
            storage,
            openid.keys,
            system_clock,
            system_entropy,
            issuer=settings.base_url,
            user_agent=f"Taproof/{version('taproof')}",
        )
        yield Services(
            **{each.name: getattr(use_cases, each.name) for each in fields(use_cases)},
            storage=storage,
            encryptor=encryptor,
            deeplinks=deeplinks,
            decisions=Decisions(storage, encryptor, system_clock, system_entropy, signals=signals),
            prompts=Prompts(storage, system_clock, signals=signals),
            signals=signals,
            prompt_ended=prompt_ended,
            recorded=recorded,
            bot_api=bot_api,
            webhook_client=client,
            openid=openid,
            logouts=logouts,
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
    email_domain = urlsplit(settings.base_url).hostname or "localhost"
    issuing = TokenIssuer(encryptor, keys, issuer=settings.base_url, email_domain=email_domain)
    return ProviderServices(
        requests=AuthorizationRequests(storage, keys, system_clock, system_entropy, settings.base_url),
        sign_ins=sign_ins,
        tokens=Tokens(storage, encryptor, issuing, system_clock, system_entropy),
        access_tokens=AccessTokens(storage, issuing, system_clock),
        grants=Grants(storage, issuing, system_clock, system_entropy),
        sign_outs=SignOuts(storage, keys, system_clock, settings.base_url),
        devices=Devices(storage, sign_ins, settings.base_url, system_clock, system_entropy),
        keys=keys,
    )


def _own_origin(base_url: str) -> str:
    """Return the service's origin as browsers write it; "" if no page can have it, or it is unknown."""
    try:
        return read_origin(base_url)
    except NotAnOrigin:
        return ""
