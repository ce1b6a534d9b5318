"""The developer endpoints of a project's members and invitations (contract.md, Rights of developers).

`developer.py` authenticates each request and registers the routes.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

from taproof.api.models import DeletedAnswer, answer_model, described_as, list_model, request_model
from taproof.api.parameters import Caller, ProjectId, Writer, json_body
from taproof.api.projects import ProjectAnswer
from taproof.contract.fields import described
from taproof.contract.member import (
    INVITATION_ID,
    MEMBER_ID,
    CreatedMemberInvitation,
    InvitationCode,
    Member,
    MemberInvitation,
    MemberUpdate,
    NewMemberInvitation,
)
from taproof.service import json_fields
from taproof.service.members import Members

TAG: Final = "Members"

MemberId = Annotated[str, described_as(MEMBER_ID)]
MemberInvitationId = Annotated[str, described_as(INVITATION_ID)]
UpdateMember: Final = request_model(
    "UpdateMember", "The new role of a member.", described(MemberUpdate), required=["role"]
)
CreateMemberInvitation: Final = request_model(
    "CreateMemberInvitation", "An invitation for one more member.", described(NewMemberInvitation)
)
AcceptMemberInvitation: Final = request_model(
    "AcceptMemberInvitation", "The code of an invitation.", described(InvitationCode), required=["code"]
)
MemberAnswer: Final = answer_model("MemberAnswer", Member)
MemberListAnswer: Final = list_model(
    "MemberListAnswer", "All members of a project, in the order in which they joined.", "members", MemberAnswer
)
MemberInvitationAnswer: Final = answer_model("MemberInvitationAnswer", MemberInvitation)
MemberInvitationListAnswer: Final = list_model(
    "MemberInvitationListAnswer",
    "The open invitations of a project, newest first.",
    "invitations",
    MemberInvitationAnswer,
)
CreatedMemberInvitationAnswer: Final = answer_model("CreatedMemberInvitationAnswer", CreatedMemberInvitation)


class MemberEndpoints:
    """The endpoints, one method each."""

    def __init__(self, members: Members) -> None:
        self._members = members

    async def list_members(self, caller: Caller, project_id: ProjectId) -> dict[str, Any]:
        """Return all members of a project, in the order in which they joined."""
        found = await self._members.list_members(caller, project_id)
        return {"members": [json_fields.member(each) for each in found]}

    async def update_member(
        self,
        writer: Writer,
        project_id: ProjectId,
        developer_id: MemberId,
        body: Annotated[dict[str, Any], json_body(UpdateMember)],
    ) -> dict[str, Any]:
        """Give a member another role. Only owners can do this. The only owner keeps their role."""
        changed = await self._members.update_role(writer, project_id, developer_id, body["role"])
        return json_fields.member(changed)

    async def delete_member(self, writer: Writer, project_id: ProjectId, developer_id: MemberId) -> DeletedAnswer:
        """Remove a member. Owners can remove anyone; other members only themselves. The only owner cannot leave."""
        await self._members.delete_member(writer, project_id, developer_id)
        return DeletedAnswer(deleted=True)

    async def list_member_invitations(self, caller: Caller, project_id: ProjectId) -> dict[str, Any]:
        """Return the open invitations of a project, newest first. Their links are not stored and so not returned."""
        found = await self._members.list_invitations(caller, project_id)
        return {"invitations": [json_fields.shown(MemberInvitation, each) for each in found]}

    async def create_member_invitation(
        self,
        writer: Writer,
        project_id: ProjectId,
        body: Annotated[dict[str, Any], json_body(CreateMemberInvitation, may_be_empty=True)],
    ) -> dict[str, Any]:
        """Create a one-time link that makes a developer a member. It is shown only once, and expires after 7 days."""
        created = await self._members.invite_member(writer, project_id, body["role"])
        return json_fields.shown(CreatedMemberInvitation, created.invitation, link=created.link)

    async def delete_member_invitation(
        self, writer: Writer, project_id: ProjectId, invitation_id: MemberInvitationId
    ) -> DeletedAnswer:
        """Revoke an invitation. Its link stops working immediately."""
        await self._members.delete_invitation(writer, project_id, invitation_id)
        return DeletedAnswer(deleted=True)

    async def accept_member_invitation(
        self, writer: Writer, body: Annotated[dict[str, Any], json_body(AcceptMemberInvitation)]
    ) -> dict[str, Any]:
        """Accept an invitation, and return the project of which you are now a member."""
        return json_fields.project(await self._members.accept_invitation(writer, body["code"]))

    @classmethod
    def add_routes(cls, add: Callable[..., None]) -> None:
        """Register every endpoint at its path with `add`, as `developer.py` does."""
        members = "/projects/{project_id}/members"
        member = f"{members}/{{developer_id}}"
        add(TAG, "GET", members, cls.list_members, MemberListAnswer)
        add(TAG, "PATCH", member, cls.update_member, MemberAnswer)
        add(TAG, "DELETE", member, cls.delete_member)
        invitations = "/projects/{project_id}/invitations"
        add(TAG, "GET", invitations, cls.list_member_invitations, MemberInvitationListAnswer)
        invited = CreatedMemberInvitationAnswer
        add(TAG, "POST", invitations, cls.create_member_invitation, invited)
        add(TAG, "DELETE", f"{invitations}/{{invitation_id}}", cls.delete_member_invitation)
        add(TAG, "POST", "/invitations/accept", cls.accept_member_invitation, ProjectAnswer)
