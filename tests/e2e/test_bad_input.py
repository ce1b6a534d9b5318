"""Bad input gets a clear error and changes nothing, at every endpoint that accepts a body, an id or a query."""

import json
import socket
from collections.abc import Iterable, Iterator
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import Developer, OwnProject, Service
from tests.e2e.test_spec_tables import assert_error

JSON = "application/json"
ENDPOINTS = (
    *("generate/public", "verify/public", "generate", "verify", "POST project", "PATCH project", "POST client"),
    *("PATCH client", "POST token"),
)
PUBLIC = ("generate/public", "verify/public")
KEYED = ("generate", "verify")
DEVELOPERS = ENDPOINTS[4:]
CLIENT_FIELDS = ("name", "redirect_uris", "auth_method", "signing_alg", "email", "id_token_lifetime", "grant_types")
FIELDS: dict[str, tuple[str, ...]] = {
    "generate/public": ("project_id",),
    "verify/public": ("project_id", "session_token"),
    "generate": ("project_id",),
    "verify": ("session_token", "project_id"),
    "POST project": ("name", "webhook_url", "public_access", "collect_phone"),
    "PATCH project": ("name", "webhook_url", "is_active", "public_access", "collect_phone"),
    "POST client": CLIENT_FIELDS,
    "PATCH client": CLIENT_FIELDS,
    "POST token": ("name", "expires_at"),
}
EVERY_FIELD = [(endpoint, field) for endpoint, fields in FIELDS.items() for field in fields]
BOOLEANS = {"is_active", "public_access", "collect_phone"}

PUBLIC_POST = b"POST /api/v1/verify/public HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
KEPT_POST = PUBLIC_POST.replace(b"verify/public", b"dev/projects") + b"Authorization: Bearer TOKEN\r\n"


class Endpoints:
    """Calls each endpoint with the right credentials, so that only the input can be wrong."""

    def __init__(self, project: OwnProject) -> None:
        self.project = project
        new = {"name": "Unchanged", "redirect_uris": ["https://app.example/"]}
        self.client_id = project.developer.ask("POST", f"/projects/{project.id}/clients", json=new)["client_id"]
        self.session_token = project.generate()["session_token"]

    def valid(self, endpoint: str) -> dict[str, Any]:
        """Return a body that the endpoint accepts."""
        if endpoint in PUBLIC + KEYED:
            return {"project_id": self.project.id, "session_token": self.session_token}
        uris = {"redirect_uris": ["https://changed.example/"]} if endpoint == "POST client" else {}
        return {"name": "Changed", **uris}

    def send(
        self,
        endpoint: str,
        content: bytes | Iterable[bytes],
        content_type: str | None = JSON,
        *,
        alone: bool = False,
    ) -> httpx.Response:
        """Call an endpoint; with `alone`, on a connection that is not reused."""
        developer = self.project.developer
        headers = {} if content_type is None else {"Content-Type": content_type}
        if alone:
            headers["Connection"] = "close"
        if endpoint in DEVELOPERS:
            headers |= developer.headers
            method, _, what = endpoint.partition(" ")
            clients = f"/projects/{self.project.id}/clients"
            path = {"project": "/projects", "client": clients, "token": "/tokens"}[what]
            one = {"project": self.project.id, "client": self.client_id}.get(what)
            path = f"/api/v1/dev{path}" + (f"/{one}" if method == "PATCH" else "")
        else:
            method, path = "POST", f"/api/v1/{endpoint}"
            if endpoint in KEYED:
                headers["Authorization"] = f"Bearer {self.project.secret_key}"
        return developer.client.request(method, path, headers=headers, content=content)

    def dump(self) -> Any:
        """Return everything that a call could change: the developer's projects and tokens, the project's sessions."""
        developer = self.project.developer
        tokens = developer.ask("GET", "/tokens")["tokens"]
        return (
            developer.ask("GET", "/projects"),
            [{name: value for name, value in token.items() if name != "last_used_at"} for token in tokens],
            developer.ask("GET", f"/projects/{self.project.id}/clients"),
            developer.ask("GET", f"/sessions?limit=200&project_id={self.project.id}"),
        )


@pytest.fixture(scope="module")
def unchanged(stranger: Developer) -> Endpoints:
    """Return the one project of these tests, which must not change. Its developer has few others."""
    return Endpoints(stranger.create_project("Unchanged"))


