"""Limits of starting sign-ins: only the caller over the limit is refused (docs: Limits)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.api.conftest import Api, assert_error
from tests.api.edge import ADA, ADA_6, BY_ADDRESS, BY_PROJECT, GRACE, PROXY, Edge, limited_edge, no_store, open_edge

from taproof.core.clock import SECOND


@pytest.fixture
async def edge(api: Api) -> AsyncIterator[Edge]:
    yield await open_edge(api)
    assert api.signin.waiting.count == 0


async def test_one_address_starts_so_many_sign_ins(edge: Edge) -> None:
    """The burst is the number; then one each twelfth of a minute; others are let in all the time."""
    for _ in range(BY_ADDRESS):
        assert (await edge.generate()).status_code == 200
    refused = await edge.generate()
    assert assert_error(refused, 429, "rate_limited") == "Too many requests. Try again in 12 seconds."
    assert refused.headers["retry-after"] == "12"
    assert (await edge.generate(GRACE)).status_code == 200
    edge.later(11_999)
    assert (await edge.generate()).headers["retry-after"] == "1"
    edge.later(1)
    assert (await edge.generate()).status_code == 200
    assert (await edge.generate()).status_code == 429
    assert edge.refused("generate_address") == 3


async def test_the_header_fields_tell_what_is_left(edge: Edge) -> None:
    """As draft-ietf-httpapi-ratelimit-headers-11 has them; `t` is when there is one more, as Retry-After is then."""
    policy = '"address";q=5;w=60'
    for left in (4, 3, 2, 1, 0):
        answer = await edge.generate()
        assert (answer.headers["ratelimit-policy"], answer.headers["ratelimit"]) == (policy, f'"address";r={left};t=12')
        assert answer.headers["access-control-expose-headers"] == "RateLimit, RateLimit-Policy"
        edge.later(0)
    edge.later(5_500)
    refused = await edge.generate()
    assert (refused.headers["ratelimit-policy"], refused.headers["ratelimit"]) == (policy, '"address";r=0;t=7')
    assert refused.headers["retry-after"] == "7"
    exposed = refused.headers["access-control-expose-headers"].split(", ")
    assert {"RateLimit", "RateLimit-Policy", "Retry-After", "X-Error-Code"} == set(exposed)


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        (ADA_6, "2001:db8:1:2:ffff:ffff:ffff:ffff", True),
        (ADA_6, "2001:db8:1:3::7", False),
        (ADA, f"::ffff:{ADA}", True),
        ("fe80::1", "fe80::1%eth0", True),
        (ADA, "203.0.113.8", False),
        (ADA, f"64:ff9b::{ADA}", True),
        (f"64:ff9b::{ADA}", f"64:ff9b::{GRACE}", False),
        ("2002:cb00:7107:1::7", "2002:cb00:7107:2::7", True),
        (ADA, "2002:cb00:7107:1::7", True),
        ("64:ff9b:1::1", "64:ff9b:1::2", True),
    ],
)
async def test_what_counts_as_one_address(edge: Edge, first: str, second: str, is_one: bool) -> None:  # noqa: FBT001 — a parameter.
    """Of IPv6 a /64, which one subscriber has, unless it stands for an IPv4 address; however written, it is one."""
    for _ in range(BY_ADDRESS):
        await edge.generate(first)
    assert (await edge.generate(second)).status_code == (429 if is_one else 200)


async def test_a_network_of_ipv6_starts_ten_times_as_many_sign_ins(edge: Edge) -> None:
    """A subscriber with a /48 has 65,536 of those /64; it gets ten times what one gets, and its neighbours go on."""
    edge.limits.generate_project = None
    subnets = iter(range(1_000))
    for _ in range(10 * BY_ADDRESS):
        assert (await edge.generate(f"2001:db8:1:{next(subnets):x}::1")).status_code == 200
    for _ in range(3):
        refused = await edge.generate(f"2001:db8:1:{next(subnets):x}::1")
        assert_error(refused, 429, "rate_limited")
        assert refused.headers["retry-after"] == "2"  # A tenth of twelve seconds, rounded up.
        assert refused.headers["ratelimit"] == '"address";r=0;t=2'
    assert edge.refused("generate_address") == 3
    for other in ("2001:db8:2::1", ADA, GRACE):
        assert (await edge.generate(other)).status_code == 200
    edge.later(1_200)
    assert (await edge.generate(f"2001:db8:1:{next(subnets):x}::1")).status_code == 200
    assert (await edge.generate(f"2001:db8:1:{next(subnets):x}::1")).status_code == 429


async def test_a_refused_call_takes_nothing_from_the_network_or_the_address(edge: Edge) -> None:
    """Neither an address that goes on calling nor a project that is full costs a /48 anything."""
    edge.limits.generate_project = None
    for _ in range(BY_ADDRESS + 100):
        last = await edge.generate(ADA_6)
    assert last.status_code == 429
    for number in range(9):
        for _ in range(BY_ADDRESS):
            assert (await edge.generate(f"2001:db8:1:1{number}::7")).status_code == 200
    for _ in range(3):
        assert (await edge.generate("2001:db8:1:20::7")).status_code == 429
    edge.later(1_200 * BY_ADDRESS)
    for _ in range(BY_ADDRESS):
        assert (await edge.generate("2001:db8:1:20::7")).status_code == 200


async def test_a_full_project_takes_nothing_from_the_network(edge: Edge) -> None:
    """Its refusals give back what was counted for the /48 too."""
    for number in range(BY_PROJECT):
        assert (await edge.generate(f"192.0.2.{number}")).status_code == 200
    for number in range(11 * BY_ADDRESS):
        refused = await edge.generate(f"2001:db8:1:{number:x}::7")
        assert '"project";r=0' in refused.headers["ratelimit"]
    assert edge.refused("generate_address") == 0


async def test_one_project_starts_so_many_sign_ins(edge: Edge) -> None:
    """The limit holds across all addresses. The refusal says so, and does not count against the address."""
    for number in range(BY_PROJECT):
        assert (await edge.generate(f"192.0.2.{number}")).status_code == 200
    for _ in range(2 * BY_ADDRESS):
        refused = await edge.generate()
        assert_error(refused, 429, "rate_limited")
        assert refused.headers["retry-after"] == "5"
        assert refused.headers["ratelimit-policy"] == '"address";q=5;w=60, "project";q=12;w=60'
        assert refused.headers["ratelimit"].endswith('"project";r=0;t=5')
    assert (edge.refused("generate_project"), edge.refused("generate_address")) == (2 * BY_ADDRESS, 0)
    edge.later(5 * SECOND)
    assert (await edge.generate()).status_code == 200


async def test_only_its_own_server_is_told_how_much_a_project_is_used(edge: Edge) -> None:
    """A stranger could count the sign-ins of a competitor; the project's server has no address limit."""
    assert "project" not in (await edge.generate()).headers["ratelimit"]
    for left in reversed(range(BY_PROJECT)):
        answer = await edge.generate_keyed()
        assert answer.status_code == 200
        assert answer.headers["ratelimit-policy"] == '"project";q=12;w=60'
        assert answer.headers["ratelimit"] == f'"project";r={left};t=5'
        assert "access-control-expose-headers" not in answer.headers
    assert_error(await edge.generate_keyed(), 429, "rate_limited")


