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
    """An address may start the limit at once, then one each twelfth of a minute; other addresses are never refused."""
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
    """The headers follow draft-ietf-httpapi-ratelimit-headers-11.

    `t` says when the next call is allowed, as Retry-After does.
    """
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
    """An IPv6 /64 belongs to one subscriber and counts as one address, except where it maps an IPv4 address.

    Spelling does not matter.
    """
    for _ in range(BY_ADDRESS):
        await edge.generate(first)
    assert (await edge.generate(second)).status_code == (429 if is_one else 200)


async def test_a_network_of_ipv6_starts_ten_times_as_many_sign_ins(edge: Edge) -> None:
    """A /48, which has 65,536 subnets of /64, may start ten times the sign-ins of one address.

    Other networks are not affected.
    """
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
    """Refused calls of an address, or for a full project, do not count against the /48."""
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
    """A call that a full project refuses is also given back to the /48."""
    for number in range(BY_PROJECT):
        assert (await edge.generate(f"192.0.2.{number}")).status_code == 200
    for number in range(11 * BY_ADDRESS):
        refused = await edge.generate(f"2001:db8:1:{number:x}::7")
        assert '"project";r=0' in refused.headers["ratelimit"]
    assert edge.refused("generate_address") == 0


async def test_one_project_starts_so_many_sign_ins(edge: Edge) -> None:
    """The limit of a project holds across all addresses. The refusal says so and does not count against the address."""
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
    """Only the project's own server sees the project's usage. A stranger could count a competitor's sign-ins."""
    assert "project" not in (await edge.generate()).headers["ratelimit"]
    for left in reversed(range(BY_PROJECT)):
        answer = await edge.generate_keyed()
        assert answer.status_code == 200
        assert answer.headers["ratelimit-policy"] == '"project";q=12;w=60'
        assert answer.headers["ratelimit"] == f'"project";r={left};t=5'
        assert "access-control-expose-headers" not in answer.headers
    assert_error(await edge.generate_keyed(), 429, "rate_limited")


async def test_a_public_flood_does_not_stop_the_server_of_the_project(edge: Edge) -> None:
    """Anyone can make public calls, so they are counted separately from calls with the secret key."""
    for number in range(BY_PROJECT + 1):
        last = await edge.generate(f"192.0.2.{number}")
    assert last.status_code == 429
    assert (await edge.generate_keyed()).status_code == 200


@pytest.mark.parametrize("fields", [{"public_access": False}, {"is_active": False}, {"code_challenge": "short"}])
async def test_what_starts_no_session_takes_nothing_from_the_project(edge: Edge, fields: dict[str, Any]) -> None:
    """Calls that the project refuses do not count, so strangers cannot use up the project's limit with them."""
    more = {"code_challenge": fields["code_challenge"]} if "code_challenge" in fields else {}
    if not more:
        await edge.change(**fields)
    for number in range(2 * BY_PROJECT):
        assert (await edge.generate(f"192.0.2.{number}", **more)).status_code in {400, 401}
    await edge.change(public_access=True, is_active=True)
    for number in range(BY_PROJECT):
        assert (await edge.generate(f"198.51.100.{number}")).status_code == 200


async def test_projects_that_are_made_up_take_no_room(edge: Edge) -> None:
    """An unknown project id is not remembered, and counts only against the caller's address."""
    for number in range(BY_ADDRESS):
        answer = await edge.call("generate/public", {"project_id": f"proj_{number:022}"})
        assert_error(answer, 404, "project_not_found")
    answer = await edge.call("generate/public", {"project_id": "proj_" + 22 * "x"})
    assert_error(answer, 429, "rate_limited")


async def test_a_refused_generate_asks_the_store_nothing(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is answered from memory, without the store and without a log line."""
    for _ in range(BY_ADDRESS):
        await edge.generate()
    no_store(edge.api, monkeypatch)
    with capture_logs() as logs:
        assert (await edge.generate()).status_code == 429
    assert logs == []


async def test_off_is_no_limit(api: Api, edge: Edge) -> None:
    """Without limits, no call is refused and no header mentions a limit."""
    free = limited_edge(api, api.limits, edge.access_token, edge.project)
    for _ in range(3 * BY_PROJECT):
        answer = await free.generate()
        assert answer.status_code == 200
        assert "ratelimit" not in answer.headers
    assert "ratelimit" not in (await free.generate_keyed()).headers


# ---- whose address it is


async def test_a_program_on_this_machine_is_not_limited_by_address(edge: Edge) -> None:
    """A service without outside clients does not limit addresses; the limits of projects still hold."""
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
    """A proxy on this machine that sends no X-Forwarded-For looks like a local program, so both are limited."""
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
    """Forwarding headers that a client sends and a proxy passes on do not make the client a local program."""
    for _ in range(BY_ADDRESS):
        assert (await edge.generate(client, headers=headers)).status_code == 200
    assert (await edge.generate(client, headers=headers)).status_code == 429


async def test_nobody_changes_their_address_by_what_they_send(edge: Edge) -> None:
    """A client cannot change its address, with or without a proxy: only the entry that the proxy added counts."""
    for number in range(BY_ADDRESS):
        spoofed = {"X-Forwarded-For": f"192.0.2.{number}", "Forwarded": f"for=192.0.2.{number}"}
        assert (await edge.generate(ADA, headers=spoofed)).status_code == 200
    spoofed = FROM_PROXY | {"X-Forwarded-For": f"192.0.2.77, {ADA}", "Forwarded": "for=192.0.2.78"}
    assert (await edge.generate(PROXY, headers=spoofed)).status_code == 429


async def test_nobody_uses_up_what_is_anothers(edge: Edge) -> None:
    """A client that puts another address into the headers uses up only its own limit."""
    for _ in range(BY_ADDRESS + 1):
        await edge.generate(GRACE, headers={"X-Forwarded-For": ADA})
        await edge.generate(PROXY, headers=FROM_PROXY | {"X-Forwarded-For": f"{ADA}, {GRACE}"})
    assert (await edge.generate(ADA)).status_code == 200
    assert (await edge.generate(PROXY, headers=FROM_PROXY | {"X-Forwarded-For": ADA})).status_code == 200