@pytest.fixture
def endpoints(unchanged: Endpoints, service: Service) -> Iterator[Endpoints]:
    """Yield the endpoints, and assert after each test that nothing changed and nothing failed inside the service."""
    logged = len(service.log())
    before = unchanged.dump()
    yield unchanged
    assert unchanged.dump() == before
    assert '"error"' not in service.log()[logged:]


NOT_JSON = {
    "nothing": b"",
    "white space": b"  ",
    "text": b"project_id",
    "form": b"project_id=1&name=x",
    "cut": b'{"name": "x"',
    "single quotes": b"{'name': 'x'}",
    "trailing comma": b'{"name": "x",}',
    "two": b'{"name": "x"}{"name": "y"}',
    "comment": b'{"name": "x"} // comment',
    "NUL": b'{"name": "x"}\x00',
    "raw NUL in a string": b'{"name": "a\x00b"}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "overlong UTF-8": b'{"name": "\xc0\x80"}',
    "surrogates in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "UTF-32": '{"name": "x"}'.encode("utf-32"),
    "byte order mark": b'\xef\xbb\xbf{"name": "x"}',
    "deep": b"[" * 16_000,
    "deep object": b'{"a":' * 3_000,
    "too many digits": b'{"name": ' + b"9" * 10_000 + b"}",
}
NO_OBJECT = {
    "list": b'[{"name": "x"}]',
    "string": b'"name"',
    "null": b"null",
    "number": b"1",
    "true": b"true",
    "huge number": b"1e999999",
    "closed deep list": b"[" * 900 + b"]" * 900,
}


def test_no_json_object(endpoints: Endpoints, subtests: pytest.Subtests) -> None:
    """A body that is not JSON in UTF-8, or not an object, is 400 (contract, Everywhere)."""
    for endpoint in ENDPOINTS:
        with subtests.test(endpoint=endpoint):
            for kind, content in (NOT_JSON | NO_OBJECT).items():
                response = endpoints.send(endpoint, content)
                assert response.status_code == 400, f"{kind}: {response.text}"
                assert "body" in assert_error(response, 400, "invalid_request")


def test_not_a_number(project: OwnProject) -> None:
    """NaN and Infinity are not JSON. A body with one is 400, even in an unknown field (contract, Everywhere)."""
    for number in (b"NaN", b"Infinity", b"-Infinity"):
        content = b'{"x": %b, ' % number + json.dumps({"project_id": project.id}).encode()[1:]
        headers = {"Content-Type": JSON}
        response = project.developer.client.post("/api/v1/generate/public", headers=headers, content=content)
        assert_error(response, 400, "invalid_request")


OTHER_CONTENT_TYPES = [
    None,
    "",
    "*/*",
    "json",
    "text/json",
    "text/plain",
    "application/jsonp",
    "application/problem+json",
    "application/json, text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "application/json; charset=latin-1",
    "application/json; charset=",
]


def test_content_type(endpoints: Endpoints, subtests: pytest.Subtests) -> None:
    """A body must come as application/json in UTF-8; anything else is 400 and says so (contract, Everywhere)."""
    for content_type in OTHER_CONTENT_TYPES:
        for endpoint in ENDPOINTS:
            with subtests.test(endpoint=endpoint, content_type=content_type):
                content = json.dumps(endpoints.valid(endpoint)).encode()
                assert JSON in assert_error(endpoints.send(endpoint, content, content_type), 400, "invalid_request")


def test_content_type_parameters(project: OwnProject) -> None:
    """Parameters of application/json are allowed (contract, Everywhere)."""
    endpoints = Endpoints(project)
    for content_type in ("application/json;charset=UTF-8", 'Application/JSON; charset="utf-8"', JSON + ";"):
        for endpoint in ENDPOINTS:
            content = json.dumps(endpoints.valid(endpoint)).encode()
            assert endpoints.send(endpoint, content, content_type).status_code == 200, (endpoint, content_type)


def test_mistyped_field(endpoints: Endpoints, subtests: pytest.Subtests) -> None:
    """A mistyped field is 400, and the sentence names it (contract, Everywhere)."""
    for endpoint, field in EVERY_FIELD:
        wrong: list[Any] = [None, 0, -1, 1.5, 10**400, [], ["x"], {}, {"x": 1}]
        wrong += ["true", 1] if field in BOOLEANS else [True]
        with subtests.test(endpoint=endpoint, field=field):
            for value in wrong:
                content = json.dumps(endpoints.valid(endpoint) | {field: value}).encode()
                sentence = assert_error(endpoints.send(endpoint, content), 400, "invalid_request")
                assert field in sentence, (value, sentence)


