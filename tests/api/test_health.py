"""Health, metrics and the reference pages."""

import json
import re
from collections.abc import AsyncIterator
from functools import partial
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any, get_args

import httpx
import pytest
from jsonschema import Draft202012Validator
from markupsafe import escape
from structlog.testing import capture_logs
from tests.api.conftest import Api, assert_error

from taproof.api.health import Readiness, build_operations, build_watching
from taproof.api.openapi.reference_page import docs_page
from taproof.api.openapi.serving import build_documents
from taproof.contract.delivery import SENTENCES, EventType
from taproof.contract.fields import described
from taproof.contract.project import ProjectSettings
from taproof.core.errors import API_ERRORS, StoreUnavailable

PATHS = ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs/docs.css"]


async def _ping(api: Api) -> None:
    await api.storage.ping()


@pytest.fixture
async def operations(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    app = build_operations(Readiness(partial(_ping, api), lambda: True), api.metrics, build_documents(api.app))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://taproof.test") as client:
        yield client


@pytest.mark.parametrize("path", PATHS)
async def test_each_answers_get_and_head_only(operations: httpx.AsyncClient, path: str) -> None:
    """HEAD is GET without the body (RFC 9110, section 9.3.2); any other method is 405 in the error shape."""
    found = await operations.get(path)
    assert (found.status_code, found.headers["x-content-type-options"]) == (200, "nosniff")
    head = await operations.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == found.headers["content-type"]
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
        refused = await operations.request(method, path)
        assert_error(refused, 405, "method_not_allowed")
        assert refused.headers["allow"] == "GET, HEAD"


async def test_unknown_addresses_are_404(operations: httpx.AsyncClient) -> None:
    """An unknown address gets the error shape."""
    assert_error(await operations.get("/docs/other"), 404, "not_found")


async def test_a_node_without_an_api_names_what_it_answers(api: Api) -> None:
    """A `worker` or `bot` node has no /docs, so its 404 does not send anybody there."""
    transport = httpx.ASGITransport(build_watching(Readiness(partial(_ping, api), lambda: True), api.metrics))
    async with httpx.AsyncClient(transport=transport, base_url="https://taproof.test") as client:
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
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://taproof.test") as client:
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
    """An unexpected one is also logged, because no caller does it."""

    async def ping() -> None:
        raise ValueError("canary")

    readiness = Readiness(ping, lambda: True)
    with capture_logs() as logs:
        assert (await readiness.missing()).keys() == {"store"}
    assert logs == [{"event": "ping_failed", "error": "ValueError", "log_level": "error"}]


async def test_metrics_count_by_route_and_name_nobody(operations: httpx.AsyncClient, api: Api) -> None:
    """Labels are templates and known words only: no id, token, name, nor anything else that a client chooses."""
    _, token = await api.sign_up("ada@example.com")
    project = await api.post("/projects", token, {"name": "Acme"})
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
    """Both kinds of endpoint are in one document, each with its credential and all its failures."""
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
    """Every schema is valid JSON Schema, every reference leads somewhere, every example fits its schema."""
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


@pytest.mark.parametrize(
    ("name", "answer", "fits"),
    [
        ("Error", {"error": "x"}, True),
        ("Error", {"error": "x", "detail": "y"}, False),
        ("Verification", {"status": "pending"}, True),
        ("Verification", {"status": "confirmed"}, False),
        ("Verification", {"status": "used", "proof": "x"}, False),
        ("Verification", {"status": "open"}, False),
        (
            "Verification",
            {
                "status": "confirmed",
                "messenger_id": "1",
                "messenger_name": "A",
                "messenger_username": None,
                "confirmed_at": "2026-11-20T22:44:03.127Z",
                "proof": "a.b.c",
            },
            True,
        ),
    ],
)
def test_answers_of_the_session_endpoints(api: Api, name: str, answer: Any, *, fits: bool) -> None:
    """Identity and proof are there when the status is confirmed, and only then (service-spec.md, verify)."""
    components = api.documented.document["components"]
    validator = Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components})
    assert validator.is_valid(answer) == fits


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
    """It works offline and under its own policy: no script, nothing inline, every address on this service."""
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
    """A link of the console to a section of the page leads there."""
    page = PageReader()
    page.feed((await operations.get("/docs")).text)
    templates = files("taproof.console").joinpath("templates").iterdir()
    linked = {name for each in templates for name in re.findall(r'"/docs#([^"]+)"', each.read_text())}
    assert {"users", "members", "webhooks"} <= linked
    assert linked <= page.anchors


