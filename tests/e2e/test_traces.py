"""The traces of one sign-in: what is exported to a real OTLP receiver, and in which traces (issue)."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.e2e.canary_search import hits, text_canary
from tests.e2e.conftest import Developer, launch, make_phone
from tests.e2e.receiver import Delivered, receiving
from tests.otlp_receiver import OtlpReceiver

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=canarystate", "User-Agent": "canaryagent"}
ADDRESS = "198.51.100.77"
PROXIED = CALLER | {"X-Forwarded-For": ADDRESS, "X-Forwarded-Proto": "https"}
GENERATE, VERIFY = "POST /api/v1/generate/public", "POST /api/v1/verify/public"


@dataclass
class SignIn:
    """The results of one sign-in: the exported spans, the delivered event, and texts that no span may contain."""

    traces: OtlpReceiver
    delivered: Delivered
    secrets: dict[str, str]


@pytest.fixture(scope="module")
def sign_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignIn]:
    """Sign in once, through a proxy at first, then stop the service, which exports the last spans."""
    with contextlib.ExitStack() as kept:
        traces = kept.enter_context(OtlpReceiver())
        receiver = kept.enter_context(receiving())
        service = launch(
            tmp_path_factory.mktemp("traces"),
            OTEL_EXPORTER_OTLP_ENDPOINT=traces.url,
            OTEL_SERVICE_NAME="signin",
            TAPROOF_TRACES="continue",
            TAPROOF_TRUSTED_PROXY="127.0.0.1/32",
        )
        kept.callback(service.stop)
        client = kept.enter_context(httpx.Client(base_url=service.base_url, timeout=60))
        developer = Developer(client, service.access_token)
        project = developer.create_project("canaryproject", webhook_url=f"{receiver.url}/canarypath?canaryquery")
        phone = make_phone(client, "canaryname", username="canaryuser")
        body = {"project_id": project.id}
        session = client.post("/api/v1/generate/public", json=body, headers=PROXIED).json()
        phone.sign_in(session)
        body["session_token"] = session["session_token"]
        answer = client.post("/api/v1/verify/public?canaryquery=1", json=body, headers=CALLER).json()
        assert answer["status"] == "confirmed"
        assert developer.call("GET", "/projects/proj_canarycanarycanarycan").status_code == 404
        [delivered] = receiver.wait_for(1)
        assert service.stop() == 0
        yield SignIn(traces, delivered, {**session, **answer, "webhook": project.webhook_secret, "address": ADDRESS})


def test_requests(sign_in: SignIn) -> None:
    """A request from the trusted proxy continues its caller's trace.

    Any other request begins a trace and links to the caller's.
    """
    generate, verify = sign_in.traces.one(GENERATE), sign_in.traces.one(VERIFY)
    assert (generate.kind, generate.service, generate.failed) == ("SERVER", "signin", False)
    assert (generate.trace, generate.parent, generate.links) == (TRACE, SPAN, ())
    assert (verify.trace == TRACE, verify.parent, verify.links) == (False, "", ((TRACE, SPAN),))
    for request, operation in ((generate, "create_session"), (verify, "poll_session"), (verify, "consume_session")):
        span = sign_in.traces.one(operation)
        assert (span.trace, span.parent, span.kind) == (request.trace, request.id, "CLIENT")
        assert span.attributes == {"db.system.name": "sqlite", "db.operation.name": operation}
    missing = sign_in.traces.one("GET /api/v1/dev/projects/{project_id}")
    assert missing.attributes["taproof.error_code"] == "project_not_found"


def test_tap(sign_in: SignIn) -> None:
    """One trace covers the tap, the statement, the bot's answer and the webhook, which passes the trace on."""
    traces = sign_in.traces
    confirm = traces.one("confirm_session")
    [tap] = [span for span in traces.named("process callback_query") if span.id == confirm.parent]
    assert (tap.kind, tap.parent, tap.failed) == ("CONSUMER", "", False)
    children = {span.name for span in traces.spans if span.parent == tap.id}
    assert children >= {"claim_update", "confirm_session", "editMessageText", "answerCallbackQuery", "finish_update"}
    webhook = traces.one("POST webhook")
    assert (webhook.trace, webhook.parent) == (tap.trace, confirm.id)
    assert webhook.attributes == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "taproof.event.id": sign_in.delivered.headers["webhook-id"],
    }
    version, *ids, _flags = sign_in.delivered.headers["traceparent"].split("-")
    assert (version, ids) == ("00", [webhook.trace, webhook.id])


def test_only_work_has_spans(sign_in: SignIn) -> None:
    """Every trace begins at a request or an update, never at background work."""
    roots = {span.name for span in sign_in.traces.spans if span.parent == ""}
    assert {name.partition(" ")[0] for name in roots} == {"GET", "POST", "process"}
    assert not [name for name in roots if "/sandbox" in name or "/readyz" in name]
    assert not sign_in.traces.named("getUpdates")


def test_nothing_secret_or_personal_is_exported(sign_in: SignIn) -> None:
    """No token, name, id, address, query or path of a webhook is exported. test_canaries.py searches for the rest."""
    words = {name: str(value) for name, value in sign_in.secrets.items() if name not in {"status", "confirmed_at"}}
    canaries = [text_canary(name, word) for name, word in words.items()]
    exported: dict[str, Any] = {"spans": b"\n".join(sign_in.traces.bodies)}
    assert len(canaries) >= 8
    assert hits([*canaries, text_canary("canary", "canary")], exported) == []
