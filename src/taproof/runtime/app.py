"""The composition root: it builds, starts and stops all parts.

It composes `services.py` (the use cases), `listener.py` (address, certificate, HTTP server), `bot_runtime.py` (the bot
of this process), `sandbox_mode.py` and `start_screen.py`. `supervisor.py` runs it in several processes.
"""

import asyncio
import contextlib
import encodings.idna  # noqa: F401 — otherwise, the first name lookup imports it on the event loop.
import gc
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, get_args

import structlog
import uvloop
from granian.server.embed import Server
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp

from taproof.api.health import build_operations, build_watching
from taproof.api.login import LoginApi
from taproof.api.mini_apps import MiniAppApi
from taproof.api.router import Router
from taproof.api.sessions import SessionApi
from taproof.config.settings import WEBHOOK_PATH, Settings
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable
from taproof.core.mini_apps import PRODUCTION_KEY, TEST_KEY
from taproof.http.body import BODY_SECONDS, BodiesInTime
from taproof.http.cells import SharedMetrics
from taproof.http.limits.pages import PageLimit
from taproof.http.metrics import LeaderWork, ReadyCheck
from taproof.http.sdk_files import SdkFiles
from taproof.jobs.housekeeping import sweep_until
from taproof.jobs.leader import LeaderElection, Work
from taproof.oidc.services import CALLS, PAGES
from taproof.runtime.bot_runtime import BotRuntime, connect_messenger
from taproof.runtime.listener import ServerStopped, create_server, raise_file_limit, until_listening
from taproof.runtime.pages import Pages
from taproof.runtime.services import Services, open_services
from taproof.runtime.start_screen import print_screen
from taproof.service.housekeeping import Housekeeping
from taproof.service.sessions.mini_apps import MiniAppSignIns
from taproof.webhooks.logouts import LogoutSender
from taproof.webhooks.sender import WebhookSender

if TYPE_CHECKING:
    from taproof.runtime.sandbox_mode import RunningSandbox

_FINISH_PARTS: Final = 17.0
"""Seconds to finish updates, deliveries and leases after SIGTERM. `_FINISH_REQUESTS` is added for open requests."""
_FINISH_REQUESTS: Final = 12.0

_BOT_LOOK: Final = 5.0
"""Seconds between two reads of what other processes know about the service's own bot."""
_READY_CHECK: Final = 5.0
"""Seconds between two checks of readiness: short for an alert, and next to nothing for the store."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sibling:
    """The additional parts of a process that shares its port with others: see `supervisor.py`."""

    metrics: SharedMetrics
    tell_ready: Callable[[], None]


@dataclass(slots=True)
class _Parts:
    """The background parts. They start once the server listens, and run until the process stops."""

    finishing: list[Coroutine[Any, Any, None]] = field(default_factory=list)
    """Parts that stop by themselves: they wait for the stopping event, and finish their current work."""
    cancelled: list[Coroutine[Any, Any, None]] = field(default_factory=list)
    """Parts that are cancelled: they have no work to finish."""


def run(settings: Settings, sibling: Sibling | None = None) -> None:
    """Run `serve` on uvloop: a request takes a sixth less CPU time than on the standard library's event loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings, sibling))


