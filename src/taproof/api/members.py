"""The developer endpoints of a project's members and invitations (contract.md, Rights of developers).

`developer.py` authenticates each request and registers the routes. The models follow the rules in `schemas.py`.
"""

from collections.abc import Callable
from typing import Annotated, Final

from pydantic import BaseModel, Field, WithJsonSchema

from taproof.api import serializers
from taproof.api.parameters import Caller, Writer, json_body
from taproof.api.project_fields import ProjectAnswer
from taproof.api.schemas import DeletedAnswer, ProjectId, StrictRequest, Time
from taproof.core.roles import Role
from taproof.service import json_fields
from taproof.service.members import Members

TAG: Final = "Members"

MemberId = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": "^dev_[A-Za-z0-9]{1,40}$"}),
    Field(description="The developer's id.", examples=["dev_7Yh2kP0sVd93mQxAeRtU1c"]),
]
MemberInvitationId = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": "^minv_[A-Za-z0-9]{1,40}$"}),
    Field(description="The invitation's id.", examples=["minv_1Zx8cVbNm5AsDfGhJkLqWe"]),
]
MemberRole = Annotated[
    Role,
    Field(
        description="owner: everything. developer: everything except members and deleting the project. viewer: reads "
        "everything except secrets.",
        examples=["developer"],
    ),
]


class UpdateMember(StrictRequest):
    """The new role of a member."""

    role: MemberRole


class CreateMemberInvitation(StrictRequest):
    """An invitation for one more member."""

    role: MemberRole = "developer"


class AcceptMemberInvitation(StrictRequest):
    """The code of an invitation."""

    code: Annotated[str, WithJsonSchema({"type": "string", "maxLength": 100})] = Field(
        description="The code of the link: everything after #.", examples=["join_" + "a1B2c3D" * 7]
    )


class MemberAnswer(BaseModel):
    """A member of a project."""

    developer_id: MemberId
    email: str = Field(examples=["ada@example.com"])
    role: MemberRole
    joined_at: Time
    invited_by: str = Field(
        description='The e-mail address of the inviter; "" for the project\'s creator.', examples=["grace@example.com"]
    )


class MemberListAnswer(BaseModel):
    """All members of a project, in the order in which they joined."""

    members: list[MemberAnswer]


class MemberInvitationAnswer(BaseModel):
    """An open invitation, without its link."""

    id: MemberInvitationId
    role: MemberRole
    invited_by: str = Field(description="The e-mail address of the inviter.", examples=["grace@example.com"])
    created_at: Time
    expires_at: Time


class MemberInvitationListAnswer(BaseModel):
    """The open invitations of a project, newest first."""

    invitations: list[MemberInvitationAnswer]


class CreatedMemberInvitationAnswer(MemberInvitationAnswer):
    """A new invitation with its link. The link is shown only once."""

    link: str = Field(
        description="Shown only once. The first developer who uses it becomes a member.",
        examples=["https://taproof.example.com/console/join#join_" + "a1B2c3D" * 7],
    )


class MemberEndpoints:
    """The endpoints, one method each."""

    def __init__(self, members: Members) -> None:
        self._members = members

    async def list_members(self, caller: Caller, project_id: ProjectId) -> MemberListAnswer:
        """Return all members of a project, in the order in which they joined."""
        found = await self._members.list_members(caller, project_id)
        return MemberListAnswer(members=[MemberAnswer(**json_fields.member(each)) for each in found])

    async def update_member(
        self,
        writer: Writer,
        project_id: ProjectId,
        developer_id: MemberId,
        body: Annotated[UpdateMember, json_body(UpdateMember)],
    ) -> MemberAnswer:
        """Give a member another role. Only owners can do this. The only owner keeps their role."""
        changed = await self._members.update_role(writer, project_id, developer_id, body.role)
        return MemberAnswer(**json_fields.member(changed))

    async def delete_member(self, writer: Writer, project_id: ProjectId, developer_id: MemberId) -> DeletedAnswer:
        """Remove a member. Owners can remove anyone; other members only themselves. The only owner cannot leave."""
        await self._members.delete_member(writer, project_id, developer_id)
        return DeletedAnswer(deleted=True)

    async def list_member_invitations(self, caller: Caller, project_id: ProjectId) -> MemberInvitationListAnswer:
        """Return the open invitations of a project, newest first. Their links are not stored and so not returned."""
        found = await self._members.list_invitations(caller, project_id)
        shown = [MemberInvitationAnswer(**json_fields.member_invitation(each)) for each in found]
        return MemberInvitationListAnswer(invitations=shown)

    async def create_member_invitation(
        self,
        writer: Writer,
        project_id: ProjectId,
        body: Annotated[CreateMemberInvitation, json_body(CreateMemberInvitation, may_be_empty=True)],
    ) -> CreatedMemberInvitationAnswer:
        """Create a one-time link that makes a developer a member. It is shown only once, and expires after 7 days."""
        created = await self._members.invite_member(writer, project_id, body.role)
        return CreatedMemberInvitationAnswer(**json_fields.created_member_invitation(created))

    async def delete_member_invitation(
        self, writer: Writer, project_id: ProjectId, invitation_id: MemberInvitationId
    ) -> DeletedAnswer:
        """Revoke an invitation. Its link stops working immediately."""
        await self._members.delete_invitation(writer, project_id, invitation_id)
        return DeletedAnswer(deleted=True)

    async def accept_member_invitation(
        self, writer: Writer, body: Annotated[AcceptMemberInvitation, json_body(AcceptMemberInvitation)]
    ) -> ProjectAnswer:
        """Accept an invitation, and return the project of which you are now a member."""
        return serializers.project(await self._members.accept_invitation(writer, body.code))

    def add_routes(self, add: Callable[..., None]) -> None:
        """Register every endpoint at its path with `add`, as `DeveloperApi` does."""
        members = "/projects/{project_id}/members"
        member = f"{members}/{{developer_id}}"
        add(TAG, "GET", members, self.list_members)
        add(TAG, "PATCH", member, self.update_member, UpdateMember)
        add(TAG, "DELETE", member, self.delete_member)
        invitations = "/projects/{project_id}/invitations"
        add(TAG, "GET", invitations, self.list_member_invitations)
        add(TAG, "POST", invitations, self.create_member_invitation, CreateMemberInvitation, body_required=False)
        add(TAG, "DELETE", f"{invitations}/{{invitation_id}}", self.delete_member_invitation)
        add(TAG, "POST", "/invitations/accept", self.accept_member_invitation, AcceptMemberInvitation)