async def test_the_page_has_every_endpoint_and_every_error_code(operations: httpx.AsyncClient, api: Api) -> None:
    """The page lists every endpoint and every error code."""
    text = (await operations.get("/docs")).text
    for path, methods in api.documented.document["paths"].items():
        assert f"<code>{path}</code>" in text
        for operation in methods.values():
            assert f'<section id="{operation["operationId"]}">' in text
    for error in API_ERRORS:
        assert f"<code>{error.code}</code>" in text


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


async def test_each_call_says_how_it_can_fail(operations: httpx.AsyncClient) -> None:
    """A caller finds beside the call what may be missing, and whether the messenger can be in the way."""
    text = (await operations.get("/docs")).text
    calls = {call.split('"', 1)[0]: call for call in text.split('<section id="')[1:]}
    missing = {"project_not_found", "session_not_found", "access_token_not_found", "delivery_not_found"}
    special = {"messenger_unavailable", "project_paused", "webhook_not_set", "rotation_under_way", "no_rotation"}
    special |= {"too_many_projects", "too_many_access_tokens", "plan_limit_reached", "origin_not_allowed"}
    starting = {"project_not_found", "messenger_unavailable", "project_paused", "plan_limit_reached"}
    starting |= {"origin_not_allowed"}
    for name, expected in {
        "generate": starting,
        "generate_public": starting,
        "verify": {"project_not_found", "session_not_found"},
        "verify_public": {"project_not_found", "session_not_found"},
        "read_account": set[str](),
        "create_project": {"too_many_projects", "plan_limit_reached", "messenger_unavailable"},
        "create_access_token": {"too_many_access_tokens"},
        "update_project": {"project_not_found", "messenger_unavailable"},
        "list_sessions": {"project_not_found"},
        "read_session": {"session_not_found"},
        "list_deliveries": {"project_not_found"},
        "read_delivery": {"delivery_not_found"},
        "resend_delivery": {"delivery_not_found", "webhook_not_set"},
        "send_webhook_test": {"project_not_found", "webhook_not_set"},
        "rotate_webhook_secret": {"project_not_found", "rotation_under_way"},
        "promote_webhook_secret": {"project_not_found", "no_rotation"},
        "delete_access_token": {"access_token_not_found"},
    }.items():
        codes = set(re.findall(r"<code>([a-z_]+)</code>: ", calls[name]))
        assert codes & (missing | special) == expected, name
        assert codes >= {"invalid_request", "store_unavailable"}, name


async def test_the_page_shows_defaults(operations: httpx.AsyncClient) -> None:
    """The page shows the default of each optional field; the fields of a change have no defaults."""
    text = (await operations.get("/docs")).text
    calls = {call.split('"', 1)[0]: call for call in text.split('<section id="')[1:]}
    shown = {
        name: dict(re.findall(r"<code>(\w+)</code> <small>optional, default <code>(.*?)</code>", call))
        for name, call in calls.items()
    }
    assert {name: defaults for name, defaults in shown.items() if defaults} == {
        "send_webhook_test": {"event": "&#34;webhook.test&#34;"},
        "create_member_invitation": {"role": "&#34;developer&#34;"},
        "create_client": {
            "auth_method": "&#34;basic&#34;",
            "signing_alg": "&#34;RS256&#34;",
            "email": "&#34;none&#34;",
            "id_token_lifetime": "3600",
        },
        "create_project": {
            name: json.dumps(field.default).replace('"', "&#34;")
            for name, (_, field) in described(ProjectSettings).items()
            if isinstance(field.default, str | bool)
        },
        "rotate_webhook_secret": {"overlap_hours": "24"},
        "delete_access_token": {"created": "&#34;revoke&#34;"},
        "list_deliveries": {"limit": "50"},
        "list_users": {"limit": "50"},
        "list_sessions": {"limit": "50"},
        "read_analytics": {"days": "30"},
        "list_audit_entries": {"limit": "50"},
    }
    assert "The next_cursor of the previous page" in calls["list_sessions"]
    assert "<code>sessions[].messenger_username</code>" in calls["list_sessions"]


def test_the_page_escapes_what_the_document_says(api: Api) -> None:
    """A text in the document is text on the page, also inside the few marks that the page understands."""
    document = json.loads(json.dumps(api.documented.document))
    document["info"]["description"] = "`<script>` <b>\n\n1. <i>"
    html = docs_page(document).body.decode()
    assert "<code>&lt;script&gt;</code> &lt;b&gt;" in html
    assert "<li>&lt;i&gt;</li>" in html
