"""How often one address can start sign-ins at the OpenID provider and try the codes of devices."""

import json
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from tests.api.unauthenticated import SAME_ORIGIN, Call, Running, running, special_calls

from taproof.core.accounts import Actor
from taproof.core.oidc.clients import GRANT_TYPES, ClientChanges
from taproof.http.limits.rates import CREDENTIALS, PAGES, POLLS


def call_to(calls: list[Call], route: str) -> Call:
    return next(call for call in calls if call.route == route)


async def statuses(at: Running, call: Call, times: int, address: str) -> list[int]:
    """Make a call several times at the same instant; return the last two statuses."""
    now = at.services.limits.clock()
    at.services.limits.clock = lambda: now
    return [(await at.call(call.method, call.path, call.headers, call.body, address)).status for _ in range(times)][-2:]


async def parameters_of(at: Running, auth_method: Literal["none", "post"] = "none") -> dict[str, str]:
    """Create a client; return its credentials with the parameters of an authorization request."""
    developer = await at.services.developers.read_developer("ada@example.com")
    redirect_uri = "https://app.example/"
    wanted = ClientChanges("Shop", (redirect_uri,), auth_method, grant_types=GRANT_TYPES)
    client, secret = await at.services.clients.create_client(Actor(developer, "command_line"), at.project_id, wanted)
    return {
        "client_id": client.id,
        **({} if secret is None else {"client_secret": secret}),
        "redirect_uri": redirect_uri,
        "response_type": "code",
        "scope": "openid",
        "code_challenge": "A" * 43,
        "code_challenge_method": "S256",
    }


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
    """The pages count together with those of the console.

    Of the calls of clients, only pushes without a secret count.
    """
    async with running(tmp_path) as at:
        page = Call("", "GET", "/device")
        assert await statuses(at, page, PAGES.number + 1, "192.0.2.7") == [200, 429]
        assert (await at.call("GET", "/oidc/jwks", address="192.0.2.7")).status == 200
        assert (await at.call("POST", "/oidc/token", SAME_ORIGIN, b"", "192.0.2.7")).status == 401


async def test_pushed_requests_of_one_address_are_limited(tmp_path: Path) -> None:
    """The id of a client without a secret is public, so its pushed requests and devices count by address."""
    async with running(tmp_path) as at:
        limit = at.services.limits.generate_address
        assert limit is not None
        pushed = Call("", "POST", "/oidc/par", SAME_ORIGIN, urlencode(await parameters_of(at)).encode())
        assert await statuses(at, pushed, limit.rule.number + 1, "192.0.2.7") == [201, 429]
        refused = await at.call("POST", "/oidc/par", SAME_ORIGIN, pushed.body, "192.0.2.7")
        assert json.loads(refused.body)["error"] == "temporarily_unavailable"
        assert int(refused.headers["retry-after"]) >= 1
        assert (await at.call("POST", "/oidc/par", SAME_ORIGIN, pushed.body, "192.0.2.8")).status == 201


async def test_servers_are_not_limited_by_address(tmp_path: Path) -> None:
    """A server may push requests and start devices of many users from one address. Its secret proves who it is."""
    async with running(tmp_path) as at:
        limit = at.services.limits.generate_address
        assert limit is not None
        form = urlencode(await parameters_of(at, "post")).encode()
        for path, status in (("/oidc/par", 201), ("/oidc/device_authorization", 200)):
            call = Call("", "POST", path, SAME_ORIGIN, form)
            assert await statuses(at, call, limit.rule.number + 1, "192.0.2.7") == [status, status]


async def test_polls_of_a_device_that_never_waits_cause_no_writes(tmp_path: Path) -> None:
    """A device that polls far too often is told to slow down without a write to the store."""
    async with running(tmp_path) as at:
        parameters = await parameters_of(at)
        begun = await at.call("POST", "/oidc/device_authorization", SAME_ORIGIN, urlencode(parameters).encode())
        form = {
            "client_id": parameters["client_id"],
            "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
            "device_code": json.loads(begun.body)["device_code"],
        }
        polls = 0
        poll = at.services.storage.authorizations.poll_authorization

        async def counted(*values: object) -> object:
            nonlocal polls
            polls += 1
            return await poll(*values)  # type: ignore[arg-type]

        at.services.storage.authorizations.poll_authorization = counted  # type: ignore[assignment, method-assign]
        polled = Call("", "POST", "/oidc/token", SAME_ORIGIN, urlencode(form).encode())
        assert await statuses(at, polled, 40, "192.0.2.7") == [400, 400]
        answer = await at.call("POST", "/oidc/token", SAME_ORIGIN, polled.body, "192.0.2.8")
        assert json.loads(answer.body)["error"] == "slow_down"
        assert 1 < polls <= POLLS.capacity // POLLS.window
