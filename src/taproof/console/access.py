"""Recognise the developer who is signed in to the console by the session cookie."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from taproof.core.accounts import AccessToken, Actor, ConsoleSession, Developer
from taproof.core.errors import ConsoleSessionNotFound, ProjectNotFound
from taproof.core.identifiers import is_project_id
from taproof.core.projects import Project
from taproof.core.request_context import Requester
from taproof.core.sessions import DeveloperSignIn
from taproof.http.cookies import read_cookie
from taproof.http.limits.developers import DeveloperLimits
from taproof.http.requester import requester_of
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.projects import Projects

SIGN_IN: Final = "/console/sign-in"
HOME: Final = "/console/projects"
JOIN: Final = "/console/join"
ACCEPT_JOINING: Final = f"{JOIN}/accept"
SESSION_COOKIE: Final = "session"
FIRST_SIGN_IN: Final = (
    "Open the “First sign-in” link that make run (taproof serve --sandbox) printed: it links a simulated user to the "
    "sandbox developer and signs you in with the messenger."
)
"""In the sandbox, how to sign in with the messenger."""
_NEXT_LIMIT: Final = 500
"""The maximum length in characters. The path is stored in a cookie, and browsers drop cookies larger than 4 KB."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The signed-in developer, with the console session and the request's client address."""

    developer: Developer
    session: ConsoleSession
    address: str

    @property
    def actor(self) -> Actor:
        """The visitor as an actor for the audit log."""
        return Actor(self.developer, "console", self.session.id, self.address, self.session.grant)


Endpoint = Callable[[Request], Awaitable[Response]]
Page = Callable[[Request, Visitor], Awaitable[Response]]
ProjectPage = Callable[[Request, Visitor, Project], Awaitable[Response]]


@dataclass(slots=True)
class Access:
    """Recognises visitors by their cookie."""

    console_sessions: ConsoleSessions
    projects: Projects
    limits: DeveloperLimits

    async def visitor(self, request: Request, *, by_itself: bool = False) -> Visitor | None:
        """Return the visitor who is signed in with this browser; None if there is none.

        `by_itself`: the page's script sent the request, not a person.
        """
        cookie = read_cookie(request, SESSION_COOKIE)
        signed_in = await self.console_sessions.authenticate(cookie, by_itself=by_itself)
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
    ) -> Endpoint:
        """Return an endpoint that answers signed-in visitors and redirects others to the sign-in page.

        Args:
            page: handles the request.
            by_itself: whether the page's script sends the request, not a person.
            across_projects: whether it reads all of the developer's projects; see `DeveloperLimits`.
            way_out: whether it shows or ends access tokens or console sessions.
            shows_data: whether it needs the scope `read`; pages with a form do too.
        """

        async def answer(request: Request) -> Response:
            visitor = await self.visitor(request, by_itself=by_itself)
            if visitor is None:
                return self.lead_to_sign_in(request)
            request.state.visitor = visitor
            if shows_data:
                visitor.session.grant.require("read")
            # A form can take seconds to arrive, and its session can end meanwhile.
            request.state.is_signed_in = partial(self._is_signed_in, request)
            writes = request.method not in {"GET", "HEAD"}
            self.limits.count_call(request.scope, visitor.actor, writes=writes, way_out=way_out)
            if not across_projects and not way_out:
                return await page(request, visitor)
            if across_projects:
                await self.limits.weigh(visitor.developer.id, self.projects.count_projects)
            async with self.limits.turn(visitor.developer.id):
                return await page(request, visitor)

        return answer

    def on_project(self, page: ProjectPage, *, across_projects: bool = False) -> Endpoint:
        """Like `signed_in`, but also read the project in the path and pass it to the page."""

        async def answer(request: Request, visitor: Visitor) -> Response:
            project_id: str = request.path_params["project_id"]
            if not is_project_id(project_id):
                raise ProjectNotFound
            project = await self.projects.read_project(visitor.developer, project_id)
            return await page(request, visitor, project)

        return self.signed_in(answer, across_projects=across_projects)

    async def _is_signed_in(self, request: Request) -> bool:
        return await self.visitor(request) is not None

    @staticmethod
    def lead_to_sign_in(request: Request) -> Response:
        """Redirect to the sign-in page, which then returns to the requested page. The content of a form is lost."""
        back = urlencode({"next": request.url.path}) if request.method == "GET" else ""
        return RedirectResponse(f"{SIGN_IN}?{back}" if back else SIGN_IN, 303)

    async def sign_in(
        self, request: Request, developer: Developer, *, opened_with: AccessToken | DeveloperSignIn
    ) -> str:
        """Open a console session, set the request's visitor, and return the value for `SESSION_COOKIE`.

        The session is always new, which prevents session fixation. The browser's previous session ends. For
        `opened_with` and the errors, see `ConsoleSessions.create_console_session`.
        """
        before = await self.visitor(request)
        cookie = await self.console_sessions.create_console_session(
            developer,
            opened_with=opened_with,
            address=client_address(request),
            user_agent=request.headers.get("user-agent", ""),
        )
        if before is not None:
            with contextlib.suppress(ConsoleSessionNotFound):
                await self.console_sessions.delete_console_session(before.actor, before.session.id, signed_out=True)
        signed_in = await self.console_sessions.authenticate(cookie)
        if signed_in is not None:
            request.state.visitor = Visitor(signed_in.developer, signed_in.session, client_address(request))
        return cookie


def client_address(request: Request) -> str:
    """Return the client's IP address. `HttpsOnly` has already applied the headers of trusted proxies."""
    return request.client.host if request.client else ""


def requester_on_page(request: Request, base_url: str) -> Requester:
    """Return the requester of a sign-in that a console page starts.

    `Guard` has accepted the form, so the page belongs to the console and the Origin header is not needed.
    """
    return requester_of(request.scope)._replace(origin=base_url)


def safe_next(address: str) -> str:
    """Return the page to open after the sign-in: `address` if it is a console page, otherwise the start page."""
    plain = address.startswith("/console/") and "\\" not in address and address.isascii() and address.isprintable()
    if not plain or len(address) > _NEXT_LIMIT:
        return HOME
    path = urlsplit(address).path
    return HOME if path.startswith(SIGN_IN) else path
