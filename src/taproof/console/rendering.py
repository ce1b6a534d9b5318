"""Render templates into pages, and carry a notice from a form's response to the page that follows it.

A template gets `visitor` (None when nobody is signed in), `here` (the path), `notice`, `problem`, `secrets`,
`secrets_hint` and the context of its page. Everything is escaped. A name that somebody chose is written as
`<bdi>{{ name|shown }}</bdi>`.
"""

import functools
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final

import segno
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from taproof.console.access import SESSION_COOKIE, SIGN_IN, Visitor, delete_cookie
from taproof.console.encrypted_cookie import EncryptedCookie
from taproof.core.clock import SECOND, Clock, iso8601
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.names import visible_name
from taproof.http.errors import STATUS_HEADERS

STATIC: Final = files("taproof.console") / "static"
_FLASH_SECONDS: Final = 60
"""The lifetime of a notice to the next page. Browsers follow a redirect at once."""
_NO_FLASH: Final = {"notice": "", "problem": "", "secrets": [], "secrets_hint": ""}
_QR_CODES: Final = 1024
"""QR codes that a process keeps, of 2 KB each: those of the sign-ins that are pending."""


class PageRenderer:
    """Renders templates.

    Args:
        encryptor: encrypts the cookie for the next page, which may hold secrets.
        clock: returns the time in ms.
        entropy: returns random bytes.
        version: of this release, for the foot of each page.
        sandbox: whether the messenger is the simulated one.
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
        """Return the page, with the notice and the secrets that `redirect` sent to it."""
        here = request.scope["path"]
        flash = self._flash.read(request, _flash_associated_data(request, here))
        everywhere = {"visitor": getattr(request.state, "visitor", None), "here": here, **_NO_FLASH, **flash}
        response = HTMLResponse(self.fragment(template, {**everywhere, **(context or {})}), status)
        response.raw_headers += STATUS_HEADERS.get(status, [])
        # Without `flash` the cookie belongs to a page that another tab opens. A HEAD request shows no page.
        if flash and request.method != "HEAD":
            self._flash.take_away(request, response)
        return response

    def fragment(self, template: str, context: Mapping[str, Any]) -> str:
        """Return a part of a page as HTML, for a script that inserts it."""
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

        `secrets_hint` replaces the advice to store the secrets on a server. All of it travels in a cookie that no
        script can read, encrypted for this visitor and that page.
        """
        response = RedirectResponse(path, 303)
        if notice or problem or secrets:
            flash = {"notice": notice, "problem": problem, "secrets": secrets or [], "secrets_hint": secrets_hint}
            self._flash.give(request, response, flash, _flash_associated_data(request, path))
        return response

    def redirect_signed_out(self, request: Request, notice: str) -> Response:
        """Redirect to the sign-in page, and delete the cookie of the ended console session."""
        request.state.visitor = None  # The next page has no visitor, and `notice` is encrypted for it.
        response = self.redirect(request, SIGN_IN, notice=notice)
        delete_cookie(request, response, SESSION_COOKIE)
        return response


def _flash_associated_data(request: Request, path: str) -> str:
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    return f"{visitor.session.id if visitor else ''}:{path}"


@functools.cache
def static_url(name: str) -> str:
    """Return the address of a file of `static/`. It changes with the content, so browsers may cache it for ever."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/console/static/{name}?{digest}"


def time_element(instant: int) -> Markup:
    """Show an instant (ms) in UTC, to the second. A script may convert it to the reader's own time."""
    text = f"{datetime.fromtimestamp(instant // SECOND, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}">{}</time>').format(iso8601(instant), text)


def number(value: int) -> str:
    """Show a whole number, with a thin space between thousands."""
    return f"{value:,}".replace(",", "\u202f")


@functools.lru_cache(maxsize=_QR_CODES)
def qr_code(link: str) -> Markup:
    """Draw `link` as an SVG image with its white margin, so that it can be scanned from a dark page too.

    Drawing blocks the event loop, so each link is drawn once and with a fixed mask. Trying all eight takes 6 ms.
    """
    drawn = segno.make_qr(link, error="l", boost_error=False, mask=0).svg_inline(
        omitsize=True, svgclass="qr-code", lineclass=None, dark="#000", light="#fff"
    )
    # Not escaped: it consists of digits and fixed names; `link` is not part of it.
    return Markup(drawn.replace("<svg", '<svg role="img" aria-label="QR code of the link"', 1))  # noqa: S704