async def test_a_public_flood_does_not_stop_the_server_of_the_project(edge: Edge) -> None:
    """Anybody can make public calls, so they are counted apart from those with the secret key; and the other way."""
    for number in range(BY_PROJECT + 1):
        last = await edge.generate(f"192.0.2.{number}")
    assert last.status_code == 429
    assert (await edge.generate_keyed()).status_code == 200


@pytest.mark.parametrize("fields", [{"public_access": False}, {"is_active": False}, {"code_challenge": "short"}])
async def test_what_starts_no_session_takes_nothing_from_the_project(edge: Edge, fields: dict[str, Any]) -> None:
    """Else strangers could use up the project's share with calls that the project refuses anyway."""
    more = {"code_challenge": fields["code_challenge"]} if "code_challenge" in fields else {}
    if not more:
        await edge.change(**fields)
    for number in range(2 * BY_PROJECT):
        assert (await edge.generate(f"192.0.2.{number}", **more)).status_code in {400, 401}
    await edge.change(public_access=True, is_active=True)
    for number in range(BY_PROJECT):
        assert (await edge.generate(f"198.51.100.{number}")).status_code == 200


async def test_projects_that_are_made_up_take_no_room(edge: Edge) -> None:
    """A name that nobody has is not remembered, and counts for who made it up."""
    for number in range(BY_ADDRESS):
        answer = await edge.call("generate/public", {"project_id": f"proj_{number:022}"})
        assert_error(answer, 404, "project_not_found")
    answer = await edge.call("generate/public", {"project_id": "proj_" + 22 * "x"})
    assert_error(answer, 429, "rate_limited")


