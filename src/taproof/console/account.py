"""The account page: the developer's own details, the signed-in browsers, and signing out."""

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import Access, Visitor
from taproof.console.rendering import PageRenderer
from taproof.core.errors import ConsoleSessionNotFound
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.developers import Developers
from taproof.service.plans import Plans

_ACCOUNT: Final = "/console/account"
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
"""Ordered from specific to general, because nearly every browser also includes the names of older ones."""
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


@dataclass(frozen=True, slots=True)
class AccountPages:
    """The account page, and all ways to sign out."""

    access: Access
    pages: PageRenderer
    console_sessions: ConsoleSessions
    developers: Developers
    plans: Plans
    invite_options: Sequence[str]
    """The options that `developers invite` needs for this service."""

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        signed_in = self.access.signed_in
        return [
            Route(_ACCOUNT, signed_in(self._show, way_out=True), methods=["GET"]),
            Route(
                f"{_ACCOUNT}/sessions/{{console_session_id}}/end",
                signed_in(self._delete_console_session, way_out=True),
                methods=["POST"],
            ),
            Route("/console/sign-out", signed_in(self._sign_out, way_out=True, shows_data=False), methods=["POST"]),
            Route("/console/sign-out-everywhere", signed_in(self._sign_out_everywhere, way_out=True), methods=["POST"]),
        ]

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        sessions = await self.console_sessions.list_console_sessions(visitor.developer)
        tokens = await self.developers.list_access_tokens(visitor.developer.id)
        # The command is pasted into a shell, and an e-mail address can contain shell syntax.
        bind_command = shlex.join(["taproof", "developers", "invite", visitor.developer.email, *self.invite_options])
        usage = await self.plans.read_usage(visitor.developer)
        context = {
            "sessions": [(session, browser_in_words(session.user_agent)) for session in sessions],
            "token_names": {token.id: token.name for token in tokens},
            "bind_command": bind_command,
            "usage": usage,
        }
        return self.pages.render(request, "account.html", context)

    async def _delete_console_session(self, request: Request, visitor: Visitor) -> Response:
        session_id: str = request.path_params["console_session_id"]
        if session_id == visitor.session.id:
            return await self._sign_out(request, visitor)
        await self.console_sessions.delete_console_session(visitor.actor, session_id)
        return self.pages.redirect(request, _ACCOUNT, notice="The browser is signed out.")

    async def _sign_out(self, request: Request, visitor: Visitor) -> Response:
        with contextlib.suppress(ConsoleSessionNotFound):  # Another tab has already ended the session.
            await self.console_sessions.delete_console_session(visitor.actor, visitor.session.id, signed_out=True)
        return self.pages.redirect_signed_out(request, "You are signed out.")

    async def _sign_out_everywhere(self, request: Request, visitor: Visitor) -> Response:
        count = await self.console_sessions.delete_console_sessions(visitor.actor)
        browsers = "1 browser" if count == 1 else f"{count} browsers"
        notice = f"You are signed out everywhere ({browsers}). Access tokens still work."
        return self.pages.redirect_signed_out(request, notice)


def browser_in_words(user_agent: str) -> str:
    """Return a browser's name, such as "Firefox on Linux". A client can send any name."""
    browser = _first(_BROWSERS, user_agent) or "Another program"
    system = _first(_SYSTEMS, user_agent)
    return f"{browser} on {system}" if system else browser


def _first(marks: Sequence[tuple[str, str]], text: str) -> str | None:
    return next((name for mark, name in marks if mark in text), None)
