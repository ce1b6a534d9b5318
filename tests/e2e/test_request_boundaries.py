"""The server and a proxy in front of it agree on where a request ends (RFC 9112, section 6.3)."""

import json
import socket

import pytest
from tests.e2e.conftest import OwnProject, Service

FOLLOWING = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def answers(service: Service, sent: bytes) -> list[bytes]:
    """Send bytes on one connection, read it to its end, and return the status line of each answer."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(sent)
        received = b""
        while piece := connection.recv(65_536):
            received += piece
    return [line for line in received.split(b"\r\n") if line.startswith(b"HTTP/")]


def request(project: OwnProject, *lines: str, chunked: bool, version: str = "1.1") -> bytes:
    """Return a public generate call with these header lines in place of a length; `LENGTH` is the body's length."""
    body = json.dumps({"project_id": project.id}).encode()
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    head = f"POST /api/v1/generate/public HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return (head + "".join(f"{line}\r\n" for line in lines) + "\r\n").replace("LENGTH", str(len(body))).encode() + sent


@pytest.mark.parametrize("length", [4, 4_000])
def test_chunks_win_over_a_length_and_end_the_connection(service: Service, project: OwnProject, length: int) -> None:
    """If a request has both, the chunks determine where the body ends, and the connection ends after it."""
    sent = request(project, f"Content-Length: {length}", "Transfer-Encoding: chunked", chunked=True)
    assert answers(service, sent + FOLLOWING) == [b"HTTP/1.1 200 OK"]


@pytest.mark.parametrize(
    ("lines", "chunked", "version"),
    [
        (("Content-Length: LENGTH", "Content-Length: 4"), False, "1.1"),
        (("Content-Length: +LENGTH",), False, "1.1"),
        (("Transfer-Encoding: xchunked", "Content-Length: 4"), True, "1.1"),
        (("Transfer-Encoding: chunked, identity",), True, "1.1"),
        (("Transfer-Encoding : chunked", "Content-Length: 4"), True, "1.1"),
        (("Transfer-Encoding: chunked",), True, "1.0"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(
    service: Service, project: OwnProject, lines: tuple[str, ...], *, chunked: bool, version: str
) -> None:
    """An ambiguous request is 400 and ends the connection: two lengths, an unknown coding, a space before the colon."""
    [status] = answers(service, request(project, *lines, chunked=chunked, version=version) + FOLLOWING)
    assert status.split()[1] == b"400"
    assert project.read()["sessions_count"] == 0
