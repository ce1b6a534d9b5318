"""A client that sends slowly cannot keep a connection open or an old credential valid."""

import contextlib
import json
import socket

import pytest
from tests.e2e.conftest import Developer, OwnProject, Service


def begin(service: Service, path: str, credential: str, body: bytes) -> socket.socket:
    """Send all of a request except the last byte of its body."""
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    connection.sendall(
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {credential}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body[:-1]
    )
    return connection


def test_a_token_revoked_while_the_body_arrives(service: Service, developer: Developer) -> None:
    """A revoked token is dead at once, even for a request that had begun with it (contract)."""
    made = developer.ask("POST", "/tokens", json={"name": "leaked"})
    body = json.dumps({"name": "backdoor"}).encode()
    with begin(service, "/api/v1/dev/tokens", made["access_token"], body) as connection:
        developer.ask("GET", "/me")  # By now the server has read what was sent.
        developer.ask("DELETE", f"/tokens/{made['id']}")
        connection.sendall(body[-1:])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")
    assert "backdoor" not in [token["name"] for token in developer.ask("GET", "/tokens")["tokens"]]


def test_a_secret_key_replaced_while_the_body_arrives(service: Service, project: OwnProject) -> None:
    """A replaced secret key is dead at once, even for a request that had begun with it (contract)."""
    body = b'{"x": 1}'
    with begin(service, "/api/v1/generate", project.secret_key, body) as connection:
        project.developer.ask("POST", f"/projects/{project.id}/regenerate")
        connection.sendall(body[-1:])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")
    assert project.read()["sessions_count"] == 0


@pytest.mark.parametrize("sent", [b"", b"P", b"POST /api/v1/verify/public HTTP/1.1\r\nHost: x\r\nContent-Type: "])
def test_a_connection_that_says_too_little_is_closed(service: Service, sent: bytes) -> None:
    """A silent connection is closed. A thousand of them would use up all file descriptors."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(sent)
        assert b" 200 " not in connection.recv(65_536)


def test_a_body_that_never_ends_is_answered(service: Service, project: OwnProject) -> None:
    """The server waits ten seconds for the rest of a body."""
    with begin(service, "/api/v1/generate", project.secret_key, b'{"x": 1}') as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 400 ")


def test_a_body_for_the_sandbox_that_never_ends_is_answered(service: Service) -> None:
    """The simulated messenger and the demo read bodies themselves, and do not wait longer."""
    paths = ["/sandbox/users", "/demo/qr"]
    with contextlib.ExitStack() as stack:
        for connection in [stack.enter_context(begin(service, path, "x", b'{"x": 1}')) for path in paths]:
            answer = connection.recv(65_536)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert b"took longer than 10 seconds" in answer


def test_a_form_that_never_ends_is_answered(service: Service) -> None:
    """The console does not wait longer for the rest of a form, which anybody may send."""
    with begin_form(service, b"n") as connection:
        answer = connection.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"text/html" in answer


def test_a_form_that_is_given_up_leaves_no_line(service: Service) -> None:
    """A client that disconnects in the middle of a form causes no log line, so it cannot fill the log."""
    before = service.log().count("internal_error")
    for _ in range(5):
        with begin_form(service, b"next=") as connection:
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass  # The server is done once it has closed its side too.
    assert service.log().count("internal_error") == before


def begin_form(service: Service, sent: bytes) -> socket.socket:
    """Send the beginning of a form."""
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    connection.sendall(
        b"POST /console/sign-in HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n" + sent
    )
    return connection
