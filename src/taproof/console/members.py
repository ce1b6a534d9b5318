"""The members page of a project, and the page on which a developer accepts an invitation to a project."""

from dataclasses import dataclass
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from taproof.console.access import ACCEPT_JOINING, HOME, JOIN, Access, Visitor
from taproof.console.encrypted_cookie import EncryptedCookie
from taproof.console.forms import read_form
from taproof.console.rendering import PageRenderer
from taproof.contract.member import Role
from taproof.core.errors import (
    AlreadyMember,
    InvalidRequest,
    InvitationNotFound,
    LastOwner,
    MemberNotFound,
    TooManyMembers,
    TooManyProjects,
)
from taproof.core.identifiers import is_key
from taproof.core.names import isolated_name
from taproof.core.projects import Project
from taproof.core.roles import ACTIONS, PERMITTED, ROLES
from taproof.service.members import Members


@dataclass(frozen=True, slots=True)
class MemberPages:
    """Shows, invites, changes and removes the members of a project, and accepts invitations."""

    access: Access
    pages: PageRenderer
    members: Members
    joining: EncryptedCookie
    """Contains the code of an invitation while its holder signs in."""

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        signed_in, on_project = self.access.signed_in, self.access.on_project
        members = f"{HOME}/{{project_id}}/members"
        return [
            Route(members, on_project(self._list), methods=["GET"]),
            Route(f"{members}/invitations", on_project(self._invite), methods=["POST"]),
            Route(f"{members}/invitations/{{invitation_id}}/revoke", on_project(self._revoke), methods=["POST"]),
            Route(f"{members}/{{developer_id}}/role", on_project(self._update), methods=["POST"]),
            Route(f"{members}/{{developer_id}}/remove", on_project(self._remove), methods=["POST"]),
            Route(JOIN, self._show_join, methods=["GET"]),
            Route(JOIN, self._read_code, methods=["POST"]),
            Route(ACCEPT_JOINING, signed_in(self._show_invitation), methods=["GET"]),
            Route(ACCEPT_JOINING, signed_in(self._accept), methods=["POST"]),
        ]

    async def _list(self, request: Request, visitor: Visitor, project: Project, *, error: str = "") -> Response:
        context = {
            "project": project,
            "members": await self.members.list_members(visitor.developer, project.id),
            "invitations": await self.members.list_invitations(visitor.developer, project.id),
            "roles": ROLES,
            "actions": [(words, [action in PERMITTED[role] for role in ROLES]) for action, words in ACTIONS.items()],
            "may_change": project.role == "owner" and "tokens" in visitor.session.scopes,
            "error": error,
        }
        return self.pages.render(request, "members.html", context, status=400 if error else 200)

    async def _invite(self, request: Request, visitor: Visitor, project: Project) -> Response:
        role = _role((await read_form(request))["role"])
        try:
            created = await self.members.invite_member(visitor.actor, project.id, role)
        except TooManyMembers as error:
            return await self._list(request, visitor, project, error=error.sentence)
        return self._redirect(
            request,
            project,
            f"The invitation is ready. Its holder joins as {role}.",
            secrets=[("Invitation link", created.link)],
            secrets_hint="Send it to one person only: the first developer who uses it becomes a member. It is shown "
            "only once, and expires after 7 days.",
        )

    async def _revoke(self, request: Request, visitor: Visitor, project: Project) -> Response:
        await read_form(request)
        await self.members.delete_invitation(visitor.actor, project.id, request.path_params["invitation_id"])
        return self._redirect(request, project, "The invitation was revoked. Its link no longer works.")

    async def _update(self, request: Request, visitor: Visitor, project: Project) -> Response:
        role = _role((await read_form(request))["role"])
        try:
            member = await self.members.update_role(
                visitor.actor, project.id, request.path_params["developer_id"], role
            )
        except (LastOwner, MemberNotFound) as error:
            return await self._list(request, visitor, project, error=error.sentence)
        return self._redirect(request, project, f"{member.email} now has the role {role}.")

    async def _remove(self, request: Request, visitor: Visitor, project: Project) -> Response:
        await read_form(request)
        member_id: str = request.path_params["developer_id"]
        try:
            await self.members.delete_member(visitor.actor, project.id, member_id)
        except LastOwner as error:
            return await self._list(request, visitor, project, error=error.sentence)
        if member_id == visitor.developer.id:
            notice = f"You are no longer a member of {isolated_name(project.name)}."
            return self.pages.redirect(request, HOME, notice=notice)
        notice = "The member was removed. If they may know the project's secrets, replace these under Settings."
        return self._redirect(request, project, notice)

    def _redirect(
        self,
        request: Request,
        project: Project,
        notice: str,
        *,
        secrets: list[tuple[str, str]] | None = None,
        secrets_hint: str = "",
    ) -> Response:
        path = f"{HOME}/{project.id}/members"
        return self.pages.redirect(request, path, notice=notice, secrets=secrets, secrets_hint=secrets_hint)

    # ---- accepting an invitation

    async def _show_join(self, request: Request) -> Response:
        """Ask for the code. Anyone can open this page, so that the sign-in does not lose the link's fragment."""
        request.state.visitor = await self.access.visitor(request)
        return self._join_page(request)

    async def _read_code(self, request: Request) -> Response:
        code = (await read_form(request))["code"].rpartition("#")[2]  # The visitor can also paste the whole link.
        if not is_key(code, "join"):
            return self._join_page(request, InvitationNotFound.sentence)
        response = RedirectResponse(ACCEPT_JOINING, 303)
        self.joining.give(request, response, {"code": code})
        return response

    def _join_page(self, request: Request, error: str = "") -> Response:
        context = {"invitation": None, "project_name": "", "error": error}
        return self.pages.render(request, "join.html", context, status=404 if error else 200)

    async def _show_invitation(self, request: Request, _visitor: Visitor, *, error: str = "") -> Response:
        code = self.joining.read(request).get("code")
        if code is None:
            return RedirectResponse(JOIN, 303)
        try:
            invitation, project_name = await self.members.read_invitation(code)
        except InvitationNotFound as gone:
            response = self._join_page(request, gone.sentence)
            self.joining.take_away(request, response)
            return response
        context = {"invitation": invitation, "project_name": project_name, "error": error}
        return self.pages.render(request, "join.html", context, status=400 if error else 200)

    async def _accept(self, request: Request, visitor: Visitor) -> Response:
        await read_form(request)
        code = self.joining.read(request).get("code")
        if code is None:
            return RedirectResponse(JOIN, 303)
        try:
            project = await self.members.accept_invitation(visitor.actor, code)
        except (InvitationNotFound, AlreadyMember, TooManyMembers, TooManyProjects) as error:
            return await self._show_invitation(request, visitor, error=error.sentence)
        notice = f"You are now a member of {isolated_name(project.name)}, with the role {project.role}."
        response = self.pages.redirect(request, f"{HOME}/{project.id}", notice=notice)
        self.joining.take_away(request, response)
        return response


def _role(text: str) -> Role:
    if text not in get_args(Role):
        raise InvalidRequest("Choose a role from the list.")
    return cast("Role", text)
