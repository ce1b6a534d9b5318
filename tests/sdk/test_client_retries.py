"""The clients against a misbehaving server: which calls are repeated, which never are, and the final errors."""

import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from tests.sdk.either_client import (
    ACCESS_TOKEN,
    ACCOUNT,
    CREATED,
    PENDING,
    SECRET_KEY,
    EitherClient,
    HandClock,
    NewClient,
    Reply,
    ScriptedServer,
    hang_up,
    reply,
    slow_by,
)

from taproof import (
    AuthenticationFailed,
    Client,
    ConnectionFailed,
    InvalidRequest,
    NotFound,
    RateLimited,
    ServiceUnavailable,
    TaproofApiError,
    UnexpectedAnswer,
)
from taproof.sdk.exchange import ANSWER_LIMIT


@pytest.mark.parametrize(
    "failure",
    [reply(429), reply(502, b"<html>Bad gateway"), reply(503), reply(504), hang_up, reply(200, b"{")[:-1] + b""],
    ids=["429", "502", "503", "504", "connection dropped", "answer cut off"],
)
def test_a_read_is_repeated_until_it_is_answered(
    client: EitherClient, server: ScriptedServer, clock: HandClock, failure: Reply
) -> None:
    """A read is repeated after transient failures, with growing delays, because it changes nothing."""
    server.replies = [failure, failure, reply(200, ACCOUNT)]
    assert client.read_account().email == "ada@example.com"
    assert server.lines == ["GET /api/v1/dev/me HTTP/1.1"] * 3
    assert clock.slept == [0.5, 1.0]


def test_attempts_are_bounded(client: EitherClient, server: ScriptedServer) -> None:
    """A service that is down is asked a limited number of times, and the last failure is raised."""
    server.replies = [reply(503, {"error": "Down."}, X_Error_Code="store_unavailable")]
    with pytest.raises(ServiceUnavailable, match="Down") as caught:
        client.read_account()
    assert len(server.received) == 5
    assert caught.value.code == "store_unavailable"


@pytest.mark.parametrize("failure", [reply(502), reply(504), reply(503), reply(429), hang_up])
@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.create_project("Shop"),
        lambda client: client.update_project("proj_1", name="Shop"),
        lambda client: client.delete_project("proj_1"),
        lambda client: client.regenerate_secrets("proj_1"),
        lambda client: client.send_webhook_test("proj_1"),
        lambda client: client.create_access_token("deploy"),
        lambda client: client.create_session(),
    ],
    ids=["create_project", "update", "delete", "regenerate", "webhook_test", "create_access_token", "create_session"],
)
def test_a_change_that_may_have_arrived_is_never_repeated(
    client: EitherClient, server: ScriptedServer, act: Callable[[EitherClient], Any], failure: Reply
) -> None:
    """Once the request was sent, a lost answer is reported and not repeated. So one call never creates two projects."""
    server.replies = [failure]
    with pytest.raises(TaproofApiError):
        act(client)
    assert len(server.received) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_change_that_was_refused_is_repeated_when_the_service_says_when(
    client: EitherClient, server: ScriptedServer, clock: HandClock, status: int
) -> None:
    """429 and 503 with Retry-After say that nothing was done, so a create may be repeated."""
    server.replies = [reply(status, Retry_After="7"), reply(200, CREATED)]
    assert client.create_session().session_token == "T" * 43
    assert len(server.received) == 2
    assert clock.slept == [7.5]
    assert server.received[0].body == server.received[1].body


def test_a_change_is_repeated_when_no_connection_came_about(new_client: NewClient, clock: HandClock) -> None:
    """A request that was never sent had no effect, so it is repeated, with delays between the attempts."""
    client = new_client("http://127.0.0.1:9")
    with pytest.raises(ConnectionFailed, match="no connection"):
        client.create_project("Shop")
    assert clock.slept == [0.5, 1.0, 2.0, 4.0]


def test_retry_after_may_be_a_date(client: EitherClient, server: ScriptedServer, clock: HandClock) -> None:
    """An HTTP date is obeyed as seconds are (RFC 9110, 10.2.3). The clock is at 1,000 s after the epoch."""
    server.replies = [reply(503, Retry_After="Thu, 01 Jan 1970 00:16:52 GMT"), reply(200, ACCOUNT)]
    client.read_account()
    assert clock.slept == [12.5]


