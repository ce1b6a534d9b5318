"""`wait` over real HTTP, against the real service: the tap, lost connections, and the end of the process."""

import json
import re
import socket
from typing import Final

import httpx
import pytest
from tests.e2e.conftest import TRUST, NewPhone, OwnProject, Phone, Service
from tests.waiting import wait_until

WAIT: Final = 30
PATIENCE: Final = 60.0


def waiting(service: Service) -> int:
    """Return the number of waiting calls from /metrics."""
    found = re.search(
        r"^taproof_waiting_calls (\d+)", httpx.get(f"{service.base_url}/metrics", verify=TRUST).text, re.MULTILINE
    )
    assert found
    return int(found[1])


def request_of(project: OwnProject, session: dict[str, str]) -> bytes:
    body = {"project_id": project.id, "session_token": session["session_token"], "wait": WAIT}
    content = json.dumps(body).encode()
    head = "POST /api/v1/verify/public HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def call(service: Service, project: OwnProject, session: dict[str, str]) -> socket.socket:
    """Start a waiting call on a separate socket."""
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)
    connection.sendall(request_of(project, session))
    return connection


def answer_on(connection: socket.socket) -> dict[str, str]:
    """Return the JSON object that arrives on a socket in one piece."""
    head, _, body = connection.recv(65_536).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    answer: dict[str, str] = json.loads(body)
    return answer


@pytest.mark.parametrize("button", ["Confirm", "Cancel"])
def test_the_answer_comes_with_the_tap(service: Service, project: OwnProject, phone: Phone, button: str) -> None:
    """A waiting client gets the decision at once, long before its time is over (issue)."""
    session, untouched = project.generate(), project.generate()
    with call(service, project, session) as connection, call(service, project, untouched) as other:
        wait_until(lambda: waiting(service) >= 2)
        phone.sign_in(session, button)
        assert answer_on(connection)["status"] == {"Confirm": "confirmed", "Cancel": "cancelled"}[button]
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.recv(1)
    wait_until(lambda: waiting(service) == 0)


@pytest.mark.parametrize("how", ["close", "reset", "half-close"])
def test_clients_that_go_away_free_their_places(service: Service, project: OwnProject, how: str) -> None:
    """When a client disconnects, its slot is free at once, and its session is not consumed."""
    sessions = [project.generate() for _ in range(10)]
    connections = [call(service, project, session) for session in sessions for _ in range(5)]
    wait_until(lambda: waiting(service) == 50)
    for connection in connections:
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        if how == "half-close":
            connection.shutdown(socket.SHUT_WR)
        else:
            connection.close()
    wait_until(lambda: waiting(service) == 0, patience=WAIT / 2)
    for connection in connections:
        connection.close()


def test_one_connection_waits_again_and_again(service: Service, project: OwnProject, new_phone: NewPhone) -> None:
    """A connection works after a wait as before, even if the next request was sent during the wait."""
    sessions = [project.generate() for _ in range(3)]
    with call(service, project, sessions[0]) as connection:
        wait_until(lambda: waiting(service) == 1)
        connection.sendall(request_of(project, sessions[1]))
        new_phone().sign_in(sessions[0])
        assert answer_on(connection)["status"] == "confirmed"
        wait_until(lambda: waiting(service) == 1)
        new_phone().sign_in(sessions[1], "Cancel")
        assert answer_on(connection) == {"status": "cancelled"}
        connection.sendall(request_of(project, sessions[2]))
        wait_until(lambda: waiting(service) == 1)
        new_phone().sign_in(sessions[2])
        assert answer_on(connection)["status"] == "confirmed"
