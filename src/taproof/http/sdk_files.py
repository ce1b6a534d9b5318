"""Serve the browser SDK: the newest release at `/sdk/taproof.js`, and each release at its own path.

A release is a folder with this bundle and `mini-app.js`, which only Mini Apps load.

A released bundle never changes and is never removed. Pages that load a bundle with its integrity hash (W3C Subresource
Integrity) therefore keep working when the service is upgraded. The bundles are built in `sdk/js`.
"""

import base64
import gzip
import hashlib
import json
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.core.errors import NotFound
from taproof.http.errors import NO_PAGE, send_error
from taproof.http.fixed_answer import FixedAnswer, allows_get, send_answer

SDK_PATH: Final = "/sdk/taproof.js"
_ABOUT_PATH: Final = "/sdk/taproof.json"
_NAME: Final = "taproof.js"
_RELEASES: Final = files("taproof.http") / "static" / "sdk"
_JAVASCRIPT: Final = "text/javascript; charset=utf-8"
_ANY_ORIGIN: Final = (
    (b"access-control-allow-origin", b"*"),
    (b"cross-origin-resource-policy", b"cross-origin"),
)
_NEWEST: Final = (b"cache-control", b"public, max-age=300")
"""Five minutes: pages soon get a corrected bundle, and a visit to several pages loads the bundle only once."""
_FOR_EVER: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_CODINGS: Final = 20
"""The maximum number of `Accept-Encoding` codings that are read. Browsers send five."""


class Bundle:
    """An ASGI application that serves one script to GET and HEAD, gzip-compressed if the client accepts it."""

    def __init__(self, body: bytes, caching: tuple[bytes, bytes]) -> None:
        self._body = body
        self._compressed = gzip.compress(body, 9, mtime=0)
        self._etag = b'"%s"' % hashlib.sha256(body).hexdigest()[:32].encode()
        self._headers = (*_ANY_ORIGIN, caching, (b"etag", b"W/" + self._etag), (b"vary", b"Accept-Encoding"))

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request."""
        if not await allows_get(scope, send):
            return
        known = b",".join(value for name, value in scope["headers"] if name == b"if-none-match")
        if self._etag in known:
            await send({"type": "http.response.start", "status": 304, "headers": [*self._headers, *NO_PAGE]})
            await send({"type": "http.response.body", "body": b""})
        elif _accepts_gzip(scope):
            headers = (*self._headers, (b"content-encoding", b"gzip"))
            await send_answer(scope, send, self._compressed, _JAVASCRIPT, headers)
        else:
            await send_answer(scope, send, self._body, _JAVASCRIPT, self._headers)


class SdkRelease(NamedTuple):
    """An SDK release, with the path and integrity hash that a page needs to load exactly this release."""

    version: str
    path: str
    integrity: str


def sdk_release(version: str) -> SdkRelease:
    """Return the SDK release that has this version."""
    digest = hashlib.sha384((_RELEASES / version / _NAME).read_bytes()).digest()
    return SdkRelease(version, _path(version), f"sha384-{base64.b64encode(digest).decode()}")


class SdkFiles:
    """An ASGI application that serves all requests below /sdk/. `version` is that of the newest SDK release."""

    def __init__(self, version: str) -> None:
        scripts = [
            (folder.name, file.name, file.read_bytes()) for folder in _RELEASES.iterdir() for file in folder.iterdir()
        ]
        about = sdk_release(version)._asdict()
        self.apps: dict[str, ASGIApp] = {
            _ABOUT_PATH: FixedAnswer(json.dumps(about).encode(), "application/json", (*_ANY_ORIGIN, _NEWEST)),
            **{_path(release, name): Bundle(body, _FOR_EVER) for release, name, body in scripts},
            **{f"/sdk/{name}": Bundle(body, _NEWEST) for release, name, body in scripts if release == version},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        app = self.apps.get(scope["path"])
        if app is None:
            await send_error(send, NotFound(f"There is no such script. {_ABOUT_PATH} names the newest one."))
        else:
            await app(scope, receive, send)


def _path(version: str, name: str = _NAME) -> str:
    return f"/sdk/{version}/{name}"


def _accepts_gzip(scope: Scope) -> bool:
    """Return whether the client accepts gzip with a weight above zero (RFC 9110, section 12.5.3)."""
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            for coding in value.lower().split(b",", _CODINGS)[:_CODINGS]:
                kind, _, weight = coding.strip().partition(b";")
                if kind.strip() == b"gzip":
                    return weight.replace(b" ", b"") not in {b"q=0", b"q=0.0", b"q=0.00", b"q=0.000"}
    return False