@pytest.mark.parametrize("value", ["soon", "-3", "", "1e3", "9" * 400 + "x", "Thu, 99 Foo"])
def test_a_retry_after_that_is_none_is_passed_over(
    client: EitherClient, server: ScriptedServer, clock: HandClock, value: str
) -> None:
    """With any invalid value, the client uses its own delays."""
    server.replies = [reply(503, Retry_After=value), reply(200, ACCOUNT)]
    client.read_account()
    assert clock.slept == [0.5]


@pytest.mark.parametrize("value", ["3600", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_nobody_waits_beyond_the_timeout(
    client: EitherClient, server: ScriptedServer, clock: HandClock, value: str
) -> None:
    """The timeout covers a call with its delays: a Retry-After beyond it is raised instead of slept."""
    server.replies = [reply(429, {"error": "Slower."}, Retry_After=value)]
    with pytest.raises(RateLimited, match="Slower") as caught:
        client.read_account()
    assert clock.slept == []
    assert caught.value.retry_after is not None
    assert 3600 <= caught.value.retry_after <= 86_400


def test_slow_failures_end_with_the_timeout(client: EitherClient, server: ScriptedServer, clock: HandClock) -> None:
    """The deadline includes the time of the attempts: 30 seconds allow three that take 10."""
    server.replies = [slow_by(clock, 9.5, reply(502))]
    with pytest.raises(ServiceUnavailable):
        client.read_account()
    assert len(server.received) == 3


def never_answer(_connection: Any) -> None:
    time.sleep(2)


def dripping(before: bytes, piece: bytes, after: bytes) -> Reply:
    """Send an answer that is whole after two seconds: the piece 100 times, one by one."""

    def send(connection: Any) -> None:
        connection.sendall(before)
        for _ in range(100):
            connection.sendall(piece)
            time.sleep(0.02)
        connection.sendall(after)

    return send


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(never_answer, id="nothing"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b" ", b""), id="body"),
        pytest.param(dripping(b"HTTP/1.1 200 ", b"K", b"\r\nContent-Length: 2\r\n\r\n{}"), id="status line"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x", b"\r\nContent-Length: 2\r\n\r\n{}"), id="header"),
        pytest.param(dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE), id="interim answers"),
        pytest.param(dripping(CHUNKED, b"0", b"2\r\n{}\r\n0\r\n\r\n"), id="size of a chunk"),
        pytest.param(dripping(CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n", b"\r\n"), id="trailers"),
    ],
)
def test_a_peer_cannot_hold_a_call(new_client: NewClient, server: ScriptedServer, behaviour: Reply) -> None:
    """A missing or slow answer is given up after the timeout, whichever part of it is slow."""
    server.replies = [behaviour]
    with pytest.raises(ConnectionFailed, match="no complete response arrived in time"):
        new_client(timeout=0.3).create_project("Shop")


def test_a_read_that_hangs_is_made_again_in_time(new_client: NewClient, server: ScriptedServer) -> None:
    """One attempt never uses all the time of a read, because the next one may be answered immediately."""
    ended = threading.Event()

    def hang(_connection: Any) -> None:
        ended.wait(60)

    server.replies = [hang, reply(200, ACCOUNT)]
    assert new_client(timeout=6, clock=None).read_account().email == "ada@example.com"
    ended.set()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, InvalidRequest) for status in (400, 405, 413)),
        *((status, AuthenticationFailed) for status in (401, 403)),
        (404, NotFound),
        *((status, ServiceUnavailable) for status in (500, 501)),
    ],
)
def test_each_kind_of_failure_has_its_error(
    client: EitherClient, server: ScriptedServer, status: int, kind: type[TaproofApiError]
) -> None:
    """Each failure has its class, status, code and the service's sentence. Permanent failures are not repeated."""
    server.replies = [reply(status, {"error": "There is no such project."}, X_Error_Code="project_not_found")]
    with pytest.raises(TaproofApiError) as caught:
        client.read_project("proj_1")
    error = caught.value
    assert type(error) is kind
    told = (error.status, error.code, error.sentence, str(error))
    assert told == (status, "project_not_found", "There is no such project.", "There is no such project.")
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "answer",
    [
        reply(301, Location="http://127.0.0.1:9/api/v1/dev/me"),
        reply(307, Location="/elsewhere"),
        reply(204),
        reply(200, b"<html>Welcome"),
        reply(200, [1]),
        reply(200, b"\xff"),
        reply(200, b"[" * 100_000),
        reply(200, b" " * (ANSWER_LIMIT + 1)),
        reply(200, b'{"email":' + b"9" * 5_000 + b"}"),
        reply(200, ACCOUNT | {"email": 7}),
        reply(200, ACCOUNT | {"created_at": "yesterday"}),
        reply(200, ACCOUNT | {"created_at": "2026-11-20T22:44:03"}),
        reply(200, {"id": "dev_1"}),
    ],
)
def test_what_is_no_taproof_answer_is_refused(client: EitherClient, server: ScriptedServer, answer: bytes) -> None:
    """Redirects are never followed, answers have a size limit, and each field must have its type."""
    server.replies = [answer]
    with pytest.raises(UnexpectedAnswer):
        client.read_account()
    assert len(server.received) == 1


