"""Limits of polling: only the client over the limit is refused (docs: Limits)."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs
from tests.api.conftest import Api, assert_error
from tests.api.edge import ADA, GRACE, Edge, no_store, open_edge

from taproof.core.clock import SECOND
from taproof.core.errors import StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.http.limits.rates import POLL_REFUSALS
from taproof.sdk.code_challenge import code_challenge, new_code_verifier


@pytest.fixture
async def edge(api: Api) -> AsyncIterator[Edge]:
    yield await open_edge(api)
    assert api.signin.waiting.count == 0


@pytest.mark.parametrize("endpoint", ["verify/public", "verify"])
async def test_a_poller_at_the_usual_pace_is_never_refused(edge: Edge, endpoint: str) -> None:
    """A client that polls every 1.5 seconds is never refused, however long it polls."""
    session_token = await edge.start()
    for _ in range(100):
        assert (await edge.verify(session_token, endpoint=endpoint)).json() == {"status": "pending"}
        edge.later(1_500)


@pytest.mark.parametrize("endpoint", ["cancel/public", "cancel"])
async def test_cancellations_count_as_polls(edge: Edge, endpoint: str) -> None:
    """Polls and cancellations share one limit of ten at once.

    Calls that find no session count as polls of unknown sessions.
    """
    verifier = new_code_verifier()
    session_token = await edge.start(challenge=code_challenge(verifier))
    verify = endpoint.replace("cancel", "verify")
    statuses = [
        (await edge.verify(session_token, endpoint=each, code_verifier=verifier)).status_code
        for each in (verify, endpoint) * 6
    ]
    assert statuses == [200] * 10 + [429] * 2
    refused = await edge.verify(session_token, endpoint=endpoint, code_verifier=verifier)
    assert_error(refused, 429, "rate_limited")
    assert int(refused.headers["retry-after"]) > 0
    unknown = [
        (await edge.verify(f"{session_token[:-12]}{number:011}A", endpoint=endpoint)).status_code
        for number in range(201)
    ]
    assert unknown == [404] * 200 + [429]


@pytest.mark.parametrize("endpoint", ["verify/public", "verify"])
async def test_who_polls_too_often_is_refused_and_loses_nothing(
    edge: Edge, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ten calls at once, 429 is answered from prepared bytes without the store.

    The confirmed answer can still be read later.
    """
    session_token = await edge.start()
    for _ in range(10):
        assert (await edge.verify(session_token, endpoint=endpoint)).status_code == 200
    await edge.api.signin.open_session(session_token, "42")
    await edge.api.signin.confirm_session(session_token, MessengerIdentity("42", "Ada", "ada"))
    with monkeypatch.context() as patched:
        if endpoint == "verify/public":
            no_store(edge.api, patched)
        for wait in (2, 2, 1):
            refused = await edge.verify(session_token, endpoint=endpoint)
            assert_error(refused, 429, "rate_limited")
            assert refused.headers["retry-after"] == str(wait)
            assert refused.content == POLL_REFUSALS[wait]
            exposed = refused.headers.get("access-control-expose-headers", "")
            assert ("Retry-After" in exposed) == (endpoint == "verify/public")
            edge.later(400)
    assert edge.refused("verify_session") == 3
    edge.later(250)
    answer = await edge.verify(session_token, endpoint=endpoint)
    assert (answer.json()["status"], answer.json()["messenger_id"]) == ("confirmed", "42")


async def test_pollers_behind_one_address_do_not_disturb_each_other(edge: Edge) -> None:
    """A client that polls without a pause does not affect other clients behind the same address."""
    wild, *others = [await edge.start() for _ in range(40)]
    for _ in range(20):
        for _ in range(5):
            await edge.verify(wild)
        for session_token in others:
            assert (await edge.verify(session_token)).status_code == 200
        edge.later(1_500)
    assert (edge.refused("verify_session") or 0) > 50


