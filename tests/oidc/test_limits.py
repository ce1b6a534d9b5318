"""How often one address can start sign-ins at the OpenID provider and try the codes of devices."""

from pathlib import Path

from tests.api.unauthenticated import SAME_ORIGIN, Call, Running, running, special_calls

from taproof.http.limits.rates import CREDENTIALS, PAGES


def call_to(calls: list[Call], route: str) -> Call:
    return next(call for call in calls if call.route == route)


async def statuses(at: Running, call: Call, times: int, address: str) -> list[int]:
    """Make a call several times at the same instant; return the last two statuses."""
    now = at.services.limits.clock()
    at.services.limits.clock = lambda: now
    return [(await at.call(call.method, call.path, call.headers, call.body, address)).status for _ in range(times)][-2:]


async def test_sign_ins_of_one_address_are_limited(tmp_path: Path) -> None:
    """The authorization endpoint starts as many sessions as generate/public, then shows a page with 429."""
    async with running(tmp_path) as at:
        calls = await special_calls(at)
        authorize = call_to(calls, "GET /oidc/authorize")
        limit = at.services.limits.generate_address
        assert limit is not None
        assert await statuses(at, authorize, limit.rule.number + 1, "192.0.2.7") == [303, 429]
        refused = await at.call("GET", authorize.path, address="192.0.2.7")
        assert refused.headers["content-type"] == "text/html; charset=utf-8"
        assert int(refused.headers["retry-after"]) >= 1
        assert (await at.call("GET", authorize.path, address="192.0.2.8")).status == 303


async def test_codes_of_devices_are_limited(tmp_path: Path) -> None:
    """An address can try 20 codes of devices in a minute."""
    async with running(tmp_path) as at:
        typed = Call("", "POST", "/device", SAME_ORIGIN, b"user_code=BBBB-BBBB")
        assert await statuses(at, typed, CREDENTIALS.number + 1, "192.0.2.7") == [404, 429]
        assert (await at.call("POST", "/device", SAME_ORIGIN, typed.body, "192.0.2.8")).status == 404


async def test_pages_of_one_address_are_limited(tmp_path: Path) -> None:
    """The pages count as pages of the console do; of the calls of clients, only pushes without a secret count."""
    async with running(tmp_path) as at:
        page = Call("", "GET", "/device")
        assert await statuses(at, page, PAGES.number + 1, "192.0.2.7") == [200, 429]
        assert (await at.call("GET", "/oidc/jwks", address="192.0.2.7")).status == 200
        assert (await at.call("POST", "/oidc/token", SAME_ORIGIN, b"", "192.0.2.7")).status == 401


async def test_requests_pushed_without_a_secret_are_limited(tmp_path: Path) -> None:
    """Anyone can push requests for a public client, so they count as pages."""
    async with running(tmp_path) as at:
        form = f"client_id={await at.openid_client()}&response_type=code&scope=openid"
        form += f"&redirect_uri=https%3A%2F%2Fapp.example%2F&code_challenge={'A' * 43}&code_challenge_method=S256"
        push = Call("", "POST", "/oidc/par", SAME_ORIGIN, form.encode())
        now = at.services.limits.clock()
        at.services.limits.clock = lambda: now
        for _ in range(PAGES.number - 1):
            at.services.limits.count_page({"client": ("192.0.2.7", 4711)})
        assert await statuses(at, push, 2, "192.0.2.7") == [201, 429]
        assert (await at.call("POST", "/oidc/par", SAME_ORIGIN, push.body, "192.0.2.8")).status == 201
