"""Who is signed in to the console: the cookie, and what a page needs to know of the one who asks."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from taproof.core.accounts import AccessToken, Actor, ConsoleSession, Developer
from taproof.core.errors import ConsoleSessionNotFound
from taproof.core.model import DeveloperSignIn
from taproof.core.request_context import Requester
from taproof.http.limits.developers import DeveloperLimits
from taproof.http.requester import requester_of
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.projects import Projects

SIGN_IN: Final = "/console/sign-in"
HOME: Final = "/console/projects"
_SESSION: Final = "session"
_NEXT_LIMIT: Final = 500
"""Characters: it travels in a cookie, and browsers drop one of more than 4 KB."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The developer who asks, and the console session that they ask with."""

    developer: Developer
    session: ConsoleSession
    address: str

    @property
    def actor(self) -> Actor:
        """Who changes something, for the audit log."""
        return Actor(self.developer, "console", self.session.id, self.address, self.session.grant)


Page = Callable[[Request, Visitor], Awaitable[Response]]


class Access:
    """Recognises visitors by their cookie."""

    def __init__(self, console_sessions: ConsoleSessions, projects: Projects, limits: DeveloperLimits) -> None:
        self._console_sessions = console_sessions
        self._projects = projects
        self._limits = limits

    async def visitor(self, request: Request, *, by_itself: bool = False) -> Visitor | None:
        """Return who is signed in with this browser, if anybody is; `by_itself`: the page asks, not a person."""
        cookie = read_cookie(request, _SESSION)
        signed_in = await self._console_sessions.authenticate(cookie, by_itself=by_itself)
        if signed_in is None:
            return None
        return Visitor(signed_in.developer, signed_in.session, client_address(request))

    def signed_in(
        self,
        page: Page,
        *,
        by_itself: bool = False,
        across_projects: bool = False,
        way_out: bool = False,
        shows_data: bool = True,
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that answers those who are signed in, and leads others to the sign-in.

        Args:
            page: answers.
            by_itself: whether the page before asks, and not a person.
            across_projects: whether it looks across all projects of the developer; see `DeveloperLimits`.
            way_out: whether it shows or ends access tokens or console sessions.
            shows_data: whether it needs the scope `read`, as the page of a form does too.
        """

        async def answer(request: Request) -> Response:
            visitor = await self.visitor(request, by_itself=by_itself)
            if visitor is None:
                return self.lead_to_sign_in(request)
            request.state.visitor = visitor
            if shows_data:
                visitor.session.grant.require("read")
            # A form may take seconds to arrive, and a session that is ended is dead at once.
            request.state.is_signed_in = partial(self._is_signed_in, request)
            writes = request.method not in {"GET", "HEAD"}
            self._limits.take(request.scope, visitor.actor, writes=writes, way_out=way_out)
            if not across_projects and not way_out:
                return await page(request, visitor)
            if across_projects:
                await self._limits.weigh(visitor.developer.id, self._projects.count_projects)
            async with self._limits.turn(visitor.developer.id):
                return await page(request, visitor)

        return answer

    async def _is_signed_in(self, request: Request) -> bool:
        return await self.visitor(request) is not None

    @staticmethod
    def lead_to_sign_in(request: Request) -> Response:
        """Redirect to the sign-in, which leads back to a page that was asked for; a form's content is lost."""
        back = urlencode({"next": request.url.path}) if request.method == "GET" else ""
        return RedirectResponse(f"{SIGN_IN}?{back}" if back else SIGN_IN, 303)

    async def sign_in(
        self,
        request: Request,
        developer: Developer,
        *,
        opened_with: AccessToken | DeveloperSignIn,
    ) -> str:
        """Open a console session and return its cookie for `remember`; from here on the request is its visitor's.

        Always a new session, whatever cookie the browser sent: nobody can know it beforehand (session fixation). The
        session that the browser had ends. For `opened_with` and the errors see `ConsoleSessions.open_session`.
        """
        before = await self.visitor(request)
        cookie = await self._console_sessions.open_session(
            developer,
            opened_with=opened_with,
            address=client_address(request),
            user_agent=request.headers.get("user-agent", ""),
        )
        if before is not None:
            with contextlib.suppress(ConsoleSessionNotFound):
                await self._console_sessions.end_session(before.actor, before.session.id, signed_out=True)
        signed_in = await self._console_sessions.authenticate(cookie)
        if signed_in is not None:
            request.state.visitor = Visitor(signed_in.developer, signed_in.session, client_address(request))
        return cookie

    @staticmethod
    def remember(request: Request, response: Response, cookie: str) -> None:
        """Give the session's cookie to the browser."""
        set_cookie(request, response, _SESSION, cookie)

    @staticmethod
    def forget(request: Request, response: Response) -> None:
        """Take the session's cookie from the browser."""
        delete_cookie(request, response, _SESSION)


def client_address(request: Request) -> str:
    """Return the IP address of the client; `https_only.HttpsOnly` has seen to what proxies say."""
    return request.client.host if request.client else ""


def requester_on_page(request: Request, base_url: str) -> Requester:
    """Return who starts a sign-in on a page of the console.

    `Guard` has let the form in, so the page is the console's own, whatever its Origin header says.
    """
    return requester_of(request.scope)._replace(origin=base_url)


def safe_next(address: str) -> str:
    """Return where to go after signing in: `address` if it is a page of the console, else the first page."""
    plain = address.startswith("/console/") and "\\" not in address and address.isascii() and address.isprintable()
    if not plain or len(address) > _NEXT_LIMIT:
        return HOME
    path = urlsplit(address).path
    return HOME if path.startswith(SIGN_IN) else path


# ---- cookies: over HTTPS bound to this host (`__Host-`); plain HTTP is answered on loopback only, see transport.py


def _cookie_name(request: Request, name: str) -> str:
    return f"__Host-taproof_{name}" if request.scope["scheme"] == "https" else f"taproof_{name}"


def read_cookie(request: Request, name: str) -> str | None:
    """Return a cookie of the console's; None when there is none, or more than one of that name.

    The name must be the very bytes that `set_cookie` gave. Python takes more for white space than browsers do, and
    whoever strips that takes the name with byte A0 before it, which any host of the same domain may set, for ours.
    """
    wanted = _cookie_name(request, name).encode()
    # HTTP/2 may send each cookie in a header of its own.
    headers = b";".join([*(value for header, value in request.scope["headers"] if header == b"cookie"), b""])
    found: list[bytes] = []
    # Not split as a whole: a head of 16 KB may hold 16,000 cookies without a name.
    at = headers.find(wanted)
    while at >= 0:
        end = headers.index(b";", at)
        key, _, content = headers[headers.rfind(b";", 0, at) + 1 : end].partition(b"=")
        if key.strip(b" \t") == wanted:
            found.append(content.strip(b" \t"))
        at = headers.find(wanted, end)
    if len(found) != 1:
        return None
    content = found[0]
    if len(content) >= 2 and content.startswith(b'"') and content.endswith(b'"'):
        content = content[1:-1]  # Python's cookies quote what has an `=` in it, such as the padding of base64.
    return content.decode("latin-1")


def set_cookie(request: Request, response: Response, name: str, value: str, *, max_age: int | None = None) -> None:
    """Give the browser a cookie that no script can read; without `max_age` (seconds) it ends with the browser."""
    response.set_cookie(
        _cookie_name(request, name),
        value,
        max_age=max_age,
        path="/",
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="lax",
    )


def delete_cookie(request: Request, response: Response, name: str) -> None:
    """Take a cookie from the browser."""
    response.delete_cookie(
        _cookie_name(request, name), path="/", secure=request.scope["scheme"] == "https", httponly=True, samesite="lax"
    )
