"""The span of an attempt to deliver a webhook event, or a logout token (HTTP client).

`url.full` and `server.address` are left out, because even the host of a webhook URL can be a secret. The event's id is
in the log as well, with the project.
"""

from dataclasses import replace
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from taproof.service.webhooks import SignedRequest, WebhookResponse
from taproof.tracing.spans import NO_PARENT, begin_span, fail_span
from taproof.webhooks.http_client import WebhookClient

_REMEMBERED: Final = 1_000
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class RecordedEvents:
    """Remembers the spans in which this process recorded the latest events, so that first attempts join their trace.

    Later attempts and those of other processes begin a trace of their own.
    """

    def __init__(self) -> None:
        self._spans: dict[str, SpanContext] = {}

    def remember(self, event_id: str, span: SpanContext) -> None:
        """Remember the span in which an event is recorded, and forget the oldest one if there are too many."""
        if len(self._spans) >= _REMEMBERED:
            del self._spans[next(iter(self._spans))]
        self._spans[event_id] = span

    def take(self, event_id: str) -> Context | None:
        """Return the context in which an event was recorded the first time; None afterwards."""
        span = self._spans.pop(event_id, None)
        return None if span is None else set_span_in_context(NonRecordingSpan(span), NO_PARENT)


class TracedWebhookClient:
    """Posts events as `WebhookClient` does. A recorded attempt has the header `traceparent`."""

    def __init__(self, client: WebhookClient, tracer: Tracer, events: RecordedEvents) -> None:
        self._client = client
        self._tracer = tracer
        self._events = events

    async def post(self, request: SignedRequest) -> WebhookResponse:
        """Post once, and return the result."""
        event_id = request.headers.get("webhook-id")
        attributes = {"http.request.method": "POST"}
        parent = None
        if event_id is not None:
            attributes["taproof.event.id"] = event_id
            parent = self._events.take(event_id)
        name = "POST logout" if event_id is None else "POST webhook"
        with begin_span(self._tracer, name, SpanKind.CLIENT, attributes, parent) as span:
            if span.is_recording():
                headers = dict(request.headers)
                _PROPAGATOR.inject(headers)
                request = replace(request, headers=headers)
            answer = await self._client.post(request)
            if answer.status is not None:
                span.set_attribute("http.response.status_code", answer.status)
            if not answer.delivered:
                fail_span(span, answer.error or str(answer.status))
            return answer
