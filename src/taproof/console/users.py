"""The pages of a project's users: the list, one user with their sessions, and the export and erasure of their data."""

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import HOME, Access, Visitor
from taproof.console.forms import read_form
from taproof.console.rendering import PageRenderer
from taproof.console.sessions import SessionFilters, render_rows, session_rows
from taproof.core.clock import Clock
from taproof.core.errors import InvalidRequest, NotFound, SignedOut
from taproof.core.projects import Project
from taproof.http.download import Download, joined
from taproof.service.erasure import Erasure, checked_messenger_id
from taproof.service.oidc.clients import OidcClients
from taproof.service.sessions.list import SessionReader
from taproof.service.user_export import UserExports
from taproof.service.users import UserPage, Users

PAGE: Final = 50
_GONE: Final = "This user has not signed in to this project, or their data was erased."
_NOT_AN_ID: Final = "A messenger id has only digits, at most 20. The list below shows all users."


@dataclass(frozen=True, slots=True)
class UserGroup:
    """A group of a client of the project. `value` names both in a form."""

    value: str
    name: str
    client_name: str
    is_member: bool


@dataclass(frozen=True, slots=True)
class UserPages:
    """Shows the users of a developer's projects, and erases what these store about one of them."""

    access: Access
    pages: PageRenderer
    users: Users
    exports: UserExports
    erasure: Erasure
    session_reader: SessionReader
    clients: OidcClients
    clock: Clock

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        page, user = f"{HOME}/{{project_id}}/users", "/console/users/{messenger_id}"
        signed_in, on_project = self.access.signed_in, self.access.on_project
        return [
            Route(page, on_project(self._list), methods=["GET"]),
            Route(f"{page}/{{messenger_id}}", on_project(self._show), methods=["GET"]),
            Route(f"{user}/export", signed_in(self._export, across_projects=True), methods=["GET"]),
            Route(f"{user}/erase", signed_in(self._ask_to_erase, across_projects=True), methods=["GET"]),
            Route(f"{user}/erase", signed_in(self._erase), methods=["POST"]),
        ]

    async def _list(self, request: Request, visitor: Visitor, project: Project) -> Response:
        cursor = request.query_params.get("cursor")
        messenger_id = request.query_params.get("messenger_id", "").strip()
        page, error, mistake = None, "", ""
        if messenger_id:
            try:
                user = await self.users.read_user(visitor.developer, project.id, messenger_id)
                page = UserPage([user] if user else [], None)
            except InvalidRequest:
                mistake = _NOT_AN_ID
        try:
            page = page or await self.users.list_users(visitor.developer, project.id, limit=PAGE, cursor=cursor)
        except InvalidRequest as invalid:
            page, error = UserPage([], None), invalid.sentence
        context = {
            "project": project,
            "users": page.users,
            "next_cursor": page.next_cursor,
            "is_first": cursor is None,
            "messenger_id": messenger_id,
            "filtered_id": "" if mistake else messenger_id,
            "error": error or mistake,
            "mistake": mistake,
        }
        return self.pages.render(request, "users.html", context, status=400 if error or mistake else 200)

    async def _show(self, request: Request, visitor: Visitor, project: Project) -> Response:
        messenger_id: str = request.path_params["messenger_id"]
        user = await self.users.read_user(visitor.developer, project.id, messenger_id)
        if user is None:
            raise NotFound(_GONE)
        filters = SessionFilters(project_id=project.id, messenger_id=messenger_id)
        sessions = await filters.list_sessions(self.session_reader, visitor.developer)
        rows = render_rows(self.pages, sessions, session_rows(sessions, self.clock()), filters)
        groups = [
            UserGroup(f"{client.id} {name}", name, client.name, is_member=messenger_id in members)
            for client in await self.clients.list_clients(visitor.developer, project.id)
            for name, members in client.groups.members.items()
        ]
        context = {"project": project, "user": user, "rows": rows, "groups": groups}
        return self.pages.render(request, "user.html", context)

    async def _export(self, request: Request, visitor: Visitor) -> Response:
        messenger_id: str = request.path_params["messenger_id"]
        pieces = joined(await self.exports.export_user(visitor.developer, messenger_id))
        first = await anext(pieces)
        # The service refuses ids that are not digits only.
        headers = {"content-disposition": f'attachment; filename="taproof-user-{messenger_id}.json"'}

        async def check() -> None:
            if not await request.state.is_signed_in():
                raise SignedOut

        return Download(first, pieces, check, self.access.limits.download(visitor.developer.id), headers)

    async def _ask_to_erase(self, request: Request, visitor: Visitor) -> Response:
        messenger_id = checked_messenger_id(request.path_params["messenger_id"])
        filters = SessionFilters(messenger_id=messenger_id)
        found = (await filters.list_sessions(self.session_reader, visitor.developer, limit=1)).sessions
        context = {"messenger_id": messenger_id, "identity": found[0].identity if found else None}
        return self.pages.render(request, "erase_user.html", context)

    async def _erase(self, request: Request, visitor: Visitor) -> Response:
        await read_form(request)
        messenger_id: str = request.path_params["messenger_id"]
        erased = await self.erasure.erase_user(visitor.actor, messenger_id)
        notice = f"The projects that you can change keep no data about the user {messenger_id}."
        return self.pages.redirect(
            request, "/console/sessions", notice=notice if erased else f"{notice} There was none."
        )
