"""The console as one ASGI application: builds the pages and lists all routes."""

from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from taproof.console.access import HOME, Access
from taproof.console.account import AccountPages
from taproof.console.analytics import AnalyticsPages
from taproof.console.audit import AuditPages
from taproof.console.clients import ClientPages
from taproof.console.encrypted_cookie import EncryptedCookie
from taproof.console.guard import Guard
from taproof.console.live import LiveSessions
from taproof.console.members import MemberPages
from taproof.console.projects import ProjectPages
from taproof.console.quick_start import QuickStart
from taproof.console.rendering import LOGO, STATIC, PageRenderer
from taproof.console.sandbox_sign_in import SandboxDeveloper, SandboxSignInPages
from taproof.console.sessions import SessionPages
from taproof.console.sign_in import SignInPages
from taproof.console.team import TeamPages
from taproof.console.tokens import TokenPages
from taproof.console.try_it import TryItPages
from taproof.console.users import UserPages
from taproof.console.waiting import COOKIE_SECONDS
from taproof.console.webhooks import WebhookPages
from taproof.core.brand import Brand
from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import NotFound, TaproofError
from taproof.http.fixed_answer import FixedAnswer
from taproof.http.limits.pages import PageLimit
from taproof.http.limits.rates import RateLimits
from taproof.http.sdk_files import sdk_release
from taproof.service.use_cases import UseCases

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOR_GOOD: Final = ((b"cache-control", b"public, max-age=31536000, immutable"),)


class Console:
    """The console as an ASGI application that serves /console and everything below it.

    `encryptor` encrypts its cookies. `base_url` is the URL that clients use for this service. In the sandbox, one click
    opens the console as the `sandbox_developer`.
    """

    def __init__(
        self,
        use_cases: UseCases,
        encryptor: Encryptor,
        clock: Clock,
        entropy: Entropy,
        *,
        base_url: str,
        brand: Brand = Brand(),  # noqa: B008 — it cannot change.
        version: str,
        limits: RateLimits,
        sandbox: bool = False,
        sandbox_developer: SandboxDeveloper | None = None,
    ) -> None:
        access = Access(use_cases.console_sessions, use_cases.projects, limits.developers)
        pages = PageRenderer(
            encryptor, clock, entropy, version, brand, sandbox=sandbox, one_click=sandbox_developer is not None
        )
        started = EncryptedCookie("signin", COOKIE_SECONDS, encryptor, clock, entropy)
        joining = EncryptedCookie("joining", COOKIE_SECONDS, encryptor, clock, entropy)
        # The command is run in a shell on the service's machine, which does not have the running service's options.
        invite_options = ["--base-url", base_url, *(["--sandbox"] if sandbox else [])]
        self._pages = pages
        self.access = access
        developers, projects, session_reader = use_cases.developers, use_cases.projects, use_cases.session_reader
        invitations, sign_ins, plans = use_cases.invitations, use_cases.developer_sign_ins, use_cases.plans
        self.live: Final = LiveSessions(access, pages, session_reader, clock)
        """The live session list streams. Call its `close` when the service stops; nothing else ends the streams."""
        self._quick_start = QuickStart(base_url, sdk_release(version))
        each = (
            SignInPages(access, pages, started, sign_ins, invitations, developers, limits, base_url, sandbox=sandbox),
            AccountPages(access, pages, use_cases.console_sessions, developers, plans, invite_options),
            TeamPages(access, pages, developers, invitations, base_url, one_click=sandbox_developer is not None),
            TokenPages(access, pages, developers, clock),
            AuditPages(access, pages, use_cases.audit, developers, projects),
            ProjectPages(access, pages, projects, use_cases.bots, use_cases.managed_bots, plans, self._quick_start),
            MemberPages(access, pages, use_cases.members, joining),
            ClientPages(access, pages, use_cases.clients, use_cases.client_grants, base_url),
            TryItPages(access, pages, projects, sign_ins, clock, base_url),
            WebhookPages(access, pages, projects, use_cases.deliveries),
            self.live,  # Must precede the session page, whose route would also match this path.
            SessionPages(access, pages, session_reader, projects, use_cases.deliveries, clock),
            UserPages(
                access,
                pages,
                use_cases.users,
                use_cases.exports,
                use_cases.erasure,
                session_reader,
                use_cases.clients,
                clock,
            ),
            AnalyticsPages(access, pages, use_cases.analytics),
        )
        routes: list[BaseRoute] = [
            Route("/console", _home),
            Route("/console/", _home),
            *(Route(f"/console/static/{file.name}", _static(file.name), name=file.name) for file in STATIC.iterdir()),
            *(route for page in each for route in page.routes()),
        ]
        if brand.logo is not None:
            routes.append(Route(LOGO, FixedAnswer(*brand.logo, _FOR_GOOD)))
        if sandbox_developer is not None:
            routes += SandboxSignInPages(access, pages, sandbox_developer).routes()
        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        # Disable Starlette's own error response, which would be sent before `Guard` can show a page.
        app.middleware_stack = ExceptionMiddleware(app.router, {HTTPException: self._show_http_failure})
        self.app: Final[ASGIApp] = PageLimit(Guard(app, self._show_failure), limits)

    def load_templates(self) -> None:
        """Compile all templates: see `PageRenderer.load_templates`."""
        self._pages.load_templates()
        self._quick_start.load_templates()

    async def _show_failure(self, request: Request, error: TaproofError, status: int) -> Response:
        return self._pages.render(request, "failure.html", {"error": error, "status": status}, status=status)

    async def _show_http_failure(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 — registered for this class only.
        sentences = {404: "This page does not exist.", 405: "This page does not accept that kind of request."}
        request.state.visitor = await self.access.visitor(request)
        shown = NotFound(sentences.get(error.status_code, error.detail))
        response = await self._show_failure(request, shown, error.status_code)
        response.headers.update(error.headers or {})
        return response


async def _home(_: Request) -> Response:
    return RedirectResponse(HOME, 303)


def _static(name: str) -> ASGIApp:
    suffix = name[name.rindex(".") :]
    return FixedAnswer((STATIC / name).read_bytes(), _TYPES[suffix], _FOR_GOOD)
