"""Reads a request's body through a cap on its size and on the time that it takes (contract.md, Everywhere)."""

import asyncio
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from starlette.types import Receive

from taproof.core.errors import InvalidRequest, PayloadTooLarge
from taproof.http.body.deadline import BodyDeadline, late_sentence

BODY_LIMIT: Final = 16 * 1024
"""Bytes of a request body at most."""

BODY_SECONDS: Final = 10
"""How long a body may take to arrive: nobody holds a request open to finish it when it suits them."""
_CUT_SHORT: Final = "The connection ended before the body was whole. Send the request again."

_deadline: Final = BodyDeadline(BODY_SECONDS)


def body_headers(headers: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, int]:
    """Return the content type, b"" if there is none, and how many bytes were announced, -1 if it was not said.

    Raises:
        PayloadTooLarge: more than 16 KiB were announced: not one of them need be read.
    """
    content_type = b""
    length = -1
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-length" and value.isdigit():
            # A number of more digits is too large anyway, and reading it could be made costly.
            length = int(value[:9])
    if length > BODY_LIMIT:
        raise PayloadTooLarge
    return content_type, length


async def read_body(receive: Receive, length: int) -> bytes:
    """Return the body, which has `length` bytes if that was said (else -1).

    Raises:
        InvalidRequest: cut short, or not here after ten seconds.
        PayloadTooLarge: more than 16 KiB.
    """
    reading = _deadline.begin()
    try:
        message = await receive()
        body: bytes = message.get("body", b"")
        # The server gives a body and the news of its end as two messages; once all announced bytes are here the second
        # is not waited for, which spares the polled path a turn of the event loop.
        if message["type"] != "http.request" or (len(body) != length and message.get("more_body")):
            body = await _read_on(message, receive, length)
    except asyncio.CancelledError:
        if _deadline.end(reading):
            raise InvalidRequest(late_sentence(BODY_SECONDS)) from None
        raise
    finally:
        _deadline.end(reading)
    if len(body) > BODY_LIMIT:
        raise PayloadTooLarge
    return body


async def _read_on(message: MutableMapping[str, Any], receive: Receive, length: int) -> bytes:
    """Return a body that did not come in one piece; `message` is the first."""
    chunks = [message.get("body", b"")]
    size = len(chunks[0])
    while message["type"] == "http.request" and message.get("more_body") and size != length:
        message = await receive()
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > BODY_LIMIT:
            raise PayloadTooLarge
    if message["type"] != "http.request":
        raise InvalidRequest(_CUT_SHORT)
    return b"".join(chunks)
