"""A receiver of OTLP over HTTP: it decodes each export with OpenTelemetry's own protocol definitions."""

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class Exported:
    """A received span. Ids are in hex; `parent` is "" at the beginning of a trace."""

    service: str
    trace: str
    id: str
    parent: str
    name: str
    kind: str
    attributes: dict[str, Any]
    links: tuple[tuple[str, str], ...]
    failed: bool


class OtlpReceiver:
    """Listens on a free port of loopback while it is used as a context manager."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        """Each export as received, with its headers."""
        self.spans: list[Exported] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                accepted = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                if accepted:
                    receiver.bodies.append(bytes(self.headers) + body)
                    receiver.spans += decode(body)
                self.send_response(200 if accepted else 400)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def named(self, name: str) -> list[Exported]:
        """Return the spans with this name, in the order in which they were received."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Exported:
        """Return the only span with this name."""
        [span] = self.named(name)
        return span

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def decode(body: bytes) -> list[Exported]:
    """Return the spans of an export."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        Exported(
            _values(part.resource.attributes)["service.name"],
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.name,
            span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
            _values(span.attributes),
            tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
            span.status.code == span.status.STATUS_CODE_ERROR,
        )
        for part in request.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
