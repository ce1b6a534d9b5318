"""Refused credentials are logged with the client, the kind of credential and the route, but not the credential."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs
from tests.api.conftest import Api, ManualClock, client_of, session_router

from taproof.core.clock import MINUTE, SECOND
from taproof.http.limits.refused_credentials import LINES, RefusedCredentials

ADDRESS = "203.0.113.7"
ACCESS_TOKEN = f"tap_{'Q' * 49}"
SECRET_KEY = f"sk_{'Q' * 49}"


@pytest.fixture
async def client(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(session_router(api), ADDRESS) as found:
        yield found


def lines(logs: Any) -> list[Any]:
    return [line for line in logs if line["event"] == "credentials_refused"]


@pytest.mark.parametrize(
    ("method", "path", "given", "kind", "route"),
    [
        ("POST", "/api/v1/verify", SECRET_KEY, "secret_key", "/api/v1/verify"),
        ("POST", "/api/v1/generate", ACCESS_TOKEN, "secret_key", "/api/v1/generate"),
        ("GET", "/api/v1/dev/me", ACCESS_TOKEN, "access_token", "/api/v1/dev/me"),
        ("GET", f"/api/v1/dev/sessions/{SECRET_KEY}", "", "access_token", "/api/v1/dev/sessions/{session_id}"),
    ],
)
async def test_each_is_told_of(
    client: httpx.AsyncClient, method: str, path: str, given: str, kind: str, route: str
) -> None:
    """The line has the kind, the client's address and the route's template. Clients can write anything into a path."""
    with capture_logs() as logs:
        answer = await client.request(method, path, headers={"Authorization": f"Bearer {given}"}, json={})
    assert answer.status_code == 401
    [line] = lines(logs)
    assert line == {
        "event": "credentials_refused",
        "log_level": "warning",
        "kind": kind,
        "address": ADDRESS,
        "method": method,
        "route": route,
        "left_out": 0,
        "client_id": "",
        "used": "",
        "expected": "",
    }
    assert "QQQQ" not in repr(logs)


async def test_good_ones_are_not(api: Api, client: httpx.AsyncClient, token: str, project: dict[str, Any]) -> None:
    """Valid credentials, other refusals and the public endpoints, which take no credential, leave no such line."""
    keyed = {"Authorization": f"Bearer {project['secret_key']}"}
    with capture_logs() as logs:
        for answer in (
            await client.get("/api/v1/dev/me", headers={"Authorization": f"Bearer {token}"}),
            await client.post("/api/v1/generate", json={}, headers=keyed),
            await client.post("/api/v1/verify", json={"session_token": "x" * 43}, headers=keyed),
            await client.post("/api/v1/verify/public", json={"project_id": project["id"], "session_token": "x" * 43}),
        ):
            assert answer.status_code != 401
    assert lines(logs) == []


def test_a_flood_fills_no_disk(clock: ManualClock) -> None:
    """Ten lines at once and ten a minute are written for all clients together; the next line counts those left out."""
    refused = RefusedCredentials(clock)
    counted = []
    with capture_logs() as logs:
        for tried in range(100_000):
            client = (f"2001:db8::{tried:x}", 1)
            refused.note("secret_key", {"method": "POST", "path": "/api/v1/verify", "client": client})
        counted.append([line["left_out"] for line in logs])
        clock.now += MINUTE // LINES.number
        refused.note("secret_key", {"method": "POST", "path": "/api/v1/verify", "client": None})
        counted.append([line["left_out"] for line in logs[10:]])
        clock.now += 10 * MINUTE
        for _ in range(10):
            refused.note("access_token", {"method": "POST", "path": "/api/v1/verify", "client": None})
        counted.append([line["left_out"] for line in logs[11:]])
        clock.now += 5 * SECOND
        refused.note("access_token", {"method": "POST", "path": "/api/v1/verify", "client": None})
    assert counted == [[0] * 10, [99_990], [0] * 10]
    assert len(logs) == 21
