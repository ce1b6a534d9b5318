"""Serve GET and HEAD over plain ASGI."""

from typing import Final

from starlette.types import Receive, Scope, Send

from taproof.core.errors import MethodNotAllowed
from taproof.http.errors import NO_PAGE, send_error

_ALLOW: Final = (b"allow", b"GET, HEAD")


class FixedAnswer:
    """An ASGI application that answers GET and HEAD with fixed bytes. The names of `headers` are in lower case."""

    def __init__(self, body: bytes, content_type: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.body = body
        self._content_type = content_type
        self._headers = headers

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request."""
        if await allows_get(scope, send):
            await send_answer(scope, send, self.body, self._content_type, self._headers)


async def allows_get(scope: Scope, send: Send) -> bool:
    """Return whether the method is GET or HEAD; send a 405 for any other method."""
    if scope["method"] in {"GET", "HEAD"}:
        return True
    await send_error(send, MethodNotAllowed(), [_ALLOW])
    return False


async def send_answer(
    scope: Scope, send: Send, body: bytes, content_type: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Send a 200. The response to HEAD has the same headers and no body (RFC 9110, section 9.3.2).

    The headers stop browsers from showing the body as a page, unless `headers` has its own Content-Security-Policy.
    """
    named = {name for name, _ in headers}
    fields = [
        (b"content-type", content_type.encode()),
        (b"content-length", b"%d" % len(body)),
        *(field for field in NO_PAGE if field[0] not in named),
        *headers,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
