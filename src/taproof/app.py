"""The composition root: the only file that knows every part, and the one that starts and stops them."""

import asyncio
import contextlib
import gc
import resource
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import structlog
import typer
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server
from prometheus_client import CollectorRegistry
from starlette.responses import RedirectResponse

from taproof.bot.connection import BotApiUnreachableError, BotTokenRefusedError, create_bot, fetch_username
from taproof.bot.handlers import build_dispatcher
from taproof.bot.polling import LongPolling
from taproof.bot.updates import UpdateIntake
from taproof.bot.webhook import WebhookEndpoint, register_webhook
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import MessengerUnavailable, TaproofError
from taproof.core.sealing import Sealer
from taproof.logs import GRANIAN_LOGGING
from taproof.sandbox.demo import Demo
from taproof.sandbox.seed import Seed, seed
from taproof.sandbox.server import Sandbox
from taproof.service.analytics import AnalyticsReader
from taproof.service.developers import Developers
from taproof.service.housekeeping import Housekeeping
from taproof.service.installation import check_mode
from taproof.service.projects import Projects
from taproof.service.sessions import Sessions
from taproof.service.signin import SignIn
from taproof.service.webhooks import Webhooks
from taproof.settings import WEBHOOK_PATH, Settings, database_file
from taproof.storage.protocol import Storage
from taproof.store import master_key_file, open_sealer, open_storage
from taproof.web.developer_api import build_developer_api
from taproof.web.metrics import Metrics
from taproof.web.operations import build_operations
from taproof.web.server import AsgiApp, Router
from taproof.web.session_api import SessionApi
from taproof.web.transport import HttpsOnly
from taproof.worker.housekeeping import sweep_until
from taproof.worker.webhooks import WebhookSender, open_client

if TYPE_CHECKING:
    # Only taproof.bot imports aiogram: the import is costly, and done there with care.
    from aiogram import Bot

_USERNAME_RETRY: Final = 5.0
_DRAIN: Final = 12.0
"""Seconds that work under way gets after SIGTERM."""

_log = structlog.get_logger(__name__)


class AddressInUse(TaproofError):
    """The address to listen on is taken, or is not this machine's."""


class CertificateUnusable(TaproofError):
    """HTTPS cannot be served with this certificate and key."""


class ServerStopped(TaproofError):
    """The HTTP server stopped by itself. The log says why."""


class MessengerLink:
    """Knows the address that a session token is appended to, once the bot's username is known."""

    def __init__(self, base: str | None) -> None:
        self.base = base

    def __call__(self) -> str:
        """Return the address; raises MessengerUnavailable as long as it is not known."""
        if self.base is None:
            raise MessengerUnavailable
        return self.base


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases, wired."""

    storage: Storage
    sealer: Sealer
    link: MessengerLink
    signin: SignIn
    developers: Developers
    projects: Projects
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    """The sandbox messenger, the token of its pretend bot, and what the sandbox starts with."""

    messenger: Sandbox
    bot_token: str
    seed: Seed


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Yield the use cases on the store that the settings name."""
    storage = await open_storage(settings.database_url)
    try:
        await check_mode(storage, sandbox=settings.sandbox)
        sealer = await open_sealer(settings, storage)
        link = MessengerLink(settings.messenger_link_base)
        yield Services(
            storage=storage,
            sealer=sealer,
            link=link,
            signin=SignIn(storage, sealer, link, system_clock, system_entropy),
            developers=Developers(storage, system_clock, system_entropy),
            projects=Projects(storage, sealer, system_clock, system_entropy, allow_loopback_http=settings.sandbox),
            metrics=Metrics(CollectorRegistry(), version("taproof")),
        )
    finally:
        await storage.close()