async def serve(settings: Settings, sibling: Sibling | None = None) -> None:
    """Run the service until SIGTERM or SIGINT, then finish the work in progress.

    `listener.check_listening` has checked the settings. The only process of a service prints the start screen.
    """
    raise_file_limit()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    _log.debug("starting", role=settings.role, workers=settings.workers)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings, sibling.metrics if sibling else None))
        sandbox: RunningSandbox | None = None
        apps: dict[str, ASGIApp] = {}
        if settings.sandbox:
            from taproof.runtime.sandbox_mode import start_sandbox  # noqa: PLC0415 — only the sandbox loads it.

            sandbox = await start_sandbox(settings, services)
            stack.push_async_callback(sandbox.messenger.close)
            apps.update({path: BodiesInTime(each, BODY_SECONDS) for path, each in sandbox.apps.items()})
            services.deeplinks.set_service_bot(sandbox.link_base, sandbox.bot_id)
        apps |= mini_app_apps(services, sandbox.messenger.init_data_key if sandbox else telegram_key(settings))
        token = sandbox.bot_token if sandbox else settings.service_bot_token
        messenger = connect_messenger(settings, services, token) if settings.needs_bot else None
        if messenger is not None:
            apps |= webhook_apps(settings, messenger.webhook, messenger.project_bot_webhooks)
        # No sign-in can be created before, so the messenger is asked while the server starts.
        watching = asyncio.create_task(_watch_service_bot(settings, services, messenger))
        stack.callback(watching.cancel)
        pages = Pages(settings, services, sandbox.developer if sandbox else None)
        server = create_server(settings, build_app(settings, services, apps, pages))
        _spare_collector()
        serving = asyncio.create_task(server.serve())
        try:
            await until_listening(settings, serving)
            if sibling is not None:
                sibling.tell_ready()
            else:
                invitation = sandbox.invitation if sandbox else await invite_first(settings, services)
                seed = sandbox.seed if sandbox else None
                print_screen(settings, seed, invitation, link_known=services.deeplinks.is_known)
            parts = await _choose_parts(settings, services, messenger, stopping)
            parts.cancelled.append(_finish(watching))
            if settings.serves_api:
                parts.finishing.append(_run_pages(pages, stopping))
            await _run_parts(stopping, serving, parts, server, sandbox)
        finally:
            server.stop()  # type: ignore[no-untyped-call]
            await asyncio.wait([serving], timeout=_FINISH_REQUESTS)


async def invite_first(settings: Settings, services: Services) -> str | None:
    """Return the code of an invitation for the first developer, for the start screen of a node with a console."""
    return await services.invitations.invite_first() if settings.serves_api else None


def _spare_collector() -> None:
    """Let the garbage collector skip the objects created so far, which live as long as the process.

    They are not collected before: that would block the event loop for a tenth of a second.
    """
    gc.freeze()
    # Reference counting frees the objects of requests. Failed connections leave cycles, to be freed in small steps.
    gc.set_threshold(5_000, 20, 50)
    gc.enable()


async def _run_pages(pages: Pages, stopping: asyncio.Event) -> None:
    gc.disable()
    await pages.build()
    _spare_collector()
    await pages.run_until(stopping)


def telegram_key(settings: Settings) -> bytes:
    """Return the public key with which Telegram signs the data of Mini Apps in this environment."""
    return TEST_KEY if settings.telegram_environment == "test" else PRODUCTION_KEY


def mini_app_apps(services: Services, public_key: bytes) -> dict[str, ASGIApp]:
    """Return the applications for Mini Apps, by path. The messenger signs their data with the key to `public_key`."""
    sign_ins = MiniAppSignIns(
        services.storage,
        services.encryptor,
        services.sign_in_sessions,
        system_clock,
        system_entropy,
        signals=services.signals,
        public_key=public_key,
    )
    api = MiniAppApi(sign_ins, session_api(services), services.metrics)
    return {"/api/v1/mini-app/public": api.sign_in_public, "/api/v1/mini-app": api.sign_in}


def webhook_apps(settings: Settings, webhook: ASGIApp, project_bot_webhooks: ASGIApp) -> dict[str, ASGIApp]:
    """Return the applications to which the messenger posts updates, by path; none if the bot polls."""
    if settings.bot_updates != "webhook":
        return {}
    return {
        f"{WEBHOOK_PATH}/*": BodiesInTime(project_bot_webhooks, BODY_SECONDS),
        # Second, because its path is also a prefix of the first one.
        WEBHOOK_PATH: BodiesInTime(webhook, BODY_SECONDS),
    }


def session_api(services: Services) -> SessionApi:
    """Return the session endpoints."""
    return SessionApi(services.sign_in_sessions, services.waiting, services.projects, services.metrics, services.limits)


def build_app(settings: Settings, services: Services, others: Mapping[str, ASGIApp], pages: Pages) -> ASGIApp:
    """Return the application with every route of this role; `others` are more applications, by path."""
    if not settings.serves_api:
        return build_watching(services.readiness, services.metrics)
    login = LoginApi(services.developer_sign_ins, services.developers, services.metrics, services.limits, system_clock)
    operations = build_operations(services.readiness, services.metrics, pages.documents)
    router = Router(
        session_api(services),
        pages.developer_api,
        operations,
        {
            "/metrics": PageLimit(operations, services.limits),
            "/api/v1/login": login.start,
            "/api/v1/login/token": login.create_token,
            "/sdk/*": SdkFiles(version("taproof")),
            "/": RedirectResponse("/console"),
            "/console/*": pages.console,
            **dict.fromkeys(CALLS, pages.openid_calls),
            **dict.fromkeys(PAGES, pages.openid_pages),
            **others,
        },
    )
    return services.tracing.requests(router)