def test_missing_field(endpoints: Endpoints, subtests: pytest.Subtests) -> None:
    """A missing or empty field is 400, and the sentence names it (contract, Everywhere)."""
    for endpoint, field in (
        ("generate/public", "project_id"),
        ("verify/public", "project_id"),
        ("verify/public", "session_token"),
        ("verify", "session_token"),
        ("POST project", "name"),
        ("POST client", "name"),
        ("POST client", "redirect_uris"),
        ("POST token", "name"),
    ):
        body = endpoints.valid(endpoint)
        for content in (body | {field: ""}, {name: value for name, value in body.items() if name != field}):
            with subtests.test(endpoint=endpoint, field=field):
                sentence = assert_error(endpoints.send(endpoint, json.dumps(content).encode()), 400, "invalid_request")
                assert field in sentence


STRINGS = {
    "NUL": "a\0b",
    "lone high surrogate": "a\ud800b",
    "lone low surrogate": "\udfff",
    "surrogates the wrong way round": "\udc00\ud800",
    "control": "\x1b[31m",
    "line separator": "a\u2028b",
    "long": "x" * 15_000,
    "SQL": "'; DROP TABLE projects; --\0",
    "wide": "\U0010ffff\0",
}


def test_hostile_strings(endpoints: Endpoints, subtests: pytest.Subtests) -> None:
    """NUL bytes, lone surrogates, control characters and endless strings are 400 in every text field (issue)."""
    for endpoint, field in EVERY_FIELD:
        for kind, text in ({} if field in BOOLEANS else STRINGS).items():
            with subtests.test(endpoint=endpoint, field=field, kind=kind):
                content = json.dumps(endpoints.valid(endpoint) | {field: text}).encode()
                assert field in assert_error(endpoints.send(endpoint, content), 400, "invalid_request")


def test_unknown_field(endpoints: Endpoints, subtests: pytest.Subtests) -> None:
    """A /dev body with an unknown field is 400, and none of it is applied (contract, Everywhere)."""
    for endpoint in DEVELOPERS:
        for field in ("id", "secret_key", "developer_id", "Name", "name ", "", "\0", "\ud800", "x" * 9_000):
            with subtests.test(endpoint=endpoint, field=field[:20]):
                content = json.dumps(endpoints.valid(endpoint) | {field: "x"}).encode()
                assert len(assert_error(endpoints.send(endpoint, content), 400, "invalid_request")) < 300


def test_duplicate_keys(endpoints: Endpoints, subtests: pytest.Subtests) -> None:
    """The last of duplicate keys counts, as in most JSON parsers, so an invalid last one is 400 (RFC 8259, 4)."""
    for endpoint in ENDPOINTS:
        with subtests.test(endpoint=endpoint):
            field = FIELDS[endpoint][0]
            content = f'{{{json.dumps(endpoints.valid(endpoint))[1:-1]}, "{field}": 7}}'.encode()
            assert field in assert_error(endpoints.send(endpoint, content), 400, "invalid_request")


def test_large_bodies(endpoints: Endpoints, subtests: pytest.Subtests) -> None:
    """A name of 1 MB, declared or in chunks, is 413 (contract, Everywhere; issue)."""
    for endpoint in ENDPOINTS:
        content = json.dumps(endpoints.valid(endpoint) | {FIELDS[endpoint][0]: "x" * 1_000_000}).encode()
        for body in (content, (content[start : start + 4_096] for start in range(0, 40_960, 4_096))):
            with subtests.test(endpoint=endpoint):
                assert_error(endpoints.send(endpoint, body, alone=True), 413, "payload_too_large")


def test_large_body_ends_the_connection(service: Service) -> None:
    """The answer says so if the server closes the connection after it (RFC 9112, 9.6)."""
    body = b"1000\r\n" + b"x" * 4_096 + b"\r\n"
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
            connection.sendall(PUBLIC_POST + b"Transfer-Encoding: chunked\r\n\r\n" + body * 10 + b"0\r\n\r\n")
            answer = connection.recv(65_536)
        assert b" 413 " in answer[:20]
        assert b"\r\nconnection: close\r\n" in answer.lower()


