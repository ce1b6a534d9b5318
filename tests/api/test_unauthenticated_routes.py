"""Every unauthenticated route is in maintainers/unauthenticated-routes.md, and either cheap or limited."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from tests.api.unauthenticated import Running, call_of, routes_of, running, special_calls, steps_of

from taproof.http.limits.rates import PAGES

PAGE: Final = Path(__file__).parents[2] / "maintainers/unauthenticated-routes.md"
SIGN_IN: Final = "/console/sign-in"
CHEAP: Final = 1_200
"""The functions that a cheap call may run take less than a millisecond. Drawing a QR code runs 8,000 or 60,000."""
COSTLY: Final = {
    f"POST {SIGN_IN}": 12_000,
    "GET /metrics": 8_000,
    "GET /oidc/authorize": 2_000,
    "GET /oidc/authorize/{authorization_id}": 2_500,
}
"""Limited routes that draw a QR code, write every counter or store two rows."""


@pytest.fixture(params=[False, True], ids=["service", "sandbox"])
async def at(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path, sandbox=request.param) as at:
        yield at


def described() -> set[str]:
    """Return the routes of the page."""
    return set(re.findall(r"`((?:(?:GET|POST) )?/[^`]*)`", PAGE.read_text(encoding="utf-8")))


async def test_every_route_is_described(at: Running) -> None:
    """A new route without a credential must be listed with its cost and its limit."""
    known, missing = described(), []
    for method, route in routes_of(at.app):
        call = call_of(method, route)
        answer = await at.call(call.method, call.path, call.headers, call.body)
        named = re.sub(r"^/sdk/[0-9.]+/", "/sdk/{version}/", route)
        if route.startswith("/api/v1/dev/"):
            is_known = answer.status == 401
        elif answer.headers.get("location", "").partition("?")[0] == SIGN_IN:
            is_known = route.startswith("/console/")
        else:
            wide = {"/sandbox/*", "/demo*", "GET /console/static/*", "GET /oidc/static/*"}
            starts = tuple(each.removeprefix("GET ").removesuffix("*").rstrip("/") for each in wide & known)
            is_known = answer.status == 405 or f"{method} {named}" in known or named.startswith(starts)
        if not is_known and route != "/":
            missing.append((method, route, answer.status))
    assert missing == []


async def test_what_each_route_costs(at: Running) -> None:
    """No stranger's call occupies the event loop for long.

    The measure is function calls, so it is the same on any machine.
    """
    calls = [*(call_of(*each) for each in routes_of(at.app)), *await special_calls(at)]
    too_much = {}
    for call in calls:
        await at.call(call.method, call.path, call.headers, call.body)  # The first one may load a template.
        steps = await steps_of(at, call)
        if steps > COSTLY.get(call.route, CHEAP):
            too_much[call.route] = steps
    assert too_much == {}


@pytest.mark.parametrize("path", ["/metrics", SIGN_IN, "/console/nowhere", "/console/static/nowhere"])
async def test_pages_of_one_address_are_limited(tmp_path: Path, path: str) -> None:
    """After 600 at once, an address may load one page each 0.1 s.

    A refusal is cheap, and other addresses are not affected.
    """
    async with running(tmp_path) as at:
        now = at.services.limits.clock()
        at.services.limits.clock = lambda: now
        for _ in range(PAGES.number):
            assert (await at.call("GET", path, address="192.0.2.7")).status != 429
        refused = await at.call("GET", path, address="192.0.2.7")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert refused.headers["x-error-code"] == "rate_limited"
        assert (await at.call("GET", path, address="192.0.2.8")).status != 429
        assert (await at.call("GET", "/healthz", address="192.0.2.7")).status == 200
