"""A request's head is bounded, so that nobody can make the event loop split hundreds of kilobytes."""

import socket

import pytest
from tests.e2e.conftest import Service

from taproof.runtime.listener import HEAD_LIMIT


def status(service: Service, head: bytes) -> bytes:
    """Return the status of the answer to a request with this head."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(head)
        return connection.recv(65_536).split()[1]


@pytest.mark.parametrize("name", ["Content-Type", "Cookie", "Forwarded", "X-Forwarded-For", "Accept-Encoding", "X-Any"])
def test_a_long_head_is_refused_before_anything_reads_it(service: Service, name: str) -> None:
    """A normal head of 4 KB passes; the server itself answers 431 to one above the limit."""
    begin = b"POST /api/v1/verify/public HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
    for size, refused in ((4_000, False), (HEAD_LIMIT, True), (300_000, True)):
        head = begin + name.encode() + b": " + b";" * size + b"\r\n\r\n{}"
        assert (status(service, head) == b"431") is refused, (name, size)


def test_a_long_address_is_refused_too(service: Service) -> None:
    """The query string counts as part of the head."""
    head = b"GET /console/sign-in?" + b"&a" * (HEAD_LIMIT // 2) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert status(service, head) in {b"414", b"431"}


def test_a_query_of_many_fields_is_refused(service: Service) -> None:
    """8,000 fields in 16 KB take milliseconds to parse, and no call needs more than a few."""
    for count, expected in ((40, b"200"), (60, b"400")):
        head = b"GET /console/sign-in?a" + b"&a" * count + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert status(service, head) == expected