def test_chunked_body(project: OwnProject) -> None:
    """A small body may arrive in chunks, even of one byte each (RFC 9112, 7.1)."""
    endpoints = Endpoints(project)
    for endpoint in ENDPOINTS:
        content = json.dumps(endpoints.valid(endpoint)).encode()
        assert endpoints.send(endpoint, (bytes([byte]) for byte in content)).status_code == 200, endpoint


IDS = ["x", "PREFIX_", "PREFIX_short", "PREFIX_%00", "PREFIX_%ED%A0%80" + "a" * 16, "PREFIX_%FF", "x" * 4_000]
IDS += ["%00", "%2e%2e%2fme", "PREFIX_%F0%9F%98%80" * 5, "'%20OR%201=1--", "null", "-1", "PREFIX_" + "a" * 22 + "%0A"]
UNKNOWN = "PREFIX_" + "0" * 22
OF_PROJECT = (
    *(("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/regenerate"), ("GET", "/clients")),
    *(("GET", "/clients/oidc_0000000000000000000000"), ("GET", "/webhook-secret"), ("GET", "/deliveries")),
    *(("POST", "/webhook-secret/rotate"), ("POST", "/webhook-secret/promote"), ("POST", "/webhook-test")),
)
OF_CLIENT = (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/regenerate"))


@pytest.mark.parametrize(
    ("prefix", "path", "calls", "malformed", "code"),
    [
        ("proj", "/projects/ID", OF_PROJECT, 400, "project_not_found"),
        ("oidc", "/projects/OWN/clients/ID", OF_CLIENT, 400, "client_not_found"),
        ("tok", "/tokens/ID", (("DELETE", ""),), 404, "access_token_not_found"),
        ("evt", "/deliveries/ID", (("POST", "/resend"),), 404, "delivery_not_found"),
    ],
)
def test_ids_in_the_path(
    *,
    endpoints: Endpoints,
    prefix: str,
    path: str,
    calls: tuple[tuple[str, str], ...],
    malformed: int,
    code: str,
) -> None:
    """A malformed id is 400 or 404 and an unknown one 404, with every method (contract, Everywhere)."""
    developer = endpoints.project.developer
    for each in (*IDS, "PREFIX_" + "a" * 41, "PREFIX_" + "a" * 4_000, UNKNOWN):
        address = path.replace("OWN", endpoints.project.id).replace("ID", each.replace("PREFIX", prefix))
        for method, below in calls:
            body = {"name": "Changed"} if method == "PATCH" else None
            response = developer.call(method, address + below, json=body)
            status = 404 if each == UNKNOWN or "%2f" in each else malformed
            assert response.status_code == status, (method, address[:80], response.text)
            expected = "invalid_request" if status == 400 else "not_found" if "%2f" in each else code
            assert_error(response, status, expected)


def test_session_tokens(endpoints: Endpoints) -> None:
    """A malformed session token is 400 at both verify endpoints (contract, Everywhere)."""
    for token in ("x", "A" * 42, "A" * 44, "A" * 42 + "B", "A" * 42 + "=", "A" * 42 + "é", "+" * 43):
        for endpoint in ("verify/public", "verify"):
            content = json.dumps({"project_id": endpoints.project.id, "session_token": token}).encode()
            assert "session_token" in assert_error(endpoints.send(endpoint, content), 400, "invalid_request"), token


def test_queries(endpoints: Endpoints, developer: Developer) -> None:
    """Odd query strings are ignored or refused, and never cause an internal error (issue)."""
    paths = [(developer, path) for path in ("/sessions", "/analytics", "/me", "/projects")]
    paths.append((endpoints.project.developer, f"/projects/{endpoints.project.id}/deliveries"))
    for query in ("a" * 8_000, "%00=%00", "%FF=%FF", "days", "days=7&days=x", "limit=1&limit=0", "&&&=&"):
        for caller, path in paths:
            response = caller.call("GET", f"{path}?{query}")
            if response.status_code != 200:
                assert_error(response, 400, "invalid_request")


@pytest.mark.parametrize("request_head", [PUBLIC_POST, KEPT_POST], ids=["public", "with a token"])
def test_broken_http(endpoints: Endpoints, service: Service, request_head: bytes) -> None:
    """A client that disconnects in the middle of a body affects only its own connection (issue)."""
    sent = request_head.replace(b"TOKEN", service.access_token.encode()) + b"Content-Length: 99\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65_536)
        except OSError:
            answer = b""
    assert b" 500 " not in answer[:20]
    assert endpoints.project.verify(endpoints.session_token) == {"status": "pending"}
