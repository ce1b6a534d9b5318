"""Authentication of the developer endpoints: strangers learn nothing (service-spec.md, Authentication)."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.api.conftest import START, Api, acting, assert_error

from taproof.core.errors import StoreUnavailable

NO_PROJECT = "proj_0000000000000000000000"
NO_CLIENT = "oidc_0000000000000000000000"
NO_DELIVERY = "evt_0000000000000000000000"
NO_SESSION = "sess_000000000000000000000000000"
ENDPOINTS = [
    ("GET", "/me"),
    ("GET", "/projects"),
    ("POST", "/projects"),
    ("GET", "/projects/{project}"),
    ("PATCH", "/projects/{project}"),
    ("DELETE", "/projects/{project}"),
    ("POST", "/projects/{project}/regenerate"),
    ("GET", "/projects/{project}/members"),
    ("PATCH", "/projects/{project}/members/{developer}"),
    ("DELETE", "/projects/{project}/members/{developer}"),
    ("GET", "/projects/{project}/invitations"),
    ("POST", "/projects/{project}/invitations"),
    ("DELETE", "/projects/{project}/invitations/{invitation}"),
    ("POST", "/invitations/accept"),
    ("GET", "/projects/{project}/clients"),
    ("POST", "/projects/{project}/clients"),
    ("GET", "/projects/{project}/clients/{client}"),
    ("PATCH", "/projects/{project}/clients/{client}"),
    ("DELETE", "/projects/{project}/clients/{client}"),
    ("GET", "/projects/{project}/clients/{client}/grants"),
    ("DELETE", "/projects/{project}/clients/{client}/grants/{grant}"),
    ("POST", "/projects/{project}/clients/{client}/regenerate"),
    ("GET", "/projects/{project}/webhook-secret"),
    ("POST", "/projects/{project}/webhook-secret/rotate"),
    ("POST", "/projects/{project}/webhook-secret/promote"),
    ("POST", "/projects/{project}/webhook-test"),
    ("GET", "/projects/{project}/deliveries"),
    ("GET", "/deliveries/{delivery}"),
    ("POST", "/deliveries/{delivery}/resend"),
    ("GET", "/sessions"),
    ("GET", "/sessions/{session}"),
    ("GET", "/projects/{project}/users"),
    ("GET", "/users/{messenger}"),
    ("DELETE", "/users/{messenger}"),
    ("GET", "/analytics"),
    ("GET", "/tokens"),
    ("POST", "/tokens"),
    ("DELETE", "/tokens/{token}"),
    ("GET", "/audit"),
]
UNKNOWN = {
    "project": NO_PROJECT,
    "client": NO_CLIENT,
    "grant": "auth_1",
    "token": "tok_x",
    "delivery": NO_DELIVERY,
    "session": NO_SESSION,
    "messenger": "9",
    "developer": "dev_x",
    "invitation": "minv_x",
}
NEW_CLIENT = {"name": "Grafana", "redirect_uris": ["https://grafana.example/login/generic_oauth"]}
VALID_BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/projects"): {"name": "Acme"},
    ("PATCH", "/projects/{project}"): {"name": "Taken over"},
    ("POST", "/projects/{project}/clients"): NEW_CLIENT,
    ("PATCH", "/projects/{project}/clients/{client}"): {"name": "Taken over"},
    ("PATCH", "/projects/{project}/members/{developer}"): {"role": "owner"},
    ("POST", "/invitations/accept"): {"code": "join_x"},
    ("POST", "/tokens"): {"name": "ci"},
}


def test_every_route_is_in_the_tables_below(api: Api) -> None:
    """Every endpoint must be listed in this file, so that none is added without these tests."""
    routes: list[Any] = list(api.app.routes)
    found = {(method, route.path_format) for route in routes for method in route.methods}
    expected = {(method, "/api/v1/dev" + re.sub(r"\{(\w+)\}", r"{\1_id}", path)) for method, path in ENDPOINTS}
    assert found == expected


# ---- who may call


WRONG = [
    [],
    [""],
    ["Bearer"],
    ["Bearer "],
    ["Basic {token}"],
    ["{token}"],
    ["Bearer tap_{filler}"],
    ["Bearer {token}x"],
    ["Bearer {token},"],
    ["Bearer {token}", "Bearer {token}"],
    ["Bearer {revoked}"],
    ["Bearer {expired}"],
    ["Bearer {secret_key}"],
    ["Bearer \xff\x00"],
]
"""The Authorization headers that must be refused."""


async def test_a_stranger_learns_only_401(api: Api, subtests: pytest.Subtests) -> None:
    """Without exactly one valid access token, every endpoint is 401 before path and body are examined."""
    developer, token = await api.sign_up("ada@example.com")
    project = await api.post("/projects", token, {"name": "Acme"})
    revoked = await api.post("/tokens", token, {"name": "old"})
    await api.call("DELETE", f"/tokens/{revoked['id']}", token)
    expired = await api.developers.create_access_token(acting(developer), "short", expires_at=START + 1)
    api.clock.now += 2
    values = {
        "token": token,
        "revoked": revoked["access_token"],
        "expired": expired.plaintext,
        "filler": "0" * 49,
        "secret_key": project["secret_key"],
    }
    for method, path in ENDPOINTS:
        for authorization in WRONG:
            with subtests.test(method=method, path=path, authorization=authorization):
                response = await api.client.request(
                    method,
                    "/api/v1/dev" + path.format(**UNKNOWN),
                    headers=[(b"Authorization", value.format(**values).encode("latin-1")) for value in authorization],
                    content=b"not json",
                )
                assert_error(response, 401, "invalid_access_token")


async def test_a_token_revoked_while_a_body_arrives_is_refused(api: Api, token: str) -> None:
    """A token that is revoked during a request is refused, even if the request changes nothing (contract)."""
    leaked = await api.post("/tokens", token, {"name": "leaked"})
    project = await api.post("/projects", token, {"name": "Shop"})

    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await api.call("DELETE", f"/tokens/{leaked['id']}", token)
        yield b"}"

    path, headers = f"/projects/{project['id']}", {"Content-Type": "application/json"}
    refused = await api.call("PATCH", path, leaked["access_token"], content=body(), headers=headers)
    assert_error(refused, 401, "invalid_access_token")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
async def test_the_scheme_is_read_without_case(api: Api, scheme: str, token: str) -> None:
    """The scheme is case-insensitive and may be followed by several spaces (RFC 9110)."""
    response = await api.call("GET", "/me", headers={"Authorization": f"{scheme} {token}"})
    assert response.status_code == 200


async def dump(api: Api, project_id: str, token: str) -> Any:
    """Return everything of a project's that a call could change."""
    deliveries = await api.call("GET", f"/projects/{project_id}/deliveries", token)
    clients = await api.call("GET", f"/projects/{project_id}/clients", token)
    members = await api.storage.members.list_members(project_id)
    invitations = await api.storage.members.list_member_invitations(project_id, api.clock.now)
    found = await api.storage.projects.read_project(project_id)
    return found, deliveries.json(), clients.json(), members, invitations


