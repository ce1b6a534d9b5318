"""Headers that keep browsers from showing answers as pages (Fetch; CSP Level 3, `frame-ancestors`)."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.api.conftest import Api, assert_no_page, client_of

from taproof.api.health import Readiness, build_operations
from taproof.api.login import LoginApi
from taproof.api.openapi.serving import build_documents
from taproof.api.router import Router
from taproof.api.sessions import SessionApi
from taproof.http.https_only import HttpsOnly
from taproof.http.sdk_files import SDK_PATH, SdkFiles


@pytest.fixture
async def client(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole API as the application assembles it."""
    unused: Any = None
    router = Router(
        SessionApi(api.signin, api.signin.waiting, api.use_cases.projects, api.metrics, api.limits),
        api.app,
        build_operations(Readiness(api.storage.ping, lambda: True), api.metrics, build_documents(api.app)),
        {"/sdk/*": SdkFiles("0.1.0"), "/api/v1/login": LoginApi(*[unused] * 5).start},
    )
    async with client_of(HttpsOnly(router), "203.0.113.7") as found:
        yield found


async def test_everything_else(api: Api, client: httpx.AsyncClient, token: str) -> None:
    """The operators' endpoints, the script, preflights and refusals. `conftest.py` checks the documented answers."""
    mine = {"Authorization": f"Bearer {token}"}
    for status, method, path in (
        (200, "GET", "/api/v1/dev/me"),
        (404, "GET", "/api/v1/dev/nothing"),
        (405, "PUT", "/api/v1/dev/me"),
        (200, "OPTIONS", "/api/v1/verify/public"),
        (405, "GET", "/api/v1/verify"),
        (200, "GET", "/healthz"),
        (200, "GET", "/readyz"),
        (200, "GET", "/metrics"),
        (200, "GET", "/openapi.json"),
        (405, "POST", "/openapi.json"),
        (200, "GET", SDK_PATH),
        (404, "GET", "/sdk/nothing"),
        (405, "GET", "/api/v1/login"),
        (404, "GET", "/"),
    ):
        answer = await client.request(method, path, headers=mine)
        assert answer.status_code == status, path
        assert_no_page(answer)
    known = {"If-None-Match": (await client.get(SDK_PATH)).headers["etag"]}
    unchanged = await client.get(SDK_PATH, headers=known)
    assert unchanged.status_code == 304
    assert_no_page(unchanged)
    assert_no_page(await client.get("/api/v1/dev/me"))
    assert_no_page(await client.get("http://taproof.test/api/v1/dev/me"))


async def test_the_reference_has_a_policy_of_its_own(client: httpx.AsyncClient) -> None:
    """Its policy allows its stylesheet. A second policy would also apply, and forbid it."""
    answer = await client.get("/docs")
    [policy] = answer.headers.get_list("content-security-policy")
    assert "style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