async def serve(settings: Settings) -> None:
    """Run the service until SIGTERM or SIGINT, then finish what is under way.

    Raises:
        TaproofError: what the operator must mend first; the sentence says what.
    """
    _raise_file_limit()
    _check_address(settings)
    _check_certificate(settings)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings))
        others: dict[str, AsgiApp] = {}
        sandbox = await _add_sandbox(settings, services, others, stack) if settings.sandbox else None
        bot = _create_bot(settings, sandbox)
        stack.push_async_callback(bot.session.close)
        intake = UpdateIntake(bot, build_dispatcher(services.signin, system_clock), services.storage, system_clock)
        webhook_secret = services.sealer.derive(f"telegram webhook secret {bot.id}")
        if settings.bot_updates == "webhook":
            others[WEBHOOK_PATH] = WebhookEndpoint(intake, webhook_secret)
        server = build_server(settings, services, others)
        serving = asyncio.create_task(server.serve())
        try:
            await _until_listening(settings, serving)
            # Objects made so far live as long as the process: the collector need not look at them again.
            gc.collect()
            gc.freeze()
            gc.set_threshold(20_000, 20, 50)  # What a request allocates is freed by counting, not by the collector.
            _print_screen(settings, services.link, sandbox)
            client = await stack.enter_async_context(open_client())
            webhooks = Webhooks(services.storage, services.sealer, system_clock, f"Taproof/{version('taproof')}")
            await _run_parts(
                stopping,
                serving,
                [
                    _receive_updates(settings, services.link, bot, LongPolling(bot, intake), webhook_secret),
                    sweep_until(stopping, Housekeeping(services.storage, system_clock)),
                    WebhookSender(webhooks, client).run_until(stopping),
                ],
                server,
                sandbox,
            )
        finally:
            server.stop()  # type: ignore[no-untyped-call]
            await asyncio.wait([serving], timeout=_DRAIN)


async def _run_parts(
    stopping: asyncio.Event,
    serving: asyncio.Task[None],
    parts: list[Coroutine[Any, Any, None]],
    server: Server,
    sandbox: RunningSandbox | None,
) -> None:
    """Run until told to stop or until a part ends by itself, which none should; then wind down in order."""
    tasks = [asyncio.create_task(part) for part in parts]
    waiter = asyncio.create_task(stopping.wait())
    await asyncio.wait([waiter, serving, *tasks], return_when=asyncio.FIRST_COMPLETED)
    fell_over = not stopping.is_set()
    stopping.set()
    _log.info("stopping")
    # First no new updates, and what the workers have in hand is finished: a sandbox's bot needs the server for that.
    tasks[0].cancel()
    await asyncio.wait(tasks, timeout=_DRAIN)
    for task in tasks:
        task.cancel()
    if sandbox is not None:
        sandbox.messenger.stop_waiting()
    server.stop()  # type: ignore[no-untyped-call]
    await asyncio.wait([serving], timeout=_DRAIN)
    serving.cancel()  # Whoever has not sent the rest of a request by now will not hold up the end.
    results = await asyncio.gather(serving, *tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
    if fell_over:
        raise ServerStopped


async def _add_sandbox(
    settings: Settings, services: Services, others: dict[str, AsgiApp], stack: AsyncExitStack
) -> RunningSandbox:
    """Add the sandbox messenger and the demo."""
    # A new bot each time: update ids of an earlier run mean nothing to this one.
    number = 10**9 + int.from_bytes(system_entropy(4))
    token = f"{number}:{system_entropy(16).hex()}sbx"
    messenger = Sandbox(token, "taproof_sandbox_bot", system_clock, system_entropy, settings.base_url)
    stack.push_async_callback(messenger.close)
    seeded = await seed(services.developers, services.projects)

    async def read_webhook_secret() -> str:
        return await services.projects.read_webhook_secret(seeded.developer, seeded.project.id)

    others["/sandbox/*"] = messenger.app
    others["/demo/*"] = Demo(seeded.project.id, read_webhook_secret, system_clock, system_entropy).app
    others["/"] = RedirectResponse("/demo")
    services.link.base = settings.messenger_link_base or f"{settings.base_url}/sandbox/phone"
    return RunningSandbox(messenger, token, seeded)


def _create_bot(settings: Settings, sandbox: RunningSandbox | None) -> "Bot":
    if sandbox is None:
        token = settings.bot_token.get_secret_value() if settings.bot_token is not None else ""
        return create_bot(token, settings.bot_api_url)
    tls = None
    if settings.tls_cert is not None:
        # The sandbox's bot calls this very process over loopback: whatever the certificate says, nobody is in between.
        tls = ssl.create_default_context()
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return create_bot(sandbox.bot_token, f"{_own_address(settings)}/sandbox", tls=tls)


def _own_address(settings: Settings) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 — compared only.
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"


def build_server(settings: Settings, services: Services, others: dict[str, AsgiApp]) -> Server:
    """Return the HTTP server with every route; `others` are applications by the path that they answer."""
    storage, developers, projects = services.storage, services.developers, services.projects
    developer_api = build_developer_api(
        developers,
        projects,
        Sessions(storage, system_clock),
        AnalyticsReader(storage, system_clock),
        services.metrics,
    )
    router = Router(
        SessionApi(services.signin, projects, services.metrics),
        developer_api,
        build_operations(storage, services.metrics, developer_api),
        others,
    )
    return Server(
        HttpsOnly(router, settings.trusted_proxy),
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,  # With HTTP/2 on offer Granian waits without limit for a first byte: docs/decisions/0001.
        websockets=False,
        backlog=1024,
        http1_settings=HTTP1Settings(header_read_timeout=10_000),
        log_level=LogLevels.error,  # It warns at every start that embedding is experimental: docs/decisions/0001.
        log_dictconfig=GRANIAN_LOGGING,
        ssl_cert=settings.tls_cert,
        ssl_key=settings.tls_key,
        ssl_protocol_min=SSLProtocols.tls12,
    )


async def _receive_updates(
    settings: Settings, link: MessengerLink, bot: "Bot", polling: LongPolling, webhook_secret: str
) -> None:
    """Learn the bot's username, then receive its updates the way that the settings say."""
    while link.base is None:
        try:
            link.base = f"https://t.me/{await fetch_username(bot)}"
            _log.info("bot_known", link_base=link.base)
        except (BotApiUnreachableError, BotTokenRefusedError) as error:
            _log.error("bot_username_unknown", reason=str(error), advice="No sign-in can start yet. Still trying.")
            await asyncio.sleep(_USERNAME_RETRY)
        except Exception as error:  # noqa: BLE001 — whatever the Bot API answers, the HTTP API keeps serving.
            _log.error("bot_username_unknown", error=type(error).__name__, advice="This is a bug. Still trying.")
            await asyncio.sleep(_USERNAME_RETRY)
    if settings.bot_updates == "polling":
        await polling.run()
    else:
        await register_webhook(bot, f"{settings.base_url}{WEBHOOK_PATH}", webhook_secret)
        await asyncio.Event().wait()


def _raise_file_limit() -> None:
    """Use all the file descriptors that may be used: each connection takes one, and the usual soft limit is 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _check_address(settings: Settings) -> None:
    """Find out before anything is opened whether the port is free; the server itself would share a taken one."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise AddressInUse(
                f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. Stop what listens there, or "
                "choose another port with --port (TAPROOF_PORT)."
            ) from error


