"""docs/how-to/tls-and-proxies.md: its configurations work in Debian's Caddy, HAProxy and nginx."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import yaml
from tests.api.unauthenticated import Call, call_of, routes_of, running
from tests.docs.blocks import block_of
from tests.e2e.conftest import Developer, OwnProject, Service, StartService, launch, make_phone
from tests.e2e.test_wait import waiting
from tests.slow.docs.proxies import HOST, KINDS, PAGE, Proxy, client_of, run_proxy
from tests.waiting import wait_until

from taproof.core.oidc.requests import VALUE_LIMIT


@dataclass
class Proxied:
    """A service behind a proxy, which `client` calls."""

    service: Service
    proxy: Proxy
    client: httpx.Client

    def project(self) -> OwnProject:
        return Developer(self.client, self.service.access_token).create_project()


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield the service that all proxies forward to."""
    options = ("--trusted-proxy", "127.0.0.1/32", "--generate-limit-address", "5/hour")
    service = launch(tmp_path_factory.mktemp("behind"), *options)
    yield service
    service.stop()


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    """Return a call of each route of a service that is no sandbox."""

    async def found() -> list[Call]:
        async with running(tmp_path_factory.mktemp("routes")) as at:
            return [call_of(*route) for route in routes_of(at.app)]

    return asyncio.run(found())


@pytest.fixture(scope="module", params=KINDS)
def proxied(
    request: pytest.FixtureRequest, behind: Service, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    """Yield the service behind one proxy after the other."""
    directory = tmp_path_factory.mktemp(request.param)
    with run_proxy(request.param, directory, behind.port) as proxy, client_of(proxy) as client:
        yield Proxied(behind, proxy, client)


def test_the_service_answers_behind_a_proxy(proxied: Proxied) -> None:
    """Behind a proxy the service answers only over HTTPS, with HSTS, and nobody reads the metrics."""
    answer = proxied.client.get("/healthz")
    assert answer.status_code == 200
    assert "strict-transport-security" in answer.headers
    for path in (
        "/metrics",
        "/metrics?",
        "/%6Detrics",
        "/metric%73",
        "/metrics/",
        "/metrics%2F",
        "/metrics;x",
        "/METRICS",
    ):
        answer = proxied.client.get(path)
        assert answer.status_code == 404, path
        assert "taproof_" not in answer.text


def test_every_public_route_is_passed_on(proxied: Proxied, calls: list[Call]) -> None:
    """Each route reaches the service, except the metrics. Only the service sends HSTS."""
    hidden = set()
    for call in calls:
        answer = proxied.client.request(call.method, call.path, headers=call.headers, content=call.body)
        if "strict-transport-security" not in answer.headers:
            hidden.add(call.path)
    assert hidden == {"/metrics"}


def test_a_long_redirect_is_passed_on(proxied: Proxied) -> None:
    """The longest state that the OpenID provider accepts gets back through the proxy, in a header."""
    project = proxied.project()
    developer = Developer(proxied.client, proxied.service.access_token)
    made = {"name": "Shop", "redirect_uris": ["https://shop.example.com/callback"]}
    client = developer.ask("POST", f"/projects/{project.id}/clients", json=made)
    asked = {"response_type": "code", "client_id": client["client_id"], "redirect_uri": made["redirect_uris"][0]}
    asked |= {"scope": "openid", "prompt": "none", "state": "s" * VALUE_LIMIT}
    answer = proxied.client.get("/oidc/authorize", params=asked)
    assert answer.status_code == 303, answer.text
    assert asked["state"] in answer.headers["location"]


@pytest.mark.parametrize(
    "lies",
    [
        {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"},
        {"X-Forwarded-For": "203.0.113.9", "Connection": "X-Forwarded-For, X-Forwarded-Proto"},
        {"x-forwarded-for": "203.0.113.9, 127.0.0.1", "Forwarded": "for=203.0.113.9;proto=http"},
    ],
)
def test_a_client_cannot_claim_an_address(proxied: Proxied, lies: dict[str, str]) -> None:
    """The service sees the client's real address and HTTPS, whatever headers the client sends."""
    lying = Developer(proxied.client, proxied.service.access_token)
    made = proxied.client.post("/api/v1/dev/projects", headers=lying.headers | lies, json={"name": "Shop"})
    assert made.status_code == 200, made.text
    entries = str(lying.ask("GET", "/audit?limit=1")["entries"])
    assert "203.0.113.9" not in entries
    assert "127.0.0.1" in entries


def test_a_refusal_is_passed_on_as_it_is(proxied: Proxied) -> None:
    """A flood gets the service's own 429, with the headers that browsers and SDKs read."""
    body = {"project_id": proxied.project().id}
    for _ in range(6):
        refused = proxied.client.post("/api/v1/generate/public", json=body)
    assert refused.status_code == 429
    assert refused.headers["X-Error-Code"] == "rate_limited"
    assert refused.headers["Access-Control-Allow-Origin"] == "*"
    assert int(refused.headers["Retry-After"]) > 0
    assert list(refused.json()) == ["error"]


def test_a_client_that_leaves_loses_no_proof(proxied: Proxied) -> None:
    """A proxy ends the waiting call of a client that has disconnected. The next call gets the proof."""
    project = proxied.project()
    started = proxied.client.post(
        "/api/v1/generate", headers={"Authorization": f"Bearer {project.secret_key}"}, json={}
    ).json()
    waited = {"project_id": project.id, "session_token": started["session_token"], "wait": 30}
    with _sent(proxied.proxy, "/api/v1/verify/public", waited):
        wait_until(lambda: waiting(proxied.service) == 1)
    wait_until(lambda: waiting(proxied.service) == 0, patience=20)
    with httpx.Client(base_url=proxied.service.base_url, timeout=60) as direct:
        make_phone(direct).sign_in(started)
    assert project.verify(started["session_token"])["status"] == "confirmed"


@contextlib.contextmanager
def _sent(proxy: Proxy, path: str, body: dict[str, Any]) -> Iterator[None]:
    """Send a call on a connection that is closed at the end, without reading the answer."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    with (
        socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as plain,
        proxy.trust.wrap_socket(plain, server_hostname=HOST) as connection,
    ):
        connection.sendall(f"{head}\r\n\r\n".encode() + content)
        yield


def test_what_goes_wrong_says_what_the_page_says(start_service: StartService) -> None:
    """The error sentences on the page are those of the service."""
    forwarded = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
    for arguments, words in (
        ((), "no proxy on this machine is trusted"),
        (("--trusted-proxy", "127.0.0.1/32"), "configure the trusted proxy to send X-Forwarded-Proto"),
    ):
        answer = httpx.get(f"{start_service(*arguments).base_url}/healthz", headers=forwarded)
        assert (answer.status_code, answer.headers["X-Error-Code"]) == (400, "https_required")
        assert words in answer.json()["error"]


def test_the_traefik_file_is_consistent() -> None:
    """Traefik is not in Debian, so its file is only read: each name that it uses is defined in it."""
    page = yaml.safe_load(block_of(PAGE, "yaml").text)
    http = page["http"]
    assert http.keys() == {"routers", "services", "serversTransports"}
    (router,) = http["routers"].values()
    assert router["rule"] == f"Host(`{HOST}`) && !Path(`/metrics`)"
    assert router["tls"] == {}
    balancer = http["services"][router["service"]]["loadBalancer"]
    assert [server["url"] for server in balancer["servers"]] == ["http://127.0.0.1:8080"]
    timeouts = http["serversTransports"][balancer["serversTransport"]]["forwardingTimeouts"]
    assert re.fullmatch(r"\d+s", timeouts["idleConnTimeout"])
