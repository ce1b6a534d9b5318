"""Render templates into pages, and pass a notice from a form's response to the next page.

A template receives `visitor` (None if no developer is signed in), `here` (the path), `notice`, `problem`, `secrets`,
`secrets_hint` and its page's context. Everything is escaped. Write names that people choose as
`<bdi>{{ name|shown }}</bdi>`.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sized
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from taproof.console.access import SESSION_COOKIE, SIGN_IN, Visitor
from taproof.console.encrypted_cookie import EncryptedCookie
from taproof.core.brand import Brand
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND, Clock, iso8601
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.names import visible_name
from taproof.http.cookies import delete_cookie
from taproof.http.errors import STATUS_HEADERS
from taproof.http.qr_code import qr_code

STATIC: Final = files("taproof.console") / "static"
LOGO: Final = "/console/logo"
"""The path of the operator's logo, if there is one."""
_FLASH_SECONDS: Final = 60
"""The lifetime of a notice for the next page. Browsers follow a redirect immediately."""
_UNITS: Final = ((DAY, "day"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
_FEW: Final = 100
"""The number of choices that a page renders on the event loop, about a millisecond."""
_NO_FLASH: Final = {"notice": "", "problem": "", "secrets": [], "secrets_hint": ""}


class PageRenderer:
    """Renders templates.

    `encryptor` encrypts the cookie for the next page, which can contain secrets. `one_click`: the sign-in page offers
    to open the console as the sandbox's developer.
    """

    def __init__(
        self,
        encryptor: Encryptor,
        clock: Clock,
        entropy: Entropy,
        version: str,
        brand: Brand,
        *,
        sandbox: bool,
        one_click: bool = False,
    ) -> None:
        self._flash = EncryptedCookie("flash", _FLASH_SECONDS, encryptor, clock, entropy)
        self._clock = clock
        self._environment = Environment(
            loader=PackageLoader("taproof.console"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {"shown": visible_name, "time": time_element, "ago": ago, "number": number}
        own = {"static": static_url, "qr_code": qr_code, "version": version, "sandbox": sandbox}
        own |= {"one_click": one_click, "console_name": brand.name, "console_icon": _icon_url(brand)}
        self.console_name: Final = brand.name
        self._environment.globals |= own

    def load_templates(self) -> None:
        """Compile all templates, which takes a tenth of a second, so that no page compiles one on the event loop."""
        for name in self._environment.list_templates(["html"]):
            self._environment.get_template(name)

    def render(
        self, request: Request, template: str, context: Mapping[str, Any] | None = None, *, status: int = 200
    ) -> Response:
        """Return the page, with the notice and the secrets that `redirect` sent to it."""
        here = request.scope["path"]
        flash = self._flash.read(request, _flash_associated_data(request, here))
        everywhere = {"visitor": getattr(request.state, "visitor", None), "here": here, **_NO_FLASH, **flash}
        response = HTMLResponse(self.fragment(template, {**everywhere, **(context or {})}), status)
        response.raw_headers += STATUS_HEADERS.get(status, [])
        # Without `flash`, the cookie is for a page that another tab opens. A HEAD request shows no page.
        if flash and request.method != "HEAD":
            self._flash.take_away(request, response)
        return response

    async def render_choice(
        self, request: Request, template: str, context: Mapping[str, Any], projects: Sized, *, status: int = 200
    ) -> Response:
        """Return a page on which the visitor can choose one of `projects`.

        With very many projects, this takes tens of milliseconds. A thread lets other requests run meanwhile.
        """
        if len(projects) <= _FEW:
            return self.render(request, template, context, status=status)
        return await asyncio.to_thread(self.render, request, template, context, status=status)

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
        """Redirect to a page that shows `notice` or `problem`, and shows `secrets` (pairs of label and secret) once.

        `secrets_hint` replaces the advice to store the secrets on a server. The content is sent in a cookie that
        scripts cannot read, encrypted for this visitor and the target page.
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


_STATIC_URLS: Final = {
    file.name: f"/console/static/{file.name}?{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
    for file in STATIC.iterdir()
}


def static_url(name: str) -> str:
    """Return the URL of a file in `static/`. It changes with the content, so browsers can cache the file forever."""
    return _STATIC_URLS[name]


def _icon_url(brand: Brand) -> str:
    """Return the URL of the operator's logo, or of the software's."""
    if brand.logo is None:
        return static_url("icon.svg")
    return f"{LOGO}?{hashlib.sha256(brand.logo.content).hexdigest()[:12]}"


def time_element(instant: int) -> Markup:
    """Format an instant (ms) in UTC, to the second. A script adds the reader's local time as its tooltip."""
    return Markup('<time datetime="{}">{}</time>').format(iso8601(instant), _in_utc(instant))


@pass_context
def ago(context: Context, instant: int) -> Markup:
    """Format an instant (ms) relative to the page's time, with the time in UTC as its tooltip."""
    words = relative_time(instant, context["now"])
    return Markup('<time class="ago" datetime="{}" title="{}">{}</time>').format(
        iso8601(instant), _in_utc(instant), words
    )


def relative_time(instant: int, now: int) -> str:
    """Return an instant (ms) in words: "12 s ago", "in 3 days", or its date if it is 30 days or more away.

    A time in the past is rounded down. A time in the future is rounded to the nearest unit, because a new invitation
    that is valid for 7 days would otherwise expire "in 6 days".

    `relativeTime` in console.js follows the same rules, so that an open page stays correct.
    """
    distance = abs(now - instant)
    if distance >= 30 * DAY:
        then = datetime.fromtimestamp(instant // SECOND, UTC)
        return f"{then.day} {then:%b %Y}"
    if distance < 5 * SECOND:
        return "now"
    unit, name = _unit(distance)
    if instant > now:
        distance = (distance + unit // 2) // unit * unit
        unit, name = _unit(distance)  # 59.9 minutes are now one hour.
    count = distance // unit
    words = f"{count}\N{NO-BREAK SPACE}{name}{'s' if name == 'day' and count > 1 else ''}"
    return f"in {words}" if instant > now else f"{words} ago"


def _unit(distance: int) -> tuple[int, str]:
    """Return the largest unit that fits into a distance (ms), with its name."""
    return next(each for each in _UNITS if distance >= each[0])


def _in_utc(instant: int) -> str:
    return f"{datetime.fromtimestamp(instant // SECOND, UTC):%Y-%m-%d %H:%M:%S} UTC"


def number(value: int) -> str:
    """Format a whole number with a thin space as the thousands separator."""
    return f"{value:,}".replace(",", "\u202f")


def readable_json(value: dict[str, Any]) -> str:
    """Return JSON for people. Invisible characters, and characters that change the text direction, are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
