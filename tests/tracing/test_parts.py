"""Spans of the store, the Bot API and webhooks: their names, and that no text of an error is in them."""

import logging
from collections.abc import Callable
from inspect import getmembers, isfunction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer, get_current_span

from taproof.core.address_rules import AddressRules
from taproof.core.clock import system_clock
from taproof.core.deliveries import Event
from taproof.core.errors import StoreUnavailable
from taproof.core.sessions import SessionKey
from taproof.messengers.telegram.bot_api import BotApiClient, TelegramNetworkError
from taproof.messengers.telegram.updates import UpdateIntake
from taproof.service.webhooks import SignedRequest
from taproof.storage.sqlite.store import SqliteStorage
from taproof.tracing.provider import open_tracer
from taproof.tracing.traced import Traced
from taproof.tracing.webhooks import RecordedEvents
from taproof.webhooks.http_client import WebhookClient, open_webhook_client


@pytest.fixture
def traced(tracer: Tracer) -> Traced:
    return Traced(tracer, "sqlite", continues=False)


def attributes(exporter: InMemorySpanExporter, name: str) -> dict[str, Any]:
    """Return the attributes of the only span with this name, which contains no canary and no event."""
    [span] = [each for each in exporter.get_finished_spans() if each.name == name]
    assert "canary" not in span.to_json()
    assert (span.events, span.status.description) == ((), None)
    return dict(span.attributes or {})


async def test_store(traced: Traced, tracer: Tracer, exporter: InMemorySpanExporter, tmp_path: Path) -> None:
    """A wrapped store has every operation of the protocol. Each has a span, but only within a trace."""
    plain = SqliteStorage.open(tmp_path / "taproof.db", system_clock())
    storage = traced.storage(plain)
    parts = {name: part for name, part in vars(plain).items() if name != "database"}
    assert len(parts) > 10
    for name, part in parts.items():
        operations = {each for each, _ in getmembers(type(part), isfunction) if not each.startswith("_")}
        assert operations <= set(vars(getattr(storage, name))), name
    assert await storage.describe() == await plain.describe()
    assert await storage.projects.read_sign_in_project("proj_canary") is None
    assert exporter.get_finished_spans() == ()
    with tracer.start_as_current_span("request"):
        assert await storage.projects.read_sign_in_project("proj_canary") is None
    found = {"db.system.name": "sqlite", "db.operation.name": "read_sign_in_project"}
    assert attributes(exporter, "read_sign_in_project") == found
    await storage.close()
    with tracer.start_as_current_span("request"), pytest.raises(StoreUnavailable):
        await storage.developers.list_developers()
    assert attributes(exporter, "list_developers")["error.type"] == "store_unavailable"


async def test_events_in_a_list_join_the_trace(
    traced: Traced, tracer: Tracer, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    """A report records two events at once. Outside a trace, none is remembered."""
    storage = traced.storage(SqliteStorage.open(tmp_path / "taproof.db", system_clock()))
    events = [Event(f"evt_{number}", "auth.reported", "proj_1", b"", 1) for number in range(3)]
    key = SessionKey(1, b"hash")
    await storage.sessions.report_session(key, "1", 1, {"pending": events[2:]})
    with tracer.start_as_current_span("request"):
        await storage.sessions.report_session(key, "1", 1, {"pending": events[:2]})
    [span] = [each for each in exporter.get_finished_spans() if each.name == "report_session"]
    contexts = [traced.events.take(each.id) for each in events]
    assert [found and get_current_span(found).get_span_context() for found in contexts] == [*[span.context] * 2, None]
    await storage.close()


async def test_bot_api(traced: Traced, tracer: Tracer, exporter: InMemorySpanExporter, closed_port: int) -> None:
    """A call has the span of its method, without the token, which is in its URL. Outside a trace, it has none."""
    api = traced.bot_api(BotApiClient(f"http://127.0.0.1:{closed_port}"))
    with pytest.raises(TelegramNetworkError):
        await api.call("1:canary", "getUpdates", bool)
    assert exporter.get_finished_spans() == ()
    with tracer.start_as_current_span("update"), pytest.raises(TelegramNetworkError):
        await api.call("1:canary", "sendMessage", bool, {"text": "canary"})
    assert attributes(exporter, "sendMessage") == {
        "rpc.system.name": "telegram_bot_api",
        "rpc.method": "sendMessage",
        "error.type": "TelegramNetworkError",
    }
    await api.close()


def test_wrapped_parts_have_every_method(traced: Traced) -> None:
    """The parts of a process are called as if they were not wrapped."""
    parts: list[tuple[Callable[[Any], object], type]] = [
        (traced.updates, UpdateIntake),
        (traced.bot_api, BotApiClient),
        (traced.webhooks, WebhookClient),
    ]
    for wrap, part in parts:
        methods = {name for name in vars(part) if not name.startswith("_")}
        stand_in: Any = SimpleNamespace(**dict.fromkeys(methods))
        assert methods <= set(dir(wrap(stand_in))), part


async def test_failures_of_the_export_are_logged_without_their_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The text may contain the URL of the receiver, with a key. The SDK logs it with a traceback."""
    async with open_tracer():
        logger = logging.getLogger("opentelemetry.sdk._shared_internal")
        logger.error("Exception while exporting %s.", "Span", exc_info=RuntimeError("canary"))
    assert "Exception while exporting Span. (RuntimeError)" in caplog.text
    assert "canary" not in caplog.text


async def test_update(traced: Traced, exporter: InMemorySpanExporter) -> None:
    """A trace begins at each update. Its name is the kind of the update, and an unfinished one is an error."""

    async def handle(update: dict[str, Any], **_: Any) -> str:
        return str(update["result"])

    intake: Any = SimpleNamespace(handle=handle, forget=None)
    for kind, result in (("callback_query", "done"), ("message", "unanswered"), ("canary", "retry")):
        assert await traced.updates(intake).handle({kind: {"text": "canary"}, "result": result}) == result
    assert "error.type" not in attributes(exporter, "process callback_query")
    assert attributes(exporter, "process message")["error.type"] == "unanswered"
    assert attributes(exporter, "process update")["error.type"] == "retry"


async def test_webhook(traced: Traced, exporter: InMemorySpanExporter, closed_port: int) -> None:
    """A failed attempt has its code, and nothing of the URL, the headers or the body."""
    url = f"http://127.0.0.1:{closed_port}/canary?canary"
    request = SignedRequest(url, {"webhook-id": "evt_1", "webhook-signature": "canary"}, b"canary")
    async with open_webhook_client(AddressRules(("loopback",)), frozenset(), allow_http=True) as client:
        answer = await traced.webhooks(client).post(request)
    assert answer.error == "connection_refused"
    assert attributes(exporter, "POST webhook") == {
        "http.request.method": "POST",
        "taproof.event.id": "evt_1",
        "error.type": "connection_refused",
    }


def test_recorded_events(tracer: Tracer) -> None:
    """An event joins the trace of its decision once. The oldest events are forgotten, so that memory is bounded."""
    events = RecordedEvents()
    span = tracer.start_span("decision").get_span_context()
    for number in range(1_001):
        events.remember(f"evt_{number}", span)
    assert events.take("evt_0") is None
    assert events.take("evt_1") is not None
    assert events.take("evt_1") is None
