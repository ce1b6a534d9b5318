"""The return code, the hints and the cancel of a sign-in: the requests and answers of both clients."""

import pytest
from tests.sdk.either_client import (
    CONFIRMED,
    CREATED,
    PENDING,
    EitherClient,
    HandClock,
    NewClient,
    ScriptedServer,
    hang_up,
    reply,
    slow_by,
)

from taproof import UnexpectedAnswer

RETURN_URL = "https://shop.example.com/signed-in"
CODE = "c" * 32


def test_the_fields_of_a_return(client: EitherClient, server: ScriptedServer) -> None:
    """The return URL and the return code are sent only if they are given; `return_required` is False without it."""
    server.replies = [reply(200, CREATED), reply(200, CREATED | {"return_required": True}), reply(200, CONFIRMED)]
    plain, returning = client.create_session(), client.create_session(return_url=RETURN_URL)
    assert (plain.return_required, returning.return_required) == (False, True)
    assert client.verify_session(returning, return_code=CODE).is_confirmed
    client.verify_session(returning)
    created, with_url, with_code, without = (each.body for each in server.received)
    assert with_url.keys() - created.keys() == {"return_url"}
    assert with_url["return_url"] == RETURN_URL
    assert with_code == without | {"return_code": CODE}


def test_the_hints(client: EitherClient, server: ScriptedServer) -> None:
    """Hints are requested only if the caller wants them, and an unknown one of a newer service is passed on."""
    hints = ("waiting", "opened", "choosing", "phone_asked", "return", "unreachable", "of_next_year")
    pending = [reply(200, PENDING | {"hint": hint}) for hint in hints]
    server.replies = [reply(200, CREATED), *pending, reply(200, PENDING), reply(200, PENDING | {"hint": 1})]
    sign_in = client.create_session()
    assert tuple(client.verify_session(sign_in, hints=True).hint for _ in hints) == hints
    assert client.verify_session(sign_in).hint is None
    with pytest.raises(UnexpectedAnswer, match="hint"):
        client.verify_session(sign_in, hints=True, seen_hint="opened", wait=20)
    asked, plain, held = (server.received[place].body for place in (1, -2, -1))
    assert asked == plain | {"hints": True}
    assert held == asked | {"seen_hint": "opened", "wait": 20}


def test_a_held_call_has_the_time_to_wait(client: EitherClient, server: ScriptedServer, clock: HandClock) -> None:
    """The service may hold the call for `wait` in addition to the client's timeout, and a lost call is repeated."""
    lost = slow_by(clock, 29, b"")
    server.replies = [reply(200, CREATED), lost, slow_by(clock, 25, reply(200, PENDING | {"hint": "opened"}))]
    assert client.verify_session(client.create_session(), hints=True, wait=25).hint == "opened"
    assert [each.body["wait"] for each in server.received[1:]] == [25, 25]


@pytest.mark.parametrize("status", ["cancelled", "confirmed", "expired", "used"])
def test_cancelling(client: EitherClient, server: ScriptedServer, status: str) -> None:
    """A cancel proves that it comes from the client that started the sign-in; after a lost answer, it is repeated."""
    server.replies = [reply(200, CREATED), hang_up, reply(200, {"status": status})]
    sign_in = client.create_session()
    assert client.cancel_session(sign_in) == status
    assert server.lines[1:] == ["POST /api/v1/cancel HTTP/1.1"] * 2
    assert server.received[-1].body == {
        "project_id": "proj_1",
        "session_token": sign_in.session_token,
        "code_verifier": sign_in.code_verifier,
    }


def test_a_public_cancel(new_client: NewClient, server: ScriptedServer) -> None:
    """Without a secret key, the public endpoint is called. An answer without a known status is refused."""
    client = new_client(secret_key=None)
    server.replies = [reply(200, CREATED), reply(200, {"status": "cancelled"}), reply(200, {"status": "gone"})]
    sign_in = client.create_session()
    assert client.cancel_session(sign_in) == "cancelled"
    assert server.lines[-1] == "POST /api/v1/cancel/public HTTP/1.1"
    with pytest.raises(UnexpectedAnswer, match="status"):
        client.cancel_session(sign_in)
