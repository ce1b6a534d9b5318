"""The page that erases a user, after a confirmation."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import Access, Visitor
from taproof.console.forms import read_form
from taproof.console.rendering import PageRenderer
from taproof.service.erasure import Erasure, checked_messenger_id
from taproof.service.sessions.list import SessionReader

_SESSIONS = "/console/sessions"


@dataclass(frozen=True, slots=True)
class ErasurePages:
    """Erases the data that a developer's projects store about a user, after a confirmation."""

    access: Access
    pages: PageRenderer
    erasure: Erasure
    session_reader: SessionReader

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        signed_in = self.access.signed_in
        page = "/console/users/{messenger_id}/erase"
        return [
            Route(page, signed_in(self._ask, across_projects=True), methods=["GET"]),
            Route(page, signed_in(self._erase), methods=["POST"]),
        ]

    async def _ask(self, request: Request, visitor: Visitor) -> Response:
        messenger_id = checked_messenger_id(request.path_params["messenger_id"])
        found = await self.session_reader.list_sessions(
            visitor.developer, project_id=None, status=None, limit=1, cursor=None, messenger_id=messenger_id
        )
        identity = found.sessions[0].identity if found.sessions else None
        return self.pages.render(request, "erase_user.html", {"messenger_id": messenger_id, "identity": identity})

    async def _erase(self, request: Request, visitor: Visitor) -> Response:
        await read_form(request)
        messenger_id: str = request.path_params["messenger_id"]
        erased = await self.erasure.erase_user(visitor.actor, messenger_id)
        notice = f"The projects that you can change keep no data about the user {messenger_id}."
        return self.pages.redirect(request, _SESSIONS, notice=notice if erased else f"{notice} There was none.")
