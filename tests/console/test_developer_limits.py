"""The limits of one developer's requests to the console (docs: Limits)."""

from prometheus_client import CollectorRegistry
from tests.console.browsing import Browsing
from tests.console.conftest import Installation, Visitor

from taproof.core.clock import HOUR, MINUTE
from taproof.core.rate_limit import Rate
from taproof.http.limits.developers import WAY_OUT, DeveloperLimits
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics

CALLS = 20
WRITES = 3
PAGES = (
    "/console/projects",
    "/console/sessions",
    "/console/sessions/live",
    "/console/analytics",
    "/console/analytics.csv",
    "/console/audit",
    "/console/team",
    "/console/projects/new",
)


def limit(console: Installation) -> None:
    """Set low limits for the rest of the test."""
    limits = RateLimits(
        Metrics(CollectorRegistry(), "0"),
        console.clock,
        generate_address=None,
        generate_project=None,
        local_only=True,
        developer=Rate(CALLS, MINUTE),
        developer_write=Rate(WRITES, HOUR),
    )
    assert isinstance(limits.developers, DeveloperLimits)
    console.app.access.limits = limits.developers


async def status(visitor: Browsing, path: str) -> int:
    return (await visitor.get(path)).status


async def test_the_pages_of_a_developer_share_one_limit(
    console: Installation, visitor: Visitor, stranger: Visitor, anonymous: Browsing
) -> None:
    """All browsers of a developer share the limit; other developers and the sign-in page are not affected."""
    other = await console.sign_in(visitor.developer)
    limit(console)
    for number in range(CALLS):
        assert await status((visitor, other)[number % 2], "/console/projects") == 200
    for path in PAGES:
        shown = await other.get(path)
        assert shown.status == 429, path
        assert shown.response.headers["retry-after"] == "3"
        assert "Too many requests. Try again in 3 seconds." in shown.text
    assert await status(stranger, "/console/projects") == 200
    assert await status(anonymous, "/console/sign-in") == 200
    console.clock.now += 3_000
    assert await status(visitor, "/console/sessions") == 200


async def test_the_way_out_stays_open(console: Installation, visitor: Visitor) -> None:
    """A stolen session that uses up the limits cannot prevent its developer from ending it."""
    thief = await console.sign_in(visitor.developer)
    limit(console)
    for _ in range(WRITES):
        assert (await thief.post("/console/sessions", {"session": "x"})).status != 429
    assert (await thief.post("/console/projects", {"name": "Shop"})).status == 429
    assert await status(thief, "/console/projects") == 200, "forms have a limit of their own"
    for path, number in (("/console/account", WAY_OUT.number), ("/console/projects", CALLS)):
        for _ in range(number + 1):
            await thief.get(path)
        assert await status(thief, path) == 429
    assert await status(visitor, "/console/projects") == 429
    assert await status(visitor, "/console/account") == 200
    assert await status(visitor, "/console/tokens") == 200
    assert (await visitor.post("/console/sign-out-everywhere", {})).status == 303
    assert (await thief.get("/console/account")).status == 303
