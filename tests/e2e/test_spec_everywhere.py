"""Rules for every address: the error shape, methods, CORS, caching, limits, HTTPS (contract, Everywhere)."""

import re

import httpx
import pytest
from tests.e2e.conftest import Developer, OwnProject
from tests.e2e.test_spec_tables import assert_error

PUBLIC = ("/api/v1/generate/public", "/api/v1/verify/public")
KEYED = ("/api/v1/generate", "/api/v1/verify")
ORIGIN = {"Origin": "https://shop.example.com"}


def test_unknown_path(client: httpx.Client, developer: Developer) -> None:
    """An unknown path is 404, below /api/v1/dev for an authenticated caller (contract, Everywhere)."""
    unknown = ["/api", "/api/v1", "/api/v1/", "/api/v2/generate", "/api/v1/generate/", "/api/v1/generate/private"]
    for path in [*unknown, "/api/v1/verify/public/x", "//api/v1/generate/public", "/%00", "/static/x"]:
        for method in ("GET", "POST"):
            assert_error(client.request(method, path), 404, "not_found")
    for path in ("", "/", "/nothing", "/projects/", "/projects/a/b", "/me/x", "/tokens/a/b"):
        assert_error(developer.call("GET", path), 404, "not_found")


@pytest.mark.parametrize("path", [*PUBLIC, *KEYED])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])
def test_wrong_method(client: httpx.Client, path: str, method: str) -> None:
    """A wrong method is 405 and Allow names the right ones (contract, Everywhere)."""
    response = client.request(method, path)
    assert_error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == ("POST, OPTIONS" if path in PUBLIC else "POST")


def test_wrong_developer_method(developer: Developer) -> None:
    """A wrong method is 405 at the developer endpoints too (contract, Everywhere)."""
    for method, path, allowed in (
        ("PUT", "/projects", "GET, POST"),
        ("POST", "/me", "GET"),
        ("PUT", "/projects/proj_0000000000000000000000", "DELETE, GET, PATCH"),
        ("GET", "/projects/proj_0000000000000000000000/regenerate", "POST"),
        ("DELETE", "/sessions", "GET"),
        ("POST", "/analytics", "GET"),
        ("GET", "/tokens/tok_1", "DELETE"),
    ):
        response = developer.call(method, path)
        assert_error(response, 405, "method_not_allowed")
        assert response.headers["allow"] == allowed


def test_operations(client: httpx.Client) -> None:
    """/healthz, /readyz, /metrics, /openapi.json and /docs answer GET without a token, and no other method (issue)."""
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
        assert client.get(path).status_code == 200
        assert client.head(path).content == b""
        assert_error(client.post(path), 405, "method_not_allowed")
        assert "access-control-allow-origin" not in client.get(path, headers=ORIGIN).headers
    assert client.get("/healthz").json() == {"status": "ok"}
    assert not re.findall(r"""(?:src|url\(|<link[^>]*href)=?["']?\s*(?:https?:)?//""", client.get("/docs").text)


@pytest.mark.parametrize("path", PUBLIC)
def test_cors_on_the_public_endpoints(client: httpx.Client, project: OwnProject, path: str) -> None:
    """The public endpoints allow any origin, without credentials, for errors and the preflight too (contract)."""
    preflight = client.options(
        path,
        headers=ORIGIN | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"},
    )
    assert preflight.status_code == 200
    assert preflight.content == b""
    assert preflight.headers["access-control-allow-methods"] == "POST"
    assert preflight.headers["access-control-allow-headers"].lower() == "content-type"
    body = {"project_id": project.id, "session_token": project.generate()["session_token"]}
    answers = [
        preflight,
        client.post(path, headers=ORIGIN, json=body),
        client.post(path, headers=ORIGIN, json={}),
        client.post(path, headers=ORIGIN | {"Cookie": "a=b"}, content=b"x" * 20_000),
        client.get(path, headers=ORIGIN),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 400, 413, 405]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
        assert "set-cookie" not in answer.headers
    for answer in answers[2:]:
        assert "X-Error-Code" in answer.headers["access-control-expose-headers"]