async def _choose_parts(
    settings: Settings,
    services: Services,
    messenger: BotRuntime | None,
    stopping: asyncio.Event,
) -> _Parts:
    """Return the background parts of this role."""
    parts = _Parts()
    storage = services.storage
    # The name is unique for each process of each node, and readable in the table of leases.
    holder = f"{socket.gethostname()} {os.getpid()} {system_entropy(8).hex()}"

    def lead(name: str, shown_as: LeaderWork, work: Work) -> None:
        show = partial(services.metrics.show_leader, shown_as)
        election = LeaderElection(storage.leases, system_clock, holder, name, work, show=show)
        parts.finishing.append(election.run_until(stopping))

    parts.cancelled.append(_watch_readiness(services))
    if settings.serves_api:
        parts.finishing.append(services.waiting.run_until(stopping))
    if settings.role in {"all", "bot"} and messenger is not None:
        lead(f"bot {messenger.bot.id}", "bot", messenger.receive_updates)
        lead("project bots", "project_bots", messenger.project_bots.run)
        parts.finishing.append(messenger.ended_prompts.run_until(stopping))
    if settings.role in {"all", "worker"}:
        days, audit_days = settings.session_retention_days, settings.audit_days
        housekeeping = Housekeeping(
            storage, services.encryptor, system_clock, system_entropy, days, audit_days=audit_days
        )
        lead("housekeeping", "housekeeping", lambda _since: sweep_until(stopping, housekeeping))
        post = services.webhook_client.post
        sender = WebhookSender(services.webhooks, post, services.recorded, services.metrics)
        parts.finishing.append(sender.run_until(stopping))
        logouts = LogoutSender(services.logouts, post, services.metrics)
        parts.finishing.append(logouts.run_until(stopping))
    return parts


async def _watch_readiness(services: Services) -> None:
    """Report in the metrics whether sign-ins can work in this process, as /readyz does."""
    while True:
        missing = await services.readiness.missing()
        for check in get_args(ReadyCheck):
            services.metrics.show_ready(check, check not in missing)
        await asyncio.sleep(_READY_CHECK)


async def _watch_service_bot(settings: Settings, services: Services, messenger: BotRuntime | None) -> None:
    """Keep this process's data about the service's own bot up to date until cancelled.

    A process without the bot's token reads it from the store, where the processes with the token record it.
    """
    if messenger is not None:
        await messenger.watch.run()
    while settings.serves_api:
        with contextlib.suppress(StoreUnavailable):
            if (account := await services.bots.read_service_bot()) is not None:
                services.deeplinks.know(account)
        await asyncio.sleep(_BOT_LOOK)
    await asyncio.Event().wait()


async def _finish(task: asyncio.Task[None]) -> None:
    await task


async def _run_parts(
    stopping: asyncio.Event,
    serving: asyncio.Task[None],
    parts: _Parts,
    server: Server,
    sandbox: "RunningSandbox | None",
) -> None:
    """Run until a stop signal, or until a part ends by itself, which is a bug; then stop everything in order."""
    finishing = [asyncio.create_task(part) for part in parts.finishing]
    cancelled = [asyncio.create_task(part) for part in parts.cancelled]
    waiter = asyncio.create_task(stopping.wait())
    await asyncio.wait([waiter, serving, *finishing, *cancelled], return_when=asyncio.FIRST_COMPLETED)
    fell_over = not stopping.is_set()
    stopping.set()
    _log.info("stopping")
    # First, stop the updates and let the parts finish their work. The sandbox's bot needs the server for that.
    for task in cancelled:
        task.cancel()
    if finishing:
        await asyncio.wait(finishing, timeout=_FINISH_PARTS)
    for task in finishing:
        task.cancel()
    if sandbox is not None:
        sandbox.messenger.stop_waiting()
    server.stop()  # type: ignore[no-untyped-call]
    await asyncio.wait([serving], timeout=_FINISH_REQUESTS)
    serving.cancel()  # A client that has not sent the rest of a request by now must not delay the stop.
    results = await asyncio.gather(serving, *finishing, *cancelled, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
    if fell_over:
        raise ServerStopped
