"""Reads a request's JSON body as strictly as the contract has it (contract.md, Everywhere)."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from taproof.core.errors import InvalidRequest, PayloadTooLarge

BODY_LIMIT: Final = 16 * 1024
"""Bytes of a request body at most."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGone(Exception):
    """The client closed the connection before its request was whole; there is nobody to answer."""


async def read_json_object(scope: Scope, receive: Receive) -> dict[str, Any]:
    """Return the body's JSON object.

    Raises:
        InvalidRequest: another content type, not UTF-8, not JSON, or not an object.
        PayloadTooLarge: more than 16 KiB.
        ClientGone: the connection closed.
    """
    content_type = b""
    for name, value in scope["headers"]:
        if name == b"content-type":
            content_type = value
        elif name == b"content-length" and value.isdigit() and int(value) > BODY_LIMIT:
            raise PayloadTooLarge
    if content_type != b"application/json":
        check_content_type(content_type)
    return parse_json_object(await _read_body(receive))


async def _read_body(receive: Receive) -> bytes:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        chunks = [body]
        size = len(body)
        while size <= BODY_LIMIT and message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        body = b"".join(chunks)
    if len(body) > BODY_LIMIT:
        raise PayloadTooLarge
    return body


def check_content_type(content_type: bytes) -> None:
    """Accept `application/json` with any parameters, as long as the charset is UTF-8.

    Raises:
        InvalidRequest: anything else.
    """
    media_type, *parameters = (part.strip() for part in content_type.lower().split(b";"))
    charsets = [p.partition(b"=")[2].strip(b' "') for p in parameters if p.startswith(b"charset")]
    if media_type != b"application/json" or any(charset not in {b"utf-8", b"utf8"} for charset in charsets):
        raise InvalidRequest("Send the body as JSON in UTF-8, with the header Content-Type: application/json.")


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that `body` holds.

    Raises:
        InvalidRequest: it holds anything else.
    """
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidRequest("The body is not valid JSON in UTF-8.") from None
    if not isinstance(value, dict):
        raise InvalidRequest('The body must be a JSON object, such as {"project_id": "proj_…"}.')
    return value