async def test_a_refused_generate_asks_the_store_nothing(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered from memory, with nothing in the log."""
    for _ in range(BY_ADDRESS):
        await edge.generate()
    no_store(edge.api, monkeypatch)
    with capture_logs() as logs:
        assert (await edge.generate()).status_code == 429
    assert logs == []


async def test_off_is_no_limit(api: Api, edge: Edge) -> None:
    """Without the limits nobody is refused, and no header field speaks of any."""
    free = limited_edge(api, api.limits, edge.access_token, edge.project)
    for _ in range(3 * BY_PROJECT):
        answer = await free.generate()
        assert answer.status_code == 200
        assert "ratelimit" not in answer.headers
    assert "ratelimit" not in (await free.generate_keyed()).headers


# ---- whose address it is


async def test_a_program_on_this_machine_is_not_limited_by_address(edge: Edge) -> None:
    """A local-only service does not limit addresses; the limits of projects still hold."""
    for host in ("127.0.0.1", "::1", "127.8.9.1"):
        for _ in range(4):
            assert (await edge.generate(host, base="http://localhost")).status_code == 200
    session_token = await edge.start()
    for _ in range(50):
        assert (await edge.verify(session_token, "127.0.0.1")).status_code == 200
    assert (await edge.generate("127.0.0.1", base="http://localhost")).status_code == 429


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.8.9.1"])
@pytest.mark.parametrize("headers", [{}, {"Host": "127.0.0.1:8080"}, {"X-Forwarded-For": "127.0.0.1"}])
async def test_what_a_silent_proxy_here_passes_on_is_limited(api: Api, host: str, headers: dict[str, str]) -> None:
    """Without X-Forwarded-For nothing tells a stranger behind a proxy here from a program here: both are limited."""
    edge = await open_edge(api, local_only=False)
    for _ in range(BY_ADDRESS):
        assert (await edge.generate(host, base="http://localhost", headers=headers)).status_code == 200
    assert (await edge.generate(host, base="http://localhost", headers=headers)).status_code == 429
    session_token = await edge.start()
    answers = [(await edge.verify(session_token, host)).status_code for _ in range(11)]
    assert answers == [200] * 10 + [429]
    assert (await edge.generate(ADA)).status_code == 200


FROM_PROXY = {"X-Forwarded-Proto": "https"}


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        (PROXY, FROM_PROXY | {"X-Forwarded-For": "127.0.0.1"}),
        (PROXY, FROM_PROXY | {"X-Forwarded-For": "::1"}),
        (PROXY, FROM_PROXY | {"X-Forwarded-For": "10.0.0.7, 127.0.0.1"}),
        (PROXY, FROM_PROXY | {"X-Forwarded-For": "garbage"}),
        (PROXY, FROM_PROXY),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}),
        ("127.0.0.1", {"X-Forwarded-For": "203.0.113.7"}),
        ("::1", {"Forwarded": "for=127.0.0.1"}),
        (ADA, {"X-Forwarded-For": "127.0.0.1"}),
        (ADA, {"Forwarded": "for=127.0.0.1"}),
    ],
)
async def test_nobody_is_exempt_by_what_they_send(edge: Edge, client: str, headers: dict[str, str]) -> None:
    """Forwarding headers that a client writes and a proxy passes on do not make it a local program."""
    for _ in range(BY_ADDRESS):
        assert (await edge.generate(client, headers=headers)).status_code == 200
    assert (await edge.generate(client, headers=headers)).status_code == 429


async def test_nobody_changes_their_address_by_what_they_send(edge: Edge) -> None:
    """Neither past a proxy nor through one: what stands further left than the proxy's own entry does not count."""
    for number in range(BY_ADDRESS):
        spoofed = {"X-Forwarded-For": f"192.0.2.{number}", "Forwarded": f"for=192.0.2.{number}"}
        assert (await edge.generate(ADA, headers=spoofed)).status_code == 200
    spoofed = FROM_PROXY | {"X-Forwarded-For": f"192.0.2.77, {ADA}", "Forwarded": "for=192.0.2.78"}
    assert (await edge.generate(PROXY, headers=spoofed)).status_code == 429


async def test_nobody_uses_up_what_is_anothers(edge: Edge) -> None:
    """A client that writes another address into the headers uses up only its own limit."""
    for _ in range(BY_ADDRESS + 1):
        await edge.generate(GRACE, headers={"X-Forwarded-For": ADA})
        await edge.generate(PROXY, headers=FROM_PROXY | {"X-Forwarded-For": f"{ADA}, {GRACE}"})
    assert (await edge.generate(ADA)).status_code == 200
    assert (await edge.generate(PROXY, headers=FROM_PROXY | {"X-Forwarded-For": ADA})).status_code == 200