def test_cors_nowhere_else(client: httpx.Client, developer: Developer, project: OwnProject) -> None:
    """No other endpoint allows another origin, so no page can use a developer's token or a secret key (contract)."""
    key = {"Authorization": f"Bearer {project.secret_key}"}
    answers = [client.post(path, headers=ORIGIN | key, json={}) for path in KEYED]
    asks = ORIGIN | {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    for path in (*KEYED, "/api/v1/dev/me", "/api/v1/dev/projects", "/metrics", "/openapi.json", "/readyz"):
        answers.append(client.options(path, headers=asks))
        assert answers[-1].status_code in {401, 405}
    answers += [
        client.get("/api/v1/dev/me", headers=ORIGIN | developer.headers),
        client.get("/api/v1/dev/me", headers=ORIGIN),
        client.get("/api/v1/nothing", headers=ORIGIN),
    ]
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_developer_answers_are_not_cached(developer: Developer, project: OwnProject) -> None:
    """Answers with secrets, and errors, are never cached (contract, Everywhere)."""
    for method, path in (
        ("GET", "/me"),
        ("GET", f"/projects/{project.id}/webhook-secret"),
        ("POST", f"/projects/{project.id}/regenerate"),
        ("POST", f"/projects/{project.id}/webhook-secret/rotate"),
        ("GET", f"/projects/{project.id}/deliveries"),
        ("GET", "/nothing"),
        ("PATCH", f"/projects/{project.id}"),
    ):
        response = developer.call(method, path)
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", [*PUBLIC, *KEYED, "/api/v1/dev/projects", "/api/v1/dev/tokens"])
def test_body_limit(developer: Developer, project: OwnProject, path: str) -> None:
    """A body of 16 KiB is accepted, and one byte more is 413 (contract, Everywhere)."""
    if path.startswith("/api/v1/dev"):
        headers, body = developer.headers, b'{"name": "Shop"}'
    else:
        headers = {"Authorization": f"Bearer {project.secret_key}"}
        body = f'{{"project_id": "{project.id}", "session_token": "{project.generate()["session_token"]}"}}'.encode()
    headers = headers | {"Content-Type": "application/json"}
    client = developer.client
    assert client.post(path, headers=headers, content=body.ljust(16_384)).status_code == 200
    assert_error(client.post(path, headers=headers, content=body.ljust(16_385)), 413, "payload_too_large")


def test_bearer_scheme(developer: Developer, project: OwnProject) -> None:
    """The scheme is case-insensitive; two credentials count as none (RFC 9110, 11.1; RFC 6750, 2.1)."""
    client = developer.client
    for scheme in ("bearer", "BEARER"):
        credential = {"Authorization": f"{scheme} {developer.access_token}"}
        assert client.get("/api/v1/dev/me", headers=credential).status_code == 200
    twice = [("Authorization", f"Bearer {developer.access_token}")] * 2
    assert_error(client.get("/api/v1/dev/me", headers=twice), 401, "invalid_access_token")
    other = {"Authorization": f"Basic {developer.access_token}"}
    assert_error(client.get("/api/v1/dev/me", headers=other), 401, "invalid_access_token")


def test_plain_http_from_elsewhere(client: httpx.Client) -> None:
    """A request that a proxy forwarded over plain HTTP from another machine is refused (issue, HTTPS only)."""
    for headers in (
        {"X-Forwarded-For": "203.0.113.7"},
        {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"},
    ):
        assert_error(client.get("/api/v1/dev/me", headers=headers), 400, "https_required")


def test_the_first_page_of_a_sandbox(client: httpx.Client) -> None:
    """The bare address of a sandbox redirects to the demo."""
    response = client.get("/")
    assert (response.status_code, response.headers["location"]) == (307, "/demo")
