"""The baselines: an ASGI app and an RSGI app that read the body and return a constant.

They run on the same server with the same settings as the service (see server.py), so the difference between the two
figures is the cost of the service itself. RSGI is the server's native interface: maintainers/decisions/0021.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

_BODY: Final = b'{"status": "pending"}'
_RSGI_HEADERS: Final = [("content-type", "application/json")]
_HEADERS: Final = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_BODY))]


async def bare(
    _scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """Answer one request."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})


async def bare_rsgi(_scope: Any, protocol: Any) -> None:
    """Answer one request."""
    await protocol()
    protocol.response_bytes(200, _RSGI_HEADERS, _BODY)
