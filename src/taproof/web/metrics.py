"""What is counted. No identifier, token or name is ever a label.

| metric | labels | counts |
|---|---|---|
| `taproof_sessions_created_total` | none | sign-in sessions that were created |
| `taproof_polls_total` | `status` | answered verify calls, by the status that they answered |
| `taproof_developer_requests_total` | `method`, `route`, `status` | answered requests to the developer API |
| `taproof_info` | `version` | always 1: the release that runs |
| `process_*` | none | CPU, memory, file descriptors and start time of this process |
"""

from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Info, ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taproof.core.model import Status

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The counters of the HTTP API.

    `sessions_created` and the children in `polls`, by status, are bound beforehand: on the polled path counting is
    one call.
    """

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        self.registry = registry
        self.sessions_created = Counter(
            "taproof_sessions_created_total", "Sign-in sessions that were created.", registry=registry
        )
        polls = Counter("taproof_polls_total", "Answered verify calls.", ["status"], registry=registry)
        self.polls: dict[str, Counter] = {status: polls.labels(status) for status in get_args(Status)}
        self.developer_requests = Counter(
            "taproof_developer_requests_total",
            "Answered requests to the developer API.",
            ["method", "route", "status"],
            registry=registry,
        )
        Info("taproof", "The release that runs.", registry=registry).info({"version": version})
        ProcessCollector(registry=registry)


class CountRequests:
    """ASGI middleware: counts the answers of a FastAPI application by the template of the route that gave them."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._requests = metrics.developer_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application and count its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                # A client chooses path and method freely, so both are reduced to what this service knows.
                method = scope["method"] if scope["method"] in _METHODS else "other"
                route = getattr(scope.get("route"), "path_format", "unmatched")
                self._requests.labels(method, route, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counting_send)
