"""Builds the sandbox messenger: one ASGI application for everything below /sandbox."""

from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.stacks import describe_stack
from taproof.sandbox.control.api import REPLY_SECONDS, ControlApi
from taproof.sandbox.control.bots import BOTS_PATH, BotsControl
from taproof.sandbox.control.errors import (
    HostNotAllowed,
    SandboxError,
    SandboxFailed,
    SandboxMethodNotAllowed,
    SandboxPathNotFound,
)
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.phone.page import phone_routes
from taproof.sandbox.telegram.bots import SandboxBots
from taproof.sandbox.telegram.faults import Faults
from taproof.sandbox.telegram.init_data import InitDataSigner
from taproof.sandbox.telegram.server import PREFIX, BotApi

_log = structlog.get_logger(__name__)


class Sandbox:
    """The simulated messenger, with the service's own bot. The control API can add more bots.

    `app` answers full paths: /sandbox, /sandbox/phone, /sandbox/users, /sandbox/bots, /sandbox/faults,
    /sandbox/bot<token>/<method>.

    `base_url` is the address that clients use. Only requests to its host and to this machine's loopback are answered.
    `reply_seconds` is the longest wait of `open` and `tap` for the bot.
    """

    def __init__(
        self,
        bot_token: str,
        bot_username: str,
        clock: Clock,
        entropy: Entropy,
        base_url: str,
        *,
        reply_seconds: float = REPLY_SECONDS,
    ) -> None:
        own_hosts = OwnHosts(base_url)
        faults = Faults()
        self.bots: Final = SandboxBots(own_hosts, clock, entropy, base_url)
        self.bots.add(bot_username, token=bot_token).methods.can_manage_bots = True
        signer = InitDataSigner(clock, entropy)
        self.init_data_key: Final = signer.public_key
        app = Starlette(
            routes=[
                *phone_routes(),
                *ControlApi(self.bots, faults, own_hosts, signer, reply_seconds).routes,
                *BotsControl(self.bots, own_hosts).routes,
                Route(PREFIX + "{call:path}", BotApi(self.bots, faults)),
            ],
            exception_handlers={SandboxError: _on_error, HTTPException: _on_http_exception, Exception: _on_bug},
        )
        self.app: Final = _Gate(app, own_hosts)

    def stop_waiting(self) -> None:
        """End every long poll immediately and refuse new ones, so that a stopping server does not wait for them."""
        self.bots.close()

    async def close(self) -> None:
        """End all waiting calls, and stop sending updates."""
        self.stop_waiting()
        for bot in self.bots:
            await bot.webhook.set(None)


class _Gate:
    """ASGI middleware that refuses hosts other than the sandbox's own, and logs unexpected errors.

    Another site can point its own name to this machine (DNS rebinding), so that its pages share the sandbox's origin.
    The Host header reveals this. Calls of the Bot API are exempt, since they need a token.
    """

    def __init__(self, app: ASGIApp, own_hosts: OwnHosts) -> None:
        self.app = app
        self._own_hosts = own_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http":
            hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            is_own = len(hosts) == 1 and self._own_hosts.include_authority(hosts[0])
            is_bot_call = scope["path"].startswith(PREFIX) and not scope["path"].startswith(BOTS_PATH)
            if not is_own and not is_bot_call:
                app = HostNotAllowed().response()
        try:
            await app(scope, receive, send)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 — if it propagated, the server would log its message.
            _log.error("sandbox_failed", error=type(error).__name__, stack=describe_stack(error))


async def _on_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, SandboxError)  # noqa: S101 — it is registered only for this type.
    return error.response()


async def _on_http_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 — it is registered only for this type.
    refusal = SandboxMethodNotAllowed() if error.status_code == 405 else SandboxPathNotFound()
    response = refusal.response()
    response.headers.update(error.headers or {})
    return response


async def _on_bug(_: Request, __: Exception) -> Response:
    """Answer 500. Starlette then raises the error again, and `_Gate` logs it."""
    return SandboxFailed().response()
