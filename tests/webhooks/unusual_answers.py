"""Answers in unusual forms: those that some release of curl accepts as a success, and others that no client accepts.

tests/slow/webhooks/test_as_curl.py compares them with the installed curl.
"""

import gzip
from typing import Final

_OK: Final = b"HTTP/1.1 200 OK\r\n"
_BODY: Final = b"Content-Length: 2\r\n\r\nok"
_CHUNKED: Final = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_CHUNKS: Final = b"2\r\nok\r\n0\r\n\r\n"
_BOMB: Final = gzip.compress(b"0" * 10_000_000)

KEPT: Final[dict[str, bytes]] = {
    # The status line.
    "no reason": b"HTTP/1.1 200 \r\n" + _BODY,
    "no reason and no space": b"HTTP/1.1 200\r\n" + _BODY,
    "lower case": b"http/1.1 200 ok\r\n" + _BODY,
    "another version": b"HTTP/2 200\r\n" + _BODY,
    "version 1.0": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + _BODY,
    "two spaces": b"HTTP/1.1  200 OK\r\n" + _BODY,
    "a tab": b"HTTP/1.1\t200 OK\r\n" + _BODY,
    "a reason without a space": b"HTTP/1.1 200OK\r\n" + _BODY,
    "too many digits": b"HTTP/1.1 2000 OK\r\n" + _BODY,
    "a reason in another alphabet": "HTTP/1.1 200 Всё хорошо\r\n".encode() + _BODY,
    "a long reason": b"HTTP/1.1 200 " + b"y" * 20_000 + b"\r\n" + _BODY,
    "201 with Location": b"HTTP/1.1 201 Created\r\nLocation: http://127.0.0.1:1/\r\n" + _BODY,
    "206": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/5\r\n" + _BODY,
    "299": b"HTTP/1.1 299 Odd\r\n" + _BODY,
    # Ends of lines.
    "LF alone": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "CR twice": b"HTTP/1.1 200 OK\r\r\nContent-Length: 2\r\r\n\r\r\nok",
    "CR inside a line": _OK + b"X: a\rb\r\n" + _BODY,
    # Headers.
    "folded": _OK + b"X: one\r\n two\r\n\tthree\r\n" + _BODY,
    "a folded length": _OK + b"Content-Length:\r\n 2\r\n\r\nok",
    "a space before the colon": _OK + b"X : a\r\nContent-Length : 2\r\n\r\nok",
    "a space in the name": _OK + b"X Y: a\r\n" + _BODY,
    "no name": _OK + b": a\r\n" + _BODY,
    "marks in the name": _OK + b"X(A)[@]: a\r\n" + _BODY,
    "other bytes than ASCII": _OK + b"\xff\xfe: \x80\r\nX: \x01\x7f\xff\r\n" + _BODY,
    "500 headers": _OK + b"X: y\r\n" * 500 + _BODY,
    "a long header": _OK + b"X: " + b"y" * 90_000 + b"\r\n" + _BODY,
    "nonsense in known headers": (
        _OK + b"Set-Cookie: ;=\xff; expires=never\r\nContent-Type: ;;charset=\r\nContent-Type: b\r\n"
        b"Date: a\r\nDate: b\r\nKeep-Alive: timeout=-1\r\nSec-WebSocket-Key1: a\r\nConnection: \xff, ,;=\r\n" + _BODY
    ),
    "an upgrade on offer": _OK + b"Upgrade: h2c\r\nConnection: Upgrade\r\n" + _BODY,
    # The length of the body.
    "the same length twice": _OK + b"Content-Length: 2\r\n" + _BODY,
    "a list of lengths": _OK + b"Content-Length: 2, 2\r\n\r\nok",
    "two lengths": _OK + b"Content-Length: 3\r\nContent-Length: 2\r\n\r\nokk",
    "a sign": _OK + b"Content-Length: +2\r\n\r\nok",
    "a unit": _OK + b"Content-Length: 2 bytes\r\n\r\nok",
    "tabs": _OK + b"Content-Length:\t2\t\r\n\r\nok",
    "more than the length": _OK + _BODY + b"\x00more",
    "another answer behind": _OK + _BODY + b"HTTP/1.1 500 No\r\n" + _BODY,
    "204 with a body": b"HTTP/1.1 204 No Content\r\n" + _BODY,
    "204 in chunks": b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNKS,
    "205 with a body": b"HTTP/1.1 205 Reset Content\r\n" + _BODY,
    # Codings.
    "length and chunks": _OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNKS,
    "chunks and length": _OK + b"Transfer-Encoding: ChunKed\r\nContent-Length: 2\r\n\r\n" + _CHUNKS,
    "gzip, chunked": _OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + _CHUNKS,
    "chunked twice": _OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNKS,
    "identity": _OK + b"Transfer-Encoding: identity\r\n" + _BODY,
    "extensions of chunks": _CHUNKED + b'2;a=b;c="d"\r\nok\r\n0 ; e\r\n\r\n',
    "trailers": _CHUNKED + b"2\r\nok\r\n0\r\nX: a\r\nY: b\r\n\r\n",
    "sizes of chunks": _CHUNKED + b"0A  \r\n0123456789\r\n00002\r\nok\r\n000\r\n\r\n",
    "chunks with LF alone": _CHUNKED + b"2\nok\n0\n\n",
    "gzip that is none": _OK + b"Content-Encoding: gzip\r\n" + _BODY,
    "an unknown coding": _OK + "Content-Encoding: Ё\r\n".encode() + _BODY,
    "a bomb": _OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(_BOMB) + _BOMB,
    # Interim answers.
    "100": b"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n" + _OK + _BODY,
    "many others": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 500 + _OK + _BODY,
}
"""Accepted, from a receiver that keeps the connection open."""

