"""Reads a request's body through a cap on its size and on the time that it takes (contract.md, Everywhere)."""

import asyncio
from collections.abc import Iterable
from typing import Final

from starlette.types import Receive

from taproof.core.errors import InvalidRequest, PayloadTooLarge
from taproof.web.body_deadline import BodyDeadline

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
        return await _read(receive, length)
    except asyncio.CancelledError:
        if _deadline.end(reading):
            raise InvalidRequest(f"The body took longer than {BODY_SECONDS} seconds. Send it again.") from None
        raise
    finally:
        _deadline.end(reading)


async def _read(receive: Receive, length: int) -> bytes:
    """Return the body.

    The server gives a body and the news of its end as two messages; once all announced bytes are here the second is
    not waited for, which spares the polled path a turn of the event loop.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.request" and (len(body) == length or not message.get("more_body")):
        return _checked(body)
    chunks = [body]
    size = len(body)
    while message["type"] == "http.request" and message.get("more_body") and size != length:
        message = await receive()
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > BODY_LIMIT:
            raise PayloadTooLarge
    if message["type"] != "http.request":
        raise InvalidRequest(_CUT_SHORT)
    return _checked(b"".join(chunks))


def _checked(body: bytes) -> bytes:
    if len(body) > BODY_LIMIT:
        raise PayloadTooLarge
    return body
