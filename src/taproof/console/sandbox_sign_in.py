"""Open the console as the sandbox's developer, with one click. Only the sandbox adds this part to the console.

The form is refused like every other form that another site's page sends: see `guard.py`. A site can also point its own
name to this machine (DNS rebinding), so that its pages share this console's origin. The Host header reveals that.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import SESSION_COOKIE, SIGN_IN, Access, safe_next
from taproof.console.forms import read_form
from taproof.console.rendering import PageRenderer
from taproof.core.accounts import AccessToken, Developer
from taproof.core.errors import InvalidAccessToken, NotFound
from taproof.http.cookies import set_cookie

SANDBOX_SIGN_IN: Final = f"{SIGN_IN}/sandbox"
_ENDED: Final = "The sandbox's access token was revoked. Restart the sandbox: it then creates a new one."


@dataclass(frozen=True, slots=True)
class SandboxDeveloper:
    """The developer of the sandbox."""

    authenticate: Callable[[], Awaitable[tuple[AccessToken, Developer]]]
    """Returns the developer's access token and account; raises InvalidAccessToken if it was revoked."""
    is_own_host: Callable[[str], bool]
    """Returns whether a Host header names this sandbox."""


@dataclass(frozen=True, slots=True)
class SandboxSignInPages:
    """The endpoint of the form on the sign-in page."""

    access: Access
    pages: PageRenderer
    sandbox: SandboxDeveloper

    def routes(self) -> list[Route]:
        """Return the route."""
        return [Route(SANDBOX_SIGN_IN, self._sign_in, methods=["POST"])]

    async def _sign_in(self, request: Request) -> Response:
        if not self.sandbox.is_own_host(request.headers.get("host", "")):
            raise NotFound("Open the sandbox at the address that it printed when it started.")
        next_page = safe_next((await read_form(request))["next"])
        try:
            token, developer = await self.sandbox.authenticate()
            cookie = await self.access.sign_in(request, developer, opened_with=token)
        except InvalidAccessToken:
            return self.pages.redirect(request, SIGN_IN, problem=_ENDED)
        response = self.pages.redirect(request, next_page)
        set_cookie(request, response, SESSION_COOKIE, cookie)
        return response