CLOSED: Final[dict[str, bytes]] = {
    "version 1.0 without a length": b"HTTP/1.0 200 OK\r\n\r\nok",
    "chunks in version 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNKS,
    "neither headers nor a body": _OK + b"\r\n",
    "headers without an end": _OK + b"X: a\r\n",
    "a status line alone": _OK,
    "a length that is too large to be one": _OK + b"Content-Length: 99999999999999999999999\r\n\r\nok",
    "chunked is not the last coding": _OK + b"Transfer-Encoding: chunked, identity\r\n\r\n" + _CHUNKS,
    "more than the length": _OK + b"Connection: close\r\n" + _BODY + b"more",
    "204 with a body": b"HTTP/1.1 204 No Content\r\n\r\nok",
    "205 without a length": b"HTTP/1.1 205 Reset Content\r\n\r\n",
}
"""Accepted, from a receiver that closes the connection."""

INVALID: Final[dict[str, bytes]] = {
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "TLS": b"\x16\x03\x01\x00\x00",
    "HTTP/0.9": b"hello",
    "an empty line first": b"\r\nHTTP/1.1 200 OK\r\n" + _BODY,
    "no status": b"HTTP/1.1 abc OK\r\n\r\n",
    "too few digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "an endless reason": b"HTTP/1.1 200 " + b"O" * 200_000 + b"\r\n\r\n",
    "endless headers": _OK + b"X-A: b\r\n" * 50_000 + b"\r\n",
    "too many lines": _OK + b"a\n" * 3_000 + b"\n",
    "an endless value": _OK + b"X-A: " + b"b" * 400_000 + b"\r\n\r\n",
    "an endless name": _OK + b"A" * 400_000 + b": b\r\n\r\n",
    "endless interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
    "a chunk without a size": _CHUNKED + b"zz\r\nhello\r\n",
    "a chunk without an end": _CHUNKED + b"2\r\nokXX\r\n0\r\n\r\n",
    "an endless extension": _CHUNKED + b"5;" + b"a" * 400_000,
}
"""Refused at once."""
