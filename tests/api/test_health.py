"""Health, metrics and the reference pages."""

import json
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any, get_args

import httpx
import pytest
from jsonschema import Draft202012Validator
from markupsafe import escape
from structlog.testing import capture_logs
from tests.api.conftest import Api, assert_error, client_of

from taproof.api.health import Readiness, build_operations, build_watching
from taproof.api.openapi.reference_page import docs_page
from taproof.api.openapi.serving import build_documents
from taproof.contract.delivery import SENTENCES, EventType
from taproof.contract.fields import described
from taproof.contract.project import ProjectSettings
from taproof.core.errors import StoreUnavailable

PATHS = ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs/docs.css"]


@pytest.fixture
async def operations(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    app = build_operations(Readiness(api.storage.ping, lambda: True), api.metrics, build_documents(api.app))
    async with client_of(app) as client:
        yield client


@pytest.mark.parametrize("path", PATHS)
async def test_each_answers_get_and_head_only(operations: httpx.AsyncClient, path: str) -> None:
    """HEAD is GET without the body (RFC 9110, section 9.3.2). Other methods and addresses get the error shape."""
    found = await operations.get(path)
    assert (found.status_code, found.headers["x-content-type-options"]) == (200, "nosniff")
    head = await operations.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == found.headers["content-type"]
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
        refused = await operations.request(method, path)
        assert_error(refused, 405, "method_not_allowed")
        assert refused.headers["allow"] == "GET, HEAD"
    assert_error(await operations.get(f"{path}/other"), 404, "not_found")


async def test_a_node_without_an_api_names_what_it_answers(api: Api) -> None:
    """A `worker` or `bot` node has no /docs, so its 404 does not send anybody there."""
    async with client_of(build_watching(Readiness(api.storage.ping, lambda: True), api.metrics)) as client:
        refused = await client.get("/docs")
        assert (await client.get("/metrics")).status_code == 200
        assert_error(await client.get("/%6detrics"), 404, "not_found")
    assert_error(refused, 404, "not_found")
    assert refused.json() == {"error": "This node answers /healthz, /readyz and /metrics only."}


@pytest.mark.parametrize("has_store", [True, False])
@pytest.mark.parametrize("has_bot", [True, False])
@pytest.mark.parametrize("serves_api", [True, False])
async def test_ready_means_that_sign_ins_can_start(
    api: Api, *, serves_api: bool, has_bot: bool, has_store: bool
) -> None:
    """A process without its store or its bot's name gets no requests, and names what is missing. It stays alive."""

    async def ping() -> None:
        if not has_store:
            raise StoreUnavailable

    app = build_watching(Readiness(ping, lambda: True), api.metrics)
    if serves_api:
        app = build_operations(Readiness(ping, lambda: has_bot), api.metrics, build_documents(api.app))
    async with client_of(app) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        answer = await client.get("/readyz")
    is_missing = {"The store does not answer": not has_store, "The username of the": serves_api and not has_bot}
    if not any(is_missing.values()):
        assert answer.json() == {"status": "ok"}
        return
    assert_error(answer, 503, "not_ready")
    assert int(answer.headers["retry-after"]) > 0
    for sentence, missing in is_missing.items():
        assert (sentence in answer.json()["error"]) == missing


async def test_any_error_of_the_store_means_not_ready() -> None:
    """An unexpected error is also logged, because no other caller logs it."""

    async def ping() -> None:
        raise ValueError("canary")

    readiness = Readiness(ping, lambda: True)
    with capture_logs() as logs:
        assert (await readiness.missing()).keys() == {"store"}
    assert logs == [{"event": "ping_failed", "error": "ValueError", "log_level": "error"}]


async def test_metrics_count_by_route_and_name_nobody(
    operations: httpx.AsyncClient, api: Api, token: str, project: dict[str, Any]
) -> None:
    """Labels are templates and known words only: no id, token, name or other value that a client chooses."""
    await api.call("GET", f"/projects/{project['id']}", token)
    await api.call("GET", "/projects/evil-path", token)
    await api.client.get("/api/v1/dev/evil-path")
    await api.client.request("EVIL", "/api/v1/dev/me")
    api.metrics.count_created()
    api.metrics.count_poll["used"]()
    text = (await operations.get("/metrics")).text
    for line in (
        'taproof_developer_requests_total{method="GET",route="/api/v1/dev/projects/{project_id}",status="200"} 1.0',
        'taproof_developer_requests_total{method="GET",route="/api/v1/dev/projects/{project_id}",status="400"} 1.0',
        'taproof_developer_requests_total{method="GET",route="unmatched",status="404"} 1.0',
        'taproof_developer_requests_total{method="other",route="/api/v1/dev/me",status="405"} 1.0',
        "taproof_sessions_created_total 1.0",
        'taproof_polls_total{status="used"} 1.0',
        'taproof_polls_total{status="pending"} 0.0',
        'taproof_info{version="0.1.0"} 1.0',
    ):
        assert line in text.splitlines()
    assert "process_cpu_seconds_total" in text
    for hidden in (project["id"], token, "Acme", "evil", "EVIL", "ada@"):
        assert hidden not in text


# ---- the OpenAPI document


def test_the_document_lists_every_address(api: Api) -> None:
    """Both kinds of endpoint are in one document, each with its credential and all its errors."""
    document = api.documented.document
    assert document["openapi"].startswith("3.1")
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
    routes: list[Any] = list(api.app.routes)
    keyed = {"/api/v1/generate", "/api/v1/verify", "/api/v1/cancel", "/api/v1/mini-app"}
    sessions = keyed | {f"{path}/public" for path in keyed}
    login = {"/api/v1/login", "/api/v1/login/token"}
    expected = {route.path_format for route in routes} | sessions | login | {"/healthz", "/readyz", "/metrics"}
    assert set(document["paths"]) == expected
    identifiers = []
    for path, operations in document["paths"].items():
        for operation in operations.values():
            identifiers.append(operation["operationId"])
            statuses = set(operation["responses"])
            assert statuses >= {"200", "400", "405", "500"}
            assert "422" not in statuses
            assert ("413" in statuses) == ("415" in statuses) == ("requestBody" in operation)
            if path.startswith("/api/v1/dev"):
                assert operation["security"] == [{"accessToken": []}]
            elif path in keyed:
                assert operation["security"] == [{"secretKey": []}]
            else:
                assert operation["security"] == []
            assert ("401" in statuses) == (path.startswith("/api/") and path not in login)
    assert len(set(identifiers)) == len(identifiers)


def test_the_documents_schemas_are_sound(api: Api) -> None:
    """Every schema is valid JSON Schema, every reference resolves, and every example fits its schema."""
    document = api.documented.document
    components = document["components"]
    for schema in components["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)):
        target = document
        for key in reference.split("/"):
            target = target[key]
    bodies = [
        operation["requestBody"]["content"]["application/json"]
        for operations in document["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]
    for schema in [*components["schemas"].values(), *(body["schema"] for body in bodies)]:
        for field in schema.get("properties", {}).values():
            for example in field.get("examples", []):
                Draft202012Validator({**field, "components": components}).validate(example)


CONFIRMED = {
    "status": "confirmed",
    "messenger_id": "1",
    "messenger_name": "A",
    "messenger_username": None,
    "confirmed_at": "2026-11-20T22:44:03.127Z",
    "proof": "a.b.c",
}


def test_answers_of_the_session_endpoints(api: Api) -> None:
    """Identity and proof are present only when the status is confirmed (service-spec.md, verify)."""
    answer = {"$ref": "#/components/schemas/Verification", "components": api.documented.document["components"]}
    validator = Draft202012Validator(answer)
    for fits in ({"status": "pending"}, CONFIRMED):
        assert validator.is_valid(fits), fits
    for wrong in ({"status": "confirmed"}, {"status": "used", "proof": "x"}, {"status": "open"}):
        assert not validator.is_valid(wrong), wrong


# ---- the reference page


class PageReader(HTMLParser):
    """Collects addresses, anchors, and anything that a strict content security policy would block."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: set[str] = set()
        self.anchors: set[str] = set()
        self.blocked: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src"}:
                self.addresses.add(value or "")
            elif name == "id":
                self.anchors.add(value or "")
            elif name == "style" or name.startswith("on"):
                self.blocked.append(f"{tag} {name}")
        if tag in {"script", "style", "iframe", "object"}:
            self.blocked.append(tag)


async def test_the_page_needs_nothing_from_elsewhere(operations: httpx.AsyncClient) -> None:
    """The page works offline and under its own policy: no script, nothing inline, every address on this service."""
    response = await operations.get("/docs")
    assert response.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self';")
    page = PageReader()
    page.feed(response.text)
    assert page.blocked == []
    assert {address for address in page.addresses if not address.startswith("#")} == {"/openapi.json", "/docs/docs.css"}
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= page.anchors
    css = (await operations.get("/docs/docs.css")).text
    assert "url(" not in css
    assert "@import" not in css


async def test_the_page_has_the_sections_that_the_console_links_to(operations: httpx.AsyncClient) -> None:
    """Every link from the console to a section of the page resolves."""
    page = PageReader()
    page.feed((await operations.get("/docs")).text)
    templates = files("taproof.console").joinpath("templates").iterdir()
    linked = {name for each in templates for name in re.findall(r'"/docs#([^"]+)"', each.read_text())}
    assert {"users", "members", "webhooks"} <= linked
    assert linked <= page.anchors


async def test_the_page_tells_how_deliveries_go(operations: httpx.AsyncClient) -> None:
    """The page explains failures, retries and the rotation of secrets (contract.md, Webhooks)."""
    text = (await operations.get("/docs")).text.split('<section id="webhooks">')[1]
    for code, sentence in SENTENCES.items():
        assert f"<tr><td><code>{code}</code></td><td>{escape(sentence)}</td></tr>" in text
    assert "5 s, 1 min, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h" in text
    assert "webhook-secret/rotate" in text
    assert "webhook_turned_off" in text
    for event in get_args(EventType):
        assert f"<h4><code>{event}</code>" in text
        assert f"&#34;event&#34;: &#34;{event}&#34;" in text


async def test_the_page_shows_defaults(operations: httpx.AsyncClient) -> None:
    """The page shows the default of each optional field; the fields of a change have no defaults."""
    text = (await operations.get("/docs")).text
    calls = {call.split('"', 1)[0]: call for call in text.split('<section id="')[1:]}
    default = re.compile(r"<code>(\w+)</code> <small>optional, default <code>(.*?)</code>")
    shown = {name: dict(default.findall(call)) for name, call in calls.items()}
    assert shown["create_project"] == {
        name: json.dumps(field.default).replace('"', "&#34;")
        for name, (_, field) in described(ProjectSettings).items()
        if isinstance(field.default, str | bool)
    }
    assert (shown["update_project"], shown["list_sessions"]) == ({}, {"limit": "50"})
    assert "The next_cursor of the previous page" in calls["list_sessions"]
    assert "<code>sessions[].messenger_username</code>" in calls["list_sessions"]


def test_the_page_escapes_what_the_document_says(api: Api) -> None:
    """Text of the document is escaped on the page, including inside the few marks that the page supports."""
    document = json.loads(json.dumps(api.documented.document))
    document["info"]["description"] = "`<script>` <b>\n\n1. <i>"
    html = docs_page(document).body.decode()
    assert "<code>&lt;script&gt;</code> &lt;b&gt;" in html
    assert "<li>&lt;i&gt;</li>" in html