async def test_lists_hold_only_ones_own(api: Api) -> None:
    """Another developer's projects, sessions, tokens and analytics are not listed. Their tokens cannot be revoked."""
    _, ada_token = await api.sign_up("ada@example.com")
    _, eve_token = await api.sign_up("eve@example.com")
    project = await api.post("/projects", ada_token, {"name": "Acme"})
    await api.signin.create_session(project["id"], public=True)
    assert (await api.call("GET", "/projects", eve_token)).json() == {"projects": []}
    assert (await api.call("GET", "/sessions", eve_token)).json() == {"sessions": [], "next_cursor": None}
    analytics = (await api.call("GET", "/analytics", eve_token)).json()
    assert (analytics["total_sessions"], analytics["projects"], len(analytics["daily"])) == (0, [], 30)
    assert len((await api.call("GET", "/tokens", eve_token)).json()["tokens"]) == 1
    [own] = (await api.call("GET", "/tokens", ada_token)).json()["tokens"]
    assert_error(await api.call("DELETE", f"/tokens/{own['id']}", eve_token), 404, "access_token_not_found")
    assert (await api.call("GET", "/me", ada_token)).status_code == 200


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/me/", "/projects/x/y/z", "/me/../../x"])
async def test_unknown_addresses_are_404(api: Api, path: str) -> None:
    """An unknown address is 404 in the error shape, even without a token; nothing is redirected."""
    assert_error(await api.call("GET", path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/me", "GET"),
        ("OPTIONS", "/projects", "GET, POST"),
        ("POST", "/projects/x", "DELETE, GET, PATCH"),
        ("GET", "/projects/x/regenerate", "POST"),
        ("PUT", "/projects/x/clients/y", "DELETE, GET, PATCH"),
        ("POST", "/projects/x/deliveries", "GET"),
        ("POST", "/deliveries/x", "GET"),
        ("GET", "/deliveries/x/resend", "POST"),
        ("BREW", "/tokens", "GET, POST"),
    ],
)
async def test_a_wrong_method_is_405_with_allow(api: Api, method: str, path: str, allowed: str) -> None:
    """405 lists every method of the address in Allow (RFC 9110, section 15.5.6)."""
    response = await api.client.request(method, f"/api/v1/dev{path}")
    assert_error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allowed


async def test_head_is_405(api: Api) -> None:
    """HEAD is 405, as the API reference says, and its answer has no body."""
    response = await api.client.head("/api/v1/dev/me")
    assert (response.status_code, response.headers["allow"], response.content) == (405, "GET", b"")


async def test_a_lost_store_is_503_everywhere(
    api: Api, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests, token: str
) -> None:
    """While the store is unavailable, every endpoint answers 503 with Retry-After."""

    async def fail(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(api.storage.credentials, "read_access_token", fail)
    for method, path in ENDPOINTS:
        with subtests.test(method=method, path=path):
            response = await api.call(method, path.format(**UNKNOWN), token)
            assert_error(response, 503, "store_unavailable")
            assert response.headers["retry-after"] == "1"


async def test_secrets_are_never_cached(api: Api, token: str) -> None:
    """Every answer forbids caches to store it."""
    project = (await api.post("/projects", token, {"name": "Acme"}))["id"]
    for method, path in ENDPOINTS:
        body = VALID_BODIES.get((method, path))
        response = await api.call(
            method,
            path.format(**UNKNOWN | {"project": project}),
            token,
            content=None if body is None else json.dumps(body),
            headers={"Content-Type": "application/json"},
        )
        assert response.headers["cache-control"] == "no-store", path
