"""Renders templates into pages, and carries messages over a redirect to the next page (flash).

A template gets `visitor` (None when nobody is signed in), `here` (the path), `notice`, `problem`, `secrets` and
`secrets_hint`, besides the context of the page. Everything is escaped. Names chosen by users are shown as
`<bdi>{{ name|shown }}</bdi>`.
"""

import functools
import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final

import segno
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from taproof.console.access import Visitor
from taproof.console.encrypted_cookie import EncryptedCookie
from taproof.core.clock import SECOND, Clock, iso8601
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.names import visible_name
from taproof.http.errors import STATUS_HEADERS

STATIC: Final = files("taproof.console") / "static"
_FLASH_SECONDS: Final = 60
"""Lifetime of a message to the next page. Browsers follow a redirect at once."""


_QR_CODES: Final = 1024
"""Number of drawn codes that a process caches, 3 KB each, for the sign-ins that are waiting."""
_QR_MARGIN: Final = 4
_DARK: Final = re.compile(b"\x01+")


class Pages:
    """Renders templates.

    Args:
        encryptor: encrypts the message that a browser keeps for the next page, which may hold secrets shown once.
        clock: returns the time in ms.
        entropy: returns random bytes.
        version: the version of this release, for the footer of each page.
        sandbox: whether the service runs in the sandbox.
    """

    def __init__(self, encryptor: Encryptor, clock: Clock, entropy: Entropy, version: str, *, sandbox: bool) -> None:
        self._flash = EncryptedCookie("flash", _FLASH_SECONDS, encryptor, clock, entropy)
        self._clock = clock
        self._environment = Environment(
            loader=PackageLoader("taproof.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {"shown": visible_name, "time": time_element, "number": number}
        own = {"static": static_url, "qr_code": qr_code, "version": version, "sandbox": sandbox}
        self._environment.globals |= own

    def render(
        self, request: Request, template: str, context: Mapping[str, Any] | None = None, *, status: int = 200
    ) -> Response:
        """Return the page, with the message that `redirect` left for it."""
        here = request.scope["path"]
        flash = self._flash.read(request, _flash_associated_data(request, here))
        page = self._environment.get_template(template).render(
            {
                "visitor": getattr(request.state, "visitor", None),
                "here": here,
                "notice": flash.get("notice", ""),
                "problem": flash.get("problem", ""),
                "secrets": flash.get("secrets", []),
                "secrets_hint": flash.get("secrets_hint", ""),
                "now": self._clock(),
                **(context or {}),
            }
        )
        response = HTMLResponse(page, status)
        response.raw_headers += STATUS_HEADERS.get(status, [])
        # An empty `flash` means that the cookie may belong to a page that another tab is loading. HEAD shows no page.
        if flash and request.method != "HEAD":
            self._flash.take_away(request, response)
        return response

    def fragment(self, template: str, context: Mapping[str, Any]) -> str:
        """Return a part of a page, which a script inserts."""
        return self._environment.get_template(template).render({"now": self._clock(), **context})

    def redirect(
        self,
        request: Request,
        path: str,
        *,
        notice: str = "",
        problem: str = "",
        secrets: list[tuple[str, str]] | None = None,
        secrets_hint: str = "",
    ) -> Response:
        """Redirect to a page that shows `notice` or `problem`, and once `secrets`: pairs of a label and a secret.

        `secrets_hint` replaces the usual advice for server keys. All of it is encrypted for this visitor and that page,
        in a cookie that scripts cannot read.
        """
        response = RedirectResponse(path, 303)
        if notice or problem or secrets:
            flash = {"notice": notice, "problem": problem, "secrets": secrets or [], "secrets_hint": secrets_hint}
            self._flash.give(request, response, flash, _flash_associated_data(request, path))
        return response


def _flash_associated_data(request: Request, path: str) -> str:
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    return f"{visitor.session.id if visitor else ''}:{path}"


@functools.cache
def static_url(name: str) -> str:
    """Return the address of a file of `static/`; it changes with the content, so browsers may cache it forever."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/console/static/{name}?{digest}"


def time_element(instant: int) -> Markup:
    """Return an instant (ms) as a `<time>` element in UTC, to the second; a script adds the reader's local time."""
    text = f"{datetime.fromtimestamp(instant // SECOND, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}">{}</time>').format(iso8601(instant), text)


def number(value: int) -> str:
    """Return a whole number with a thin space between thousands."""
    return f"{value:,}".replace(",", "\u202f")


@functools.lru_cache(maxsize=_QR_CODES)
def qr_code(link: str) -> Markup:
    """Draw `link` as an SVG image with a white margin, so that it can also be scanned from a dark page.

    Drawing blocks the event loop. So each link is drawn once, with a fixed mask: trying all eight takes 6 ms.
    """
    rows = segno.make_qr(link, error="l", boost_error=False, mask=0).matrix
    size = len(rows) + 2 * _QR_MARGIN
    dark = "".join(
        f"M{run.start() + _QR_MARGIN} {y + _QR_MARGIN}.5h{run.end() - run.start()}"
        for y, row in enumerate(rows)
        for run in _DARK.finditer(row)
    )
    # Not escaped: it consists of digits and fixed names, without `link`.
    return Markup(  # noqa: S704
        f'<svg class="qr-code" role="img" aria-label="QR code of the link" viewBox="0 0 {size} {size}">'
        f'<path fill="#fff" d="M0 0h{size}v{size}h-{size}z"/><path stroke="#000" d="{dark}"/></svg>'
    )
