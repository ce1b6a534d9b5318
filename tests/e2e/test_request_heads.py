"""A request's head is limited, so that no client can make the event loop parse hundreds of kilobytes.

Each path has one spelling, so that no other one passes a proxy's rule.
"""

import socket

import httpx
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
    """A normal head of 4 KB is accepted; the server answers 431 to a larger one than the limit."""
    begin = b"POST /api/v1/verify/public HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
    for size, refused in ((4_000, False), (HEAD_LIMIT, True), (300_000, True)):
        head = begin + name.encode() + b": " + b";" * size + b"\r\n\r\n{}"
        assert (status(service, head) == b"431") is refused, (name, size)


def test_a_query_of_many_fields_is_refused(service: Service) -> None:
    """8,000 fields in 16 KB take milliseconds to parse, and no call needs more than a few."""
    for count, expected in ((40, b"200"), (60, b"400")):
        head = b"GET /console/sign-in?a" + b"&a" * count + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert status(service, head) == expected


PATHS = (
    *("/metrics", "/readyz", "/healthz", "/docs", "/openapi.json", "/console/sign-in", "/sandbox/phone", "/demo/shop"),
    *("/oidc/jwks", "/.well-known/openid-configuration", "/sdk/taproof.json", "/device"),
)


def spellings(path: str) -> list[str]:
    """Return other spellings of a path, which some proxies or servers take for the same."""
    first, last = path[1], path[-1]
    return [
        *(path.replace(first, f"%{ord(first):02x}", 1), f"{path[:-1]}%{ord(last):02X}", f"/%2e{path}", f"/%2f{path}"),
        *(
            f"/{path}",
            f"/.{path}",
            f"/x/..{path}",
            f"/console/..{path}",
            f"/sandbox/%2e%2e{path}",
            f"/demo/..%2f{path}",
        ),
        *(f"{path}/", f"{path}/.", f"{path}%2f", f"{path}%00", f"{path};x", f"{path}%3fx", f"{path}%20", path.upper()),
        *(f"http://localhost{path.replace(first, f'%{ord(first):02x}', 1)}", f"/%25{ord(first):x}{path[2:]}"),
    ]


def test_each_path_has_one_spelling(service: Service) -> None:
    """Proxies block /metrics and others by rules that compare paths in different ways (issue)."""
    for path in PATHS:
        assert status(service, head_of(path)) == b"200", path
        assert status(service, head_of(f"http://localhost{path}")) == b"200", path
        for other in spellings(path):
            # The sandbox redirects a path with a slash at its end to the one without.
            allowed = {b"404", b"307"} if other == f"{path}/" else {b"404"}
            assert status(service, head_of(other)) in allowed, other


def test_a_path_parameter_may_be_percent_encoded(service: Service) -> None:
    """Clients encode ids such as `matrix:@ada:example.org`."""
    with httpx.Client(base_url=service.base_url, headers={"Authorization": f"Bearer {service.access_token}"}) as client:
        answers = {
            (answer.status_code, answer.text)
            for each in ("a:@b", "a%3A%40b", "a%3a@b")
            for answer in [client.get(f"/api/v1/dev/users/{each}")]
        }
        assert len(answers) == 1
        assert client.get("/api/v1/dev/users/%61:@b").status_code == 404


def head_of(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