async def test_unknown_sessions_are_refused_after_a_while(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two hundred at once and twenty a second, the store is not read.

    Pollers of known sessions and other addresses continue.
    """
    known, theirs, late = await edge.start(), await edge.start(), await edge.start()
    assert (await edge.verify(known)).status_code == 200
    made_up = [known[:-12] + f"{number:011}A" for number in range(230)]
    for session_token in made_up[:200]:
        assert (await edge.verify(session_token)).status_code == 404
    with monkeypatch.context() as patched:
        no_store(edge.api, patched)
        for session_token in made_up[200:]:
            refused = await edge.verify(session_token)
            assert_error(refused, 429, "rate_limited")
            assert refused.headers["retry-after"] == "1"
    assert edge.refused("verify_unknown") == 30
    assert (await edge.verify(known)).status_code == 200
    assert (await edge.verify(theirs, GRACE)).status_code == 200
    assert (await edge.verify(late)).status_code == 429
    edge.later(50)
    assert (await edge.verify(late)).status_code == 200


async def test_unknown_sessions_of_a_network_are_refused_after_a_while(edge: Edge) -> None:
    """An IPv6 /48 may poll ten times as many unknown sessions as an address, however it spreads them.

    Known pollers continue.
    """
    known, other = await edge.start(), await edge.start()
    assert (await edge.verify(known, "2001:db8:1:ffff::1")).status_code == 200
    made_up = (known[:-12] + f"{number:011}A" for number in range(3_000))
    for number in range(2_000):
        assert (await edge.verify(next(made_up), f"2001:db8:1:{number % 20:x}::1")).status_code == 404
    for number in range(20, 30):
        refused = await edge.verify(next(made_up), f"2001:db8:1:{number:x}::1")
        assert_error(refused, 429, "rate_limited")
    assert edge.refused("verify_unknown") == 10
    assert (await edge.verify(known, "2001:db8:1:ffff::1")).status_code == 200
    assert (await edge.verify(other, "2001:db8:2::1")).status_code == 200


async def test_made_up_sessions_take_no_room(edge: Edge) -> None:
    """An address that guesses costs the service one number in memory."""
    session_token = await edge.start()
    for number in range(150):
        await edge.verify(session_token[:-12] + f"{number:011}A")
    assert (len(edge.limits.polls), len(edge.limits.unknown)) == (0, 1)


async def test_wrong_verifiers_are_counted_and_do_not_disturb_the_right_one(edge: Edge) -> None:
    """A person who photographed the code and shares the address cannot keep the client from its answer."""
    verifier = new_code_verifier()
    session_token = await edge.start(challenge=code_challenge(verifier))
    statuses: list[int] = []
    for _ in range(300):
        if len(statuses) % 30 == 0:
            assert (await edge.verify(session_token, code_verifier=verifier)).status_code == 200
        statuses.append((await edge.verify(session_token, code_verifier=new_code_verifier())).status_code)
    assert statuses == [404] * 200 + [429] * 100
    for more in ({}, {"code_verifier": 7}, {"code_verifier": "x"}):
        assert (await edge.verify(session_token, **more)).status_code == 429
    edge.later(1_500)
    assert (await edge.verify(session_token, code_verifier=verifier)).status_code == 200


async def test_made_up_verifiers_are_no_way_round_the_limit(edge: Edge) -> None:
    """Any verifier fits a session without a challenge, so each verifier would otherwise count as a separate poller."""
    session_token = await edge.start()
    let_in = 0
    for _ in range(100):
        let_in += (await edge.verify(session_token, code_verifier=new_code_verifier())).status_code == 200
    assert let_in == 10


@pytest.mark.parametrize("spoil", [{"project_id": "proj_" + 22 * "0"}, {"wait": 31}, {"code_verifier": [1]}])
async def test_no_failure_gives_a_burst_back(edge: Edge, spoil: dict[str, Any]) -> None:
    """A failed call does not reset the client's limit."""
    session_token = await edge.start()
    let_in = 0
    for _ in range(50):
        let_in += (await edge.verify(session_token)).status_code == 200
        await edge.verify(session_token, **spoil)
    assert let_in <= 10


async def test_a_waiting_client_is_known_from_call_to_call(edge: Edge) -> None:
    """SDKs call every 25 seconds and are always accepted, even while other clients at the address guess sessions."""
    session_token = await edge.start()
    assert (await edge.verify(session_token, wait=0.01)).status_code == 200
    for round_ in range(8):
        for number in range(300):
            await edge.verify(session_token[:-12] + f"{round_}{number:010}A")
        edge.later(25 * SECOND)
        for number in range(300):
            await edge.verify(session_token[:-12] + f"{round_}{number:09}xA")
        assert (await edge.verify(session_token, wait=0.01)).status_code == 200


async def test_a_store_that_is_away_counts_against_nobody(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that fail because the store is unavailable do not count against their clients."""
    session_token = await edge.start()

    async def away(*_: object) -> Any:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(edge.api.storage.sessions, "poll_session", away)
        for number in range(250):
            assert (await edge.verify(f"{session_token[:-4]}{number:03}A")).status_code == 503
    assert (await edge.verify(session_token)).status_code == 200


async def test_questions_before_a_call_are_not_counted(edge: Edge) -> None:
    """OPTIONS, which browsers send first, and other methods do not count."""
    transport = httpx.ASGITransport(edge.app, client=(ADA, 4711))
    async with httpx.AsyncClient(transport=transport, base_url="https://taproof.test") as http:
        for _ in range(50):
            assert (await http.options("/api/v1/generate/public")).status_code == 200
            assert (await http.get("/api/v1/generate/public")).status_code == 405
    assert (await edge.generate()).status_code == 200


async def test_refusals_tell_nothing_of_anybody(edge: Edge) -> None:
    """Neither metrics nor log contain an address, a token or a project id."""
    session_token = await edge.start()
    with capture_logs() as logs:
        for _ in range(20):
            await edge.generate()
            await edge.verify(session_token)
            await edge.verify(f"{session_token[:-4]}000A")
    shown = generate_latest(edge.api.metrics.registry).decode() + repr(logs)
    for secret in (ADA, session_token, edge.project["id"]):
        assert secret not in shown
    assert (edge.refused("verify_session"), edge.refused("generate_address")) == (10, 15)
