"""The span of an HTTP request (https://opentelemetry.io/docs/specs/semconv/http/http-spans/, HTTP server).

`url.path`, `url.query`, `client.address` and `user_agent.original` are left out: they can contain secrets and personal
data.
"""

from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Tracer, get_current_span, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import Message, Receive, Scope, Send

from taproof.api.router import Router
from taproof.core.webhook_url import is_loopback
from taproof.tracing.spans import NO_PARENT, fail_span

_UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics", "/sandbox/*"})
"""The routes for monitoring, and the simulated messenger."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_LONGEST_TRACEPARENT: Final = 128
"""Version 00 has 55 characters, and a later version may append to it. The library logs a warning for a longer one."""
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class TraceRequests:
    """ASGI application that records a span for each request that the router answers.

    A caller can name its own span in `traceparent` (https://www.w3.org/TR/trace-context/). The request is then linked
    to it. It continues the caller's trace only if `continues` is true and a trusted proxy sent the request. Otherwise
    anyone could decide what is recorded, and add spans to any trace. `tracestate` and `baggage` are never read.
    """

    def __init__(self, router: Router, tracer: Tracer, *, continues: bool) -> None:
        self._router = router
        self._tracer = tracer
        self._continues = continues

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        route = self._router.route_of(scope["raw_path"])
        if route is None or route in _UNTRACED:
            await self._router(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        is_continued = self._continues and _is_from_trusted_proxy(scope)
        span = self._tracer.start_span(
            f"{method} {route}",
            _read_caller(scope) if is_continued else NO_PARENT,
            SpanKind.SERVER,
            {"http.request.method": method, "http.route": route, "url.scheme": scope["scheme"]},
        )
        if not span.is_recording():
            await self._router(scope, receive, send)
            return
        if not is_continued:
            span.add_link(get_current_span(_read_caller(scope)).get_span_context())

        async def recording_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                _record_answer(span, message)
            await send(message)

        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                await self._router(scope, receive, recording_send)
            except Exception as error:
                fail_span(span, error)
                raise
            finally:
                # Set by FastAPI and Starlette, for a route within one of their applications.
                inner_route = getattr(scope.get("route"), "path_format", route)
                span.update_name(f"{method} {inner_route}")
                span.set_attribute("http.route", inner_route)


def _record_answer(span: Span, start: Message) -> None:
    status: int = start["status"]
    span.set_attribute("http.response.status_code", status)
    code = next((value.decode() for name, value in start["headers"] if name == b"x-error-code"), "")
    if status >= 500:
        fail_span(span, code or str(status))
    elif code:
        # Not `error.type`: by the conventions, a refused request is no error of the server.
        span.set_attribute("taproof.error_code", code)


def _is_from_trusted_proxy(scope: Scope) -> bool:
    """Return whether a trusted proxy sent the request: see `http/https_only.py`, which sets the port to 0.

    It also does so for a client on this machine behind a proxy that is not trusted. Its address is loopback.
    """
    client = scope["client"]
    return client is not None and client[1] == 0 and not is_loopback(client[0])


def _read_caller(scope: Scope) -> Context:
    """Return the caller's span as a context; an empty one without a single valid `traceparent`."""
    found = [value for name, value in scope["headers"] if name == b"traceparent"]
    if len(found) != 1 or len(found[0]) > _LONGEST_TRACEPARENT:
        return NO_PARENT
    return _PROPAGATOR.extract({"traceparent": found[0].decode("latin-1")}, NO_PARENT)
