"""Spans of HTTP requests: which caller may continue a trace, and what is recorded of an answer."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import DEFAULT_OFF, DEFAULT_ON, Sampler
from opentelemetry.trace import StatusCode, Tracer
from tests.tracing.conftest import tracer_to

from taproof.api.router import Router
from taproof.tracing.requests import TraceRequests

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = f"00-{TRACE}-{SPAN}-01"
NOT_SAMPLED = f"00-{TRACE}-{SPAN}-00"
PROXY = ("203.0.113.9", 0)
PUBLIC = ("203.0.113.9", "40000")
LOCAL_PROXY_NOT_TRUSTED = ("127.0.0.1", 0)
HOSTILE = (
    "",
    "canary",
    VALID.upper(),
    f"ff-{TRACE}-{SPAN}-01",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE}-{SPAN}-1",
    f"00-{TRACE}-{SPAN}-01-more",
    f"01-{TRACE}-{SPAN}-01-{'x' * 10_000}",
    f"{VALID},{VALID}",
    f"{VALID}\n{VALID}",
    f"00-{TRACE[:-1]}\u00e9-{SPAN}-01",
    f"{VALID}\0",
)


class Application:
    """Answers with a status, or raises."""

    def __init__(self) -> None:
        self.status = 200
        self.error: Exception | None = None
        self.headers: list[tuple[bytes, bytes]] = []

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        if self.error is not None:
            raise self.error
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def application() -> Application:
    return Application()


async def ask(
    application: Application,
    tracer: Tracer,
    *traceparent: str,
    continues: bool = False,
    client: Any = PUBLIC,
    path: str = "/oidc/canary",
    method: str = "GET",
) -> None:
    names = ("verify_public", "generate_public", "cancel_public", "verify", "generate", "cancel")
    sessions: Any = SimpleNamespace(**dict.fromkeys(names, application))
    router = Router(sessions, application, application, {"/oidc/*": application})
    headers = [(b"traceparent", each.encode("latin-1")) for each in traceparent]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "https",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"canary",
        "client": client,
        "headers": [(b"host", b"localhost"), *headers, (b"tracestate", b"a=canary"), (b"baggage", b"a=canary")],
    }

    async def send(_message: Any) -> None:
        pass

    await TraceRequests(router, tracer, continues=continues)(scope, cast("Any", None), send)


@pytest.mark.parametrize(
    ("continues", "client", "is_continued"),
    [
        (True, PROXY, True),
        (True, PUBLIC, False),
        (True, LOCAL_PROXY_NOT_TRUSTED, False),
        (True, None, False),
        (False, PROXY, False),
    ],
)
async def test_only_a_trusted_proxy_continues_a_trace(
    *, continues: bool, client: Any, is_continued: bool, application: Application
) -> None:
    """A `traceparent` of anyone else becomes a link: it decides neither the trace id nor whether a span is recorded."""
    cases: list[tuple[str, Sampler, bool]] = [
        (VALID, DEFAULT_ON, True),
        (VALID, DEFAULT_OFF, is_continued),
        (NOT_SAMPLED, DEFAULT_ON, not is_continued),
        (NOT_SAMPLED, DEFAULT_OFF, False),
    ]
    for traceparent, sampler, is_recorded in cases:
        exporter = InMemorySpanExporter()
        await ask(application, tracer_to(exporter, sampler), traceparent, continues=continues, client=client)
        spans = exporter.get_finished_spans()
        assert len(spans) == is_recorded, (traceparent, sampler.get_description())
        for span in spans:
            assert (span.parent is not None) == is_continued
            assert (f"{span.context.trace_id:032x}" == TRACE) == is_continued
            links = [(f"{each.context.trace_id:032x}", f"{each.context.span_id:016x}") for each in span.links]
            assert links == ([] if is_continued else [(TRACE, SPAN)])
            assert "canary" not in span.to_json()


@pytest.mark.parametrize("continues", [True, False])
async def test_a_hostile_traceparent_is_ignored(
    *,
    continues: bool,
    application: Application,
    tracer: Tracer,
    exporter: InMemorySpanExporter,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A malformed or repeated value is ignored, and nothing is logged."""
    for values in [*((each,) for each in HOSTILE), (VALID, VALID)]:
        await ask(application, tracer, *values, continues=continues, client=PROXY)
    spans = exporter.get_finished_spans()
    assert len(spans) == len(HOSTILE) + 1
    assert [span.to_json() for span in spans if span.parent or span.links or "canary" in span.to_json()] == []
    assert [each.getMessage() for each in caplog.records if each.name.startswith("opentelemetry")] == []


async def test_answers(application: Application, tracer: Tracer, exporter: InMemorySpanExporter) -> None:
    """A span has the route, the status and the error's code. Only a 5xx status is an error (semantic conventions)."""
    code = (b"x-error-code", b"some_code")
    cases: list[tuple[int, list[tuple[bytes, bytes]], dict[str, Any]]] = [
        (200, [], {}),
        (400, [code], {"taproof.error_code": "some_code"}),
        (503, [code], {"error.type": "some_code"}),
        (500, [], {"error.type": "500"}),
    ]
    for application.status, application.headers, expected in cases:
        exporter.clear()
        await ask(application, tracer, path="/api/v1/verify/public", method="CANARY")
        [span] = exporter.get_finished_spans()
        assert span.name == "_OTHER /api/v1/verify/public"
        assert dict(span.attributes or {}) == {
            "http.request.method": "_OTHER",
            "http.route": "/api/v1/verify/public",
            "http.response.status_code": application.status,
            "url.scheme": "https",
            **expected,
        }
        assert (span.status.status_code is StatusCode.ERROR) == (application.status >= 500)


async def test_a_raised_error(application: Application, tracer: Tracer, exporter: InMemorySpanExporter) -> None:
    """Of an error, only the class is recorded: its text and its traceback may contain a secret."""
    application.error = LookupError("canary")
    with pytest.raises(LookupError):
        await ask(application, tracer)
    [span] = exporter.get_finished_spans()
    assert (span.attributes or {})["error.type"] == "LookupError"
    assert (span.events, span.status.description, "canary" in span.to_json()) == ((), None, False)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/nowhere"])
async def test_untraced_paths(
    path: str, application: Application, tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    """Probes and unknown paths have no spans: they say nothing of the service's work."""
    await ask(application, tracer, path=path)
    assert exporter.get_finished_spans() == ()