def test_the_cap_stops_reading(client: EitherClient, server: ScriptedServer) -> None:
    """An endless answer is read up to the limit, whatever its Content-Length says."""
    sent = 0

    def flood(connection: Any) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while sent < 500 * ANSWER_LIMIT:
            sent += connection.send(b" " * 65_536)

    server.replies = [flood]
    with pytest.raises(UnexpectedAnswer):
        client.read_account()
    assert sent < 50 * ANSWER_LIMIT


def test_unknown_fields_of_newer_services_are_ignored(client: EitherClient, server: ScriptedServer) -> None:
    """An older SDK works with a newer service."""
    server.replies = [reply(200, ACCOUNT | {"plan": "galactic", "avatar": {"url": 1}})]
    assert client.read_account().plan == "galactic"


def test_a_list_whose_cursor_leads_nowhere_ends(client: EitherClient, server: ScriptedServer) -> None:
    """A cursor that repeats cannot make the iterator loop forever."""
    server.replies = [reply(200, {"entries": [], "next_cursor": "same"})]
    with pytest.raises(UnexpectedAnswer):
        client.list_audit_entries()
    assert len(server.received) == 2


def test_pages_are_read_as_they_are_needed(server: ScriptedServer) -> None:
    """A caller that needs only the newest entry does not fetch all pages."""
    texts = dict.fromkeys(("id", "action", "actor", "via", "via_id", "address", "subject"), "")
    entry = {**texts, "created_at": "2026-11-20T08:00:00Z", "details": {}}
    server.replies = [reply(200, {"entries": [entry] * 2, "next_cursor": "c"}), reply(200, {"entries": [entry]})]
    with Client(server.base_url, access_token=ACCESS_TOKEN) as client:
        entries = client.list_audit_entries(page_size=2)
        assert server.received == []
        next(entries)
        next(entries)
        assert len(server.received) == 1
        assert len(list(entries)) == 1
        assert len(server.received) == 2


@pytest.mark.parametrize("echo", ["header", "body"])
def test_no_secret_is_in_an_error(client: EitherClient, server: ScriptedServer, echo: str) -> None:
    """If a peer echoes the request, the error still contains no credential, token or verifier."""
    server.replies = [reply(200, CREATED)]
    sign_in = client.create_session()
    seen = f"Bad request: Bearer {SECRET_KEY} {ACCESS_TOKEN} {sign_in.code_verifier} {sign_in.session_token}"
    answer = reply(400, {"error": seen}, X_Error_Code=seen) if echo == "header" else reply(502, seen.encode())
    server.replies = [answer]
    with pytest.raises(TaproofApiError) as caught:
        client.wait_for_user(sign_in, timeout=1)
    told = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    for secret in (SECRET_KEY, ACCESS_TOKEN, sign_in.code_verifier, sign_in.session_token):
        assert secret not in told


def test_a_sentence_is_safe_to_print(client: EitherClient, server: ScriptedServer) -> None:
    """Errors are printed to terminals and logs: no control character, no half of a surrogate pair, no endless text."""
    server.replies = [reply(400, {"error": "a\x1b[2J\r\nb\ud800" + "c " * 5_000})]
    with pytest.raises(InvalidRequest) as caught:
        client.read_account()
    assert caught.value.sentence.startswith("a [2J b?c c")
    assert len(caught.value.sentence) <= 500


def test_requests_say_what_they_must(client: EitherClient, server: ScriptedServer) -> None:
    """Credentials are sent only in the header and only to their endpoints; answers are requested uncompressed."""
    server.replies = [reply(200, ACCOUNT), reply(200, CREATED), reply(200, PENDING)]
    client.read_account()
    client.verify_session(client.create_session())
    read, create, verify = server.received
    assert read.headers["authorization"] == f"Bearer {ACCESS_TOKEN}"
    assert create.headers["authorization"] == verify.headers["authorization"] == f"Bearer {SECRET_KEY}"
    assert read.headers["accept-encoding"] == "identity"
    assert read.headers["user-agent"].startswith("taproof/")
    assert "content-type" not in read.headers
    assert create.headers["content-type"] == "application/json"
