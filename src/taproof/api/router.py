"""Route requests to applications by path, and refuse those that are invalid for every path.

Paths are compared as they were sent, without decoding: proxies block paths such as /metrics, and some of their rules
compare undecoded paths too. So each route has one spelling. The value of a path parameter may be percent-encoded.

`http/https_only.py` wraps the router.
"""

import re
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.api.sessions import SessionApi
from taproof.core.errors import HostRequired, InvalidRequest, NotFound
from taproof.http.errors import send_error

QUERY_FIELDS: Final = 50
"""The maximum number of fields in a query string. No endpoint needs that many."""

_WRITE_PLAINLY: Final = (
    "Write this path without empty or dot segments, and do not percent-encode slashes, letters, digits and -._~ in it."
)
_HTTP_1_0: Final = ("1", "1.0")
"""The names of HTTP/1.0 in a scope: Granian's, and that of the ASGI specification."""
_HOST: Final = re.compile(rb"(?:[\w.~!$&'()*+;=%-]+|\[[\w.:]+\])(?::[0-9]{0,5})?", re.ASCII).fullmatch
"""uri-host [":" port] (RFC 9110, section 7.2), without a comma, which would join two."""
_RESPELLED: Final = re.compile(
    rb"/\.{0,2}/|/\.{1,2}$"
    rb"|%(?:2[DEFdef]|3[0-9]|4[1-9A-Fa-f]|5[0-9AFaf]|6[1-9A-Fa-f]|7[0-9AEae]|(?![0-9A-Fa-f]{2}))"
).search
"""An empty segment or a dot segment, or an escape of a slash or of a character that needs none (RFC 3986, 2.3)."""


class Router:
    """Routes each request to the application for its path, and answers unknown paths with a 404 error.

    Args:
        session_api: the session endpoints generate, verify and cancel.
        developer_api: serves everything below /api/v1/dev/.
        operations: serves /healthz, /readyz, /metrics, /openapi.json and /docs.
        others: further applications by path. A path that ends in `/*` includes everything below it.
    """

    def __init__(
        self,
        session_api: SessionApi,
        developer_api: ASGIApp,
        operations: ASGIApp,
        others: Mapping[str, ASGIApp],
    ) -> None:
        exact: dict[str, ASGIApp] = {
            "/api/v1/verify/public": session_api.verify_public,
            "/api/v1/generate/public": session_api.generate_public,
            "/api/v1/verify": session_api.verify,
            "/api/v1/generate": session_api.generate,
            "/api/v1/cancel/public": session_api.cancel_public,
            "/api/v1/cancel": session_api.cancel,
            "/healthz": operations,
            "/readyz": operations,
            "/metrics": operations,
            "/openapi.json": operations,
            "/docs": operations,
            "/docs/docs.css": operations,
        }
        below = {"/api/v1/dev/": developer_api}
        for path, app in others.items():
            stem = path.removesuffix("/*")
            exact[stem] = app
            if stem != path:
                below[f"{stem}/"] = app
        self.exact = {path.encode(): app for path, app in exact.items()}
        self.below = [(stem.encode(), app) for stem, app in below.items()]

    def route_of(self, raw_path: bytes) -> str | None:
        """Return the registered path of the application for a path, such as `/oidc/*`; None if there is none."""
        if raw_path in self.exact:
            return raw_path.decode()
        return next((f"{stem.decode()}*" for stem, _ in self.below if raw_path.startswith(stem)), None)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request."""
        # Not a coroutine, but returns one: each would add a tenth of a microsecond to every poll.
        if not _names_one_host(scope):
            return send_error(send, HostRequired())
        path = scope["raw_path"]
        app = self.exact.get(path)
        if app is None:
            app = next((each for stem, each in self.below if path.startswith(stem)), None)
            if app is None:
                return send_error(send, NotFound())
            if _RESPELLED(path):
                return send_error(send, NotFound(_WRITE_PLAINLY))
        if scope["query_string"].count(b"&") >= QUERY_FIELDS:
            return send_error(send, InvalidRequest(f"The URL has too many query fields. Send at most {QUERY_FIELDS}."))
        return app(scope, receive, send)


@lru_cache(64)  # Callers choose the values, of up to 16 KB each.
def _is_host(value: bytes) -> bool:
    return _HOST(value) is not None


def _names_one_host(scope: Scope) -> bool:
    """Return whether a request has one valid Host header. HTTP/1.0 requests need none (RFC 9112, section 3.2).

    Granian adds the header to a request without one: the host of an absolute URL, or an empty one. It also groups
    headers by name, so a second Host directly follows the first. This saves reading all headers of every poll.
    """
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    found = False
    for name, value in headers:
        if found:
            return name != b"host"
        if name == b"host":
            if not (_is_host(value) or (not value and scope["http_version"] in _HTTP_1_0)):
                return False
            found = True
    return found or scope["http_version"] in _HTTP_1_0