def _check_certificate(settings: Settings) -> None:
    """Find out whether certificate and key can be served with; the server's own sentence would name no option."""
    if settings.tls_cert is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise CertificateUnusable(
            f"HTTPS cannot be served with this certificate and key ({error}). Check that --tls-cert (TAPROOF_TLS_CERT) "
            "is the certificate chain and --tls-key (TAPROOF_TLS_KEY) its unencrypted private key, both in PEM form."
        ) from error


async def _until_listening(settings: Settings, serving: asyncio.Task[None]) -> None:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 — compared only.
    while not serving.done():
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(host, settings.port)
            writer.close()
            return
        await asyncio.sleep(0.01)
    await serving
    raise ServerStopped


def _print_screen(settings: Settings, link: MessengerLink, sandbox: RunningSandbox | None) -> None:
    """Say in one screen where everything is."""
    base = settings.base_url
    lines = [("API", f"{base}/api/v1"), ("API reference", f"{base}/docs")]
    if sandbox is not None:
        lines += [
            ("Demo", f"{base}/demo   <- open this in a browser"),
            ("Phone", f"{base}/sandbox/phone"),
            ("Project id", sandbox.seed.project.id),
            ("Access token", sandbox.seed.access_token),
        ]
    lines += [
        ("Listens on", f"{settings.host}:{settings.port}"),
        ("Health", f"{base}/healthz  {base}/readyz  {base}/metrics"),
        ("Database", str(database_file(settings.database_url).absolute())),
    ]
    if settings.master_key is None:
        lines.append(("Master key", f"{master_key_file(settings.database_url).absolute()}   <- back this up too"))
    kind = "the sandbox: pretend users, for development and CI only" if settings.sandbox else "listening"
    typer.echo(f"\nTaproof {version('taproof')} — {kind}\n")
    for label, value in lines:
        typer.echo(f"  {label:<14}{value}")
    if link.base is None:
        typer.echo("\nSign-ins can start once the bot's name is known: the log says bot_known.")
    typer.echo("\nStop it with Ctrl+C.\n")
