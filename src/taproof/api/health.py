"""Serve health, readiness and metrics."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, exposition
from prometheus_client.openmetrics import exposition as openmetrics
from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.core.errors import NotFound, NotReady, StoreUnavailable
from taproof.http.errors import send_error
from taproof.http.fixed_answer import FixedAnswer, allows_get, send_answer
from taproof.http.metrics import Metrics, ReadyCheck

_log = structlog.get_logger(__name__)
_UNCACHED: Final = ((b"cache-control", b"no-store"),)
_OK: Final = FixedAnswer(b'{"status":"ok"}', "application/json", _UNCACHED)
_ONLY_WATCHING: Final = "This node answers /healthz, /readyz and /metrics only."
_REFUSED: Final = re.compile(rb"q=0(\.0*)?")
_NO_STORE: Final = "The store does not answer, or is read-only."
_NO_BOT: Final = (
    "The username of the service's bot is not known yet, because the messenger has not answered or refuses the bot "
    "token. The log gives the reason: see bot_username_unknown."
)


Ping = Callable[[], Awaitable[None]]
"""Returns when the store answers; raises StoreUnavailable when it does not."""


class Readiness:
    """Tells whether this process can do its work.

    `bot_known` returns whether sign-in links can be made: the username of the service's bot is known. It is True on a
    node without the API, which makes none.
    """

    def __init__(self, ping: Ping, bot_known: Callable[[], bool]) -> None:
        self._ping = ping
        self._bot_known = bot_known

    async def missing(self) -> dict[ReadyCheck, str]:
        """Return a sentence for each missing part; nothing if the process is ready."""
        missing: dict[ReadyCheck, str] = {}
        try:
            await self._ping()
        except Exception as error:  # noqa: BLE001 — after any error, the process is not ready.
            missing["store"] = _NO_STORE
            if not isinstance(error, StoreUnavailable):
                _log.error("ping_failed", error=type(error).__name__)
        if not self._bot_known():
            missing["bot_name"] = _NO_BOT
        return missing


def build_operations(readiness: Readiness, metrics: Metrics, documents: ASGIApp) -> ASGIApp:
    """Return the application that serves /healthz, /readyz, /metrics and the documents. All routes accept GET and HEAD.

    `documents` serves /openapi.json, /docs and its stylesheet.
    """
    of_documents = dict.fromkeys(("/openapi.json", "/docs", "/docs/docs.css"), documents)
    return Operations({**_watching(readiness, metrics), **of_documents})


def build_watching(readiness: Readiness, metrics: Metrics) -> ASGIApp:
    """Return the application for a node without the API. It serves /healthz, /readyz and /metrics; the rest is 404."""
    return Operations(_watching(readiness, metrics), _ONLY_WATCHING)


def _watching(readiness: Readiness, metrics: Metrics) -> dict[str, ASGIApp]:
    return {
        # Does not query the store: an orchestrator must not restart the process because the store is unavailable.
        "/healthz": _OK,
        "/readyz": partial(_tell_readiness, readiness),
        "/metrics": partial(_expose, metrics.registry),
    }


class Operations:
    """Routes each request to the application for its path, which is compared undecoded: see `router.py`."""

    def __init__(self, by_path: dict[str, ASGIApp], elsewhere: str | None = None) -> None:
        self._by_path = {path.encode(): app for path, app in by_path.items()}
        self._elsewhere = elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        app = self._by_path.get(scope["raw_path"])
        if app is None:
            await send_error(send, NotFound(self._elsewhere))
        else:
            await app(scope, receive, send)


async def _tell_readiness(readiness: Readiness, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200 if this process can do its work, and otherwise 503 with a sentence for each missing part."""
    if not await allows_get(scope, send):
        return
    if missing := await readiness.missing():
        await send_error(send, NotReady(" ".join(missing.values())))
    else:
        await _OK(scope, receive, send)


async def _expose(registry: CollectorRegistry, scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer with the metrics in the Prometheus text format, or in OpenMetrics. `http/metrics.py` lists them."""
    if not await allows_get(scope, send):
        return
    write: Callable[..., bytes] = exposition.generate_latest
    content_type = exposition.CONTENT_TYPE_PLAIN_0_0_4
    if _accepts_openmetrics(scope):
        write, content_type = openmetrics.generate_latest, openmetrics.CONTENT_TYPE_LATEST
    # In a thread, because it reads files of /proc, and one for each process that shares the port.
    text = await asyncio.to_thread(write, registry)
    await send_answer(scope, send, text, content_type, _UNCACHED)


def _accepts_openmetrics(scope: Scope) -> bool:
    """Return whether the client's Accept header names OpenMetrics, without refusing it (q=0).

    Clients that can read OpenMetrics prefer it. The library's own function repeats parts of the header in its answer.
    """
    for name, value in scope["headers"]:
        for media_range in value.split(b",") if name == b"accept" else ():
            media_type, *parameters = (part.strip().lower() for part in media_range.split(b";"))
            if media_type == b"application/openmetrics-text":
                return not any(_REFUSED.fullmatch(each) for each in parameters)
    return False
