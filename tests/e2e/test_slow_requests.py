"""A client that sends slowly cannot keep a connection open or an old credential valid."""

import contextlib
import json
import socket

from tests.e2e.conftest import Developer, OwnProject, Phone, Service
from tests.e2e.test_wait import answer_on, call


def begin(service: Service, path: str, credential: str, body: bytes) -> socket.socket:
    """Send all of a request except the last byte of its body."""
    return begin_request(
        service,
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {credential}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body[:-1],
    )


def test_a_token_revoked_while_the_body_arrives(service: Service, developer: Developer) -> None:
    """A revoked token stops working immediately, even for a request that began with it (contract)."""
    made = developer.ask("POST", "/tokens", json={"name": "leaked"})
    body = json.dumps({"name": "backdoor"}).encode()
    with begin(service, "/api/v1/dev/tokens", made["access_token"], body) as connection:
        developer.ask("GET", "/me")  # By now the server has read what was sent.
        developer.ask("DELETE", f"/tokens/{made['id']}")
        connection.sendall(body[-1:])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")
    assert "backdoor" not in [token["name"] for token in developer.ask("GET", "/tokens")["tokens"]]


def test_a_secret_key_replaced_while_the_body_arrives(service: Service, project: OwnProject) -> None:
    """A replaced secret key stops working immediately, even for a request that began with it (contract)."""
    body = b'{"x": 1}'
    with begin(service, "/api/v1/generate", project.secret_key, body) as connection:
        project.developer.ask("POST", f"/projects/{project.id}/regenerate")
        connection.sendall(body[-1:])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")
    assert project.read()["sessions_count"] == 0


def test_what_takes_longer_than_ten_seconds_is_ended(service: Service, project: OwnProject, phone: Phone) -> None:
    """A silent connection is closed after ten seconds; otherwise, a thousand of them would use up all file descriptors.

    The server waits ten seconds for the rest of a body or of a form. The simulated messenger and the demo read bodies
    themselves, and do not wait longer. A client that waits for an answer is none of these: it keeps its connection.
    """
    session = project.generate()
    with contextlib.ExitStack() as stack:
        waiting = stack.enter_context(call(service, project, session))
        silent = [
            stack.enter_context(begin_request(service, sent))
            for sent in (b"", b"P", b"POST /api/v1/verify/public HTTP/1.1\r\nHost: x\r\nContent-Type: ")
        ]
        bodies = [
            stack.enter_context(begin(service, path, project.secret_key, b'{"x": 1}'))
            for path in ("/api/v1/generate", "/sandbox/users", "/demo/session")
        ]
        form = stack.enter_context(begin_form(service, b"n"))
        for connection in silent:
            assert b" 200 " not in connection.recv(65_536)
        answers = [connection.recv(65_536) for connection in bodies]
        assert [answer.partition(b"\r\n")[0] for answer in answers] == [b"HTTP/1.1 400 Bad Request"] * 3, answers
        assert all(b"took longer than 10 seconds" in answer for answer in answers[1:]), answers
        answer = form.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"text/html" in answer
        # It was opened before the others, which have all been ended by now.
        phone.sign_in(session)
        assert answer_on(waiting)["status"] == "confirmed"


def begin_form(service: Service, sent: bytes) -> socket.socket:
    """Send the beginning of a form."""
    return begin_request(
        service,
        b"POST /console/sign-in HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n" + sent,
    )


def begin_request(service: Service, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    connection.sendall(sent)
    return connection
