"""Requests that are wrong below or at HTTP, and the server's answer to each."""

import re
import socket
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.docs.blocks import DOCS

from taproof.runtime.listener import HEAD_LIMIT

Connect = Callable[[], socket.socket]
_HOST: Final = b"Host: localhost\r\n"
_GET: Final = b"GET /healthz HTTP/1.1\r\n"
_POST: Final = b"POST /api/v1/verify/public HTTP/1.1\r\n" + _HOST + b"Content-Type: application/json\r\n"
_BODY: Final = b"Content-Length: 2\r\n\r\n{}"

BELOW_HTTP: Final = {
    "no valid request line, such as TLS on a port for plain HTTP": (
        b"GET\r\n\r\n",
        b"GET / /healthz HTTP/1.1\r\n" + _HOST + b"\r\n",
        b"G@T /healthz HTTP/1.1\r\n" + _HOST + b"\r\n",
        b"GET /\xff HTTP/1.1\r\n" + _HOST + b"\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00" + b"\0" * 200,
    ),
    "a version other than HTTP/1.0 and HTTP/1.1": (b"GET /healthz HTTP/9.9\r\n" + _HOST + b"\r\n",),
    "a malformed header": (
        _GET + _HOST + b"X y: 1\r\n\r\n",
        _GET + _HOST + b"X : 1\r\n\r\n",
        _GET + _HOST + b"X: a\0b\r\n\r\n",
        _GET + b" " + _HOST + b"\r\n",
    ),
    "two different lengths, or an invalid one": (
        _POST + b"Content-Length: 3\r\n" + _BODY,
        _POST + b"Content-Length: +2\r\n\r\n{}",
        _POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
    ),
    "a `Transfer-Encoding` that does not end in `chunked`, or any with HTTP/1.0": (
        _POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        _POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "a URL and headers of more than 16 KiB together": (
        b"GET /" + b"a" * HEAD_LIMIT + b" HTTP/1.1\r\n" + _HOST + b"\r\n",
        _GET + _HOST + b"X: " + b"x" * HEAD_LIMIT + b"\r\n\r\n",
    ),
    "more than 100 headers": (_GET + _HOST + b"X: 1\r\n" * 100 + b"\r\n",),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",),
}
"""Requests that the server itself refuses, by their rows on the page of errors."""

AT_HTTP: Final = {
    "host_required": (
        _GET + b"\r\n",
        _GET + b"Host:\r\n\r\n",
        *(_GET + b"Host: %b\r\n\r\n" % host for host in (b"a b", b"a, b", b"a:999999", b"a/b", b"u@a", b"\xff")),
        _GET + _HOST * 2 + b"\r\n",
        _GET + b"Host:\r\n" + _HOST + b"\r\n",
        _GET + _HOST + b"Accept: */*\r\nX: 1\r\n" + _HOST + b"X: 2\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\n" + _HOST * 2 + b"\r\n",
        b"GET http://localhost/healthz HTTP/1.1\r\n" + _HOST * 2 + b"\r\n",
    ),
    "unsupported_content_encoding": (
        _POST + b"Content-Encoding: gzip\r\n" + _BODY,
        _POST + b"Content-Encoding: identity, BR\r\n" + _BODY,
    ),
    "invalid_request": (
        _POST + b"Content-Encoding: Identity\r\n" + _BODY,  # It is not compressed, but it has no project_id.
        _POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
    ),
    "": (
        _GET + _HOST + b"\r\n",
        _GET + _HOST + b"X: 1\r\n" * 99 + b"\r\n",
        b"GET /healthz HTTP/1.0\r\n\r\n",
        # An absolute URL names the host, too.
        b"GET http://localhost/healthz HTTP/1.1\r\n\r\n",
        b"GET http://localhost/healthz HTTP/1.1\r\n" + _HOST + b"\r\n",
    ),
}
"""Requests that reach Taproof's own code, by the code of the error; "" for success."""


class Answer(NamedTuple):
    """An answer: its status line, its headers in lower case, and the beginning of its body; all "" if there is none."""

    status: str
    headers: str
    body: str


def ask(connect: Connect, sent: bytes) -> Answer:
    """Send bytes on a new connection, and return the answer."""
    received = b""
    with connect() as connection:
        connection.sendall(sent)
        while b"\r\n\r\n" not in received and (piece := connection.recv(65_536)):
            received += piece
    head, _, body = received.decode("latin-1").partition("\r\n\r\n")
    status, _, headers = head.partition("\r\n")
    return Answer(status, headers.lower(), body)


def documented() -> dict[str, str]:
    """Return the answer of each row of the page's table."""
    page = (DOCS / "reference/errors.md").read_text("utf-8").partition("## Errors below HTTP")[2]
    return dict(re.findall(r"^\| (.+) \| (\d{3}|none) \|$", page, re.MULTILINE))


def assert_refusals(connect: Connect) -> None:
    """Assert that the server answers each of these requests as the page says."""
    rows = documented()
    assert rows.keys() == BELOW_HTTP.keys()
    for row, requests in BELOW_HTTP.items():
        for sent in requests:
            answer = ask(connect, sent)
            if rows[row] == "none":
                assert answer == ("", "", ""), (row, sent)
                continue
            assert answer.status.startswith(f"HTTP/1.1 {rows[row]} "), (row, sent[:100], answer)
            names = [line.partition(":")[0] for line in answer.headers.split("\r\n")]
            assert (sorted(names), answer.body) == (["connection", "content-length", "date"], ""), (row, sent[:100])
            assert "connection: close\r\n" in answer.headers
    for code, requests in AT_HTTP.items():
        for sent in requests:
            answer = ask(connect, sent)
            if code:
                assert f"\r\nx-error-code: {code}\r\n" in answer.headers, (code, sent, answer)
                assert answer.body.startswith('{"error": "'), (code, sent, answer)
            else:
                assert answer.status.endswith(" 200 OK"), (sent, answer)
