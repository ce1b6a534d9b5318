"""Waiting for the user: the long poll, its fall-back, the failures that it survives, and its end."""

from typing import Any

import pytest
from tests.sdk.either_client import (
    CONFIRMED,
    CREATED,
    PENDING,
    EitherClient,
    HandClock,
    Reply,
    ScriptedServer,
    hang_up,
    reply,
    slow_by,
)

from taproof import (
    AuthenticationFailed,
    NotFound,
    RateLimited,
    ServiceUnavailable,
    TaproofApiError,
    UnexpectedAnswer,
)


def test_a_held_call_is_asked_again_at_once(client: EitherClient, server: ScriptedServer, clock: HandClock) -> None:
    """In the long poll, the service holds each call for 25 seconds, and the client does not pause."""
    held = slow_by(clock, 25, reply(200, PENDING))
    server.replies = [reply(200, CREATED), held, held, slow_by(clock, 3, reply(200, CONFIRMED))]
    result = client.wait_for_user(client.create_session())
    assert (result.status, result.user.messenger_id, result.proof) == ("confirmed", "1001", "a.b.c")
    assert [each.body["wait"] for each in server.received[1:]] == [25.0, 25.0, 25.0]
    assert clock.slept == []


def test_an_answer_at_once_means_polling(client: EitherClient, server: ScriptedServer, clock: HandClock) -> None:
    """An old service ignores `wait`, and a full one answers immediately: then the client polls every 2 seconds."""
    server.replies = [reply(200, CREATED), *[reply(200, PENDING)] * 3, reply(200, CONFIRMED)]
    assert client.wait_for_user(client.create_session()).is_confirmed
    assert clock.slept == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "failure",
    [reply(429), reply(502), reply(503), reply(504), hang_up, reply(429, Retry_After="80")],
    ids=["429", "502", "503", "504", "dropped", "come again in 80 s"],
)
def test_waiting_survives_what_passes(client: EitherClient, server: ScriptedServer, failure: Reply) -> None:
    """A restart of the service, a proxy's error or a lost network does not end a sign-in."""
    server.replies = [reply(200, CREATED), *[failure] * 5, reply(200, PENDING), failure, reply(200, CONFIRMED)]
    assert client.wait_for_user(client.create_session()).is_confirmed
    verifiers = {each.body["code_verifier"] for each in server.received[1:]}
    assert len(verifiers) == 1


def test_a_rate_limit_is_waited_out(client: EitherClient, server: ScriptedServer, clock: HandClock) -> None:
    """After 429, the client waits for `Retry-After`, then continues and gets the answer."""
    server.replies = [reply(200, CREATED), *[reply(429, Retry_After="2")] * 9, reply(200, CONFIRMED)]
    assert client.wait_for_user(client.create_session()).is_confirmed
    assert len(server.received) == 11
    assert min(clock.slept) >= 2


def test_a_rate_limit_is_waited_for_no_longer_than_there_is_time(
    client: EitherClient, server: ScriptedServer, clock: HandClock
) -> None:
    """If `Retry-After` exceeds the deadline, the client asks once more before it. The user may have confirmed."""
    server.replies = [reply(200, CREATED), reply(429, Retry_After="80"), reply(200, CONFIRMED)]
    sign_in, begun = client.create_session(), clock.now
    assert client.wait_for_user(sign_in, timeout=60).is_confirmed
    assert clock.now - begun == 58
    server.replies = [reply(429, Retry_After="80")]
    with pytest.raises(RateLimited) as caught:
        client.wait_for_user(sign_in, timeout=60)
    assert caught.value.retry_after == 80
    assert clock.now - begun == 116
    assert len(server.received) == 5


@pytest.mark.parametrize("status", ["cancelled", "expired", "used", "confirmed"])
def test_waiting_stops_on_every_terminal_status(client: EitherClient, server: ScriptedServer, status: str) -> None:
    """Polling stops on any terminal status (service-spec.md, States, rule 1)."""
    server.replies = [reply(200, CREATED), reply(200, CONFIRMED | {"status": status})]
    result = client.wait_for_user(client.create_session())
    assert result.status == status
    assert (result.user is None, result.proof is None) == ((status != "confirmed",) * 2)
    assert len(server.received) == 2


@pytest.mark.parametrize(("status", "kind"), [(401, AuthenticationFailed), (404, NotFound), (500, ServiceUnavailable)])
def test_waiting_ends_with_what_does_not_pass(
    client: EitherClient, server: ScriptedServer, status: int, kind: type[TaproofApiError]
) -> None:
    """A deleted session and a replaced key are permanent, so the caller gets the error immediately."""
    server.replies = [reply(200, CREATED), reply(status, {"error": "No."})]
    sign_in = client.create_session()
    with pytest.raises(kind):
        client.wait_for_user(sign_in)
    assert len(server.received) == 2


@pytest.mark.parametrize("held", [0, 25])
def test_the_deadline_of_waiting(client: EitherClient, server: ScriptedServer, clock: HandClock, held: int) -> None:
    """If nobody taps, the status is still pending exactly at the timeout."""
    server.replies = [reply(200, CREATED)]
    sign_in = client.create_session()
    begun = clock.now

    def pending(connection: Any) -> None:
        clock.now += min(held, server.received[-1].body["wait"])
        connection.sendall(reply(200, PENDING))

    server.replies = [pending]
    assert client.wait_for_user(sign_in, timeout=60).status == "pending"
    assert 56 <= clock.now - begun <= 60


def test_failures_until_the_deadline_are_raised(client: EitherClient, server: ScriptedServer, clock: HandClock) -> None:
    """If the state is unknown, an error is raised instead of a status that may be wrong."""
    server.replies = [reply(200, CREATED), reply(502)]
    sign_in, begun = client.create_session(), clock.now
    with pytest.raises(ServiceUnavailable):
        client.wait_for_user(sign_in, timeout=60)
    assert clock.now - begun <= 60


def test_an_unknown_status_is_no_sign_in(client: EitherClient, server: ScriptedServer) -> None:
    """Only the five statuses of the specification are accepted, and `confirmed` only with all of its fields."""
    server.replies = [reply(200, CREATED), reply(200, {"status": "ok"}), reply(200, {"status": "confirmed"})]
    sign_in = client.create_session()
    for _ in range(2):
        with pytest.raises(UnexpectedAnswer):
            client.wait_for_user(sign_in)
