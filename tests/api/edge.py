"""The session endpoints as clients reach them, with and without proxies, with low limits."""

from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from tests.api.conftest import Api, session_router

from taproof.core.clock import MINUTE
from taproof.core.rate_limit import Rate
from taproof.http.https_only import HttpsOnly
from taproof.http.limits.rates import RateLimits

ADA, GRACE, ADA_6 = "203.0.113.7", "198.51.100.9", "2001:db8:1:2::7"
PROXY = "10.0.0.1"
BY_ADDRESS, BY_PROJECT = 5, 12


@dataclass
class Edge:
    """The session endpoints as clients reach them; 10.0.0.0/8 are trusted proxies."""

    api: Api
    app: Any
    access_token: str
    project: dict[str, Any]
    limits: RateLimits

    async def call(self, endpoint: str, body: Any, client: str = ADA, **request: Any) -> httpx.Response:
        headers = dict(request.pop("headers", {}))
        if "/" not in endpoint:
            headers["Authorization"] = f"Bearer {self.project['secret_key']}"
        transport = httpx.ASGITransport(self.app, client=(client, 4711))
        async with httpx.AsyncClient(transport=transport, base_url=request.get("base", "https://taproof.test")) as http:
            response = await http.post(f"/api/v1/{endpoint}", json=body, headers=headers)
        self.api.documented.check("POST", f"/api/v1/{endpoint}", response)
        return response

    async def generate(self, client: str = ADA, **more: Any) -> httpx.Response:
        headers, base = more.pop("headers", {}), more.pop("base", "https://taproof.test")
        body = {"project_id": self.project["id"], **more}
        return await self.call("generate/public", body, client, headers=headers, base=base)

    async def generate_keyed(self, client: str = ADA) -> httpx.Response:
        return await self.call("generate", {}, client)

    async def verify(
        self, session_token: str, client: str = ADA, endpoint: str = "verify/public", **more: Any
    ) -> httpx.Response:
        headers = more.pop("headers", {})
        body = {"project_id": self.project["id"], "session_token": session_token, **more}
        return await self.call(endpoint, body, client, headers=headers)

    async def start(self, *, challenge: str | None = None) -> str:
        """Start a session past the limits."""
        made = await self.api.signin.create_session(self.project["id"], public=True, code_challenge=challenge)
        return made.session_token

    async def change(self, **fields: Any) -> None:
        response = await self.api.call("PATCH", f"/projects/{self.project['id']}", self.access_token, json=fields)
        assert response.status_code == 200, response.text

    def later(self, milliseconds: int) -> None:
        self.api.clock.now += milliseconds

    def refused(self, limit: str) -> float | None:
        return self.api.metrics.registry.get_sample_value("taproof_rate_limited_total", {"limit": limit})


async def open_edge(api: Api, *, local_only: bool = True) -> Edge:
    """Return the endpoints with a project, and with limits that are soon met."""
    _, access_token = await api.sign_up("ada@example.com")
    project = await api.post("/projects", access_token, {"name": "Shop"})
    rates = {"generate_address": Rate(BY_ADDRESS, MINUTE), "generate_project": Rate(BY_PROJECT, MINUTE)}
    limits = RateLimits(api.metrics, api.clock, **rates, local_only=local_only)
    return limited_edge(api, limits, access_token, project)


def limited_edge(api: Api, limits: RateLimits, access_token: str, project: dict[str, Any]) -> Edge:
    router = session_router(api, limits)
    return Edge(api, HttpsOnly(router, [ip_network("10.0.0.0/8")]), access_token, project, limits)


def no_store(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> Any:
        raise AssertionError("A refused call asks the store nothing.")

    for name in ("poll_session", "create_session"):
        monkeypatch.setattr(api.storage.sessions, name, fail)
    monkeypatch.setattr(api.storage.projects, "read_project", fail)
