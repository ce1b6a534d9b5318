"""The members of projects (core/roles.py), and the invitations that add members.

An invitation is a one-time link, `{base_url}/console/join#join_…`. A developer who has its code can use it; only a hash
of the code is stored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from taproof.contract.audit import AuditAction
from taproof.contract.member import INVITATION_ID, MEMBER_ID, Role
from taproof.core.accounts import Actor, AuditEntry, Developer, Member, MemberInvitation
from taproof.core.clock import DAY, Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    AlreadyMember,
    InvitationNotFound,
    MemberNotFound,
    TaproofError,
    TooManyMembers,
    TooManyProjects,
)
from taproof.core.identifiers import is_key, key_hash, new_id, new_key
from taproof.core.projects import Project
from taproof.core.roles import require_action
from taproof.service.audit import audit_entry
from taproof.service.project_access import read_project_for, reading_project
from taproof.storage.protocol import Storage
from taproof.storage.queries.members import JoinOutcome

LIFETIME: Final = 7 * DAY
"""The lifetime of an invitation in ms. It is shorter if the credential that creates the invitation expires earlier."""
_INVITATION_ID: Final = re.compile(INVITATION_ID.pattern)
_DEVELOPER_ID: Final = re.compile(MEMBER_ID.pattern)
_REFUSALS: Final[Mapping[JoinOutcome, type[TaproofError]]] = {
    "gone": InvitationNotFound,
    "already_member": AlreadyMember,
    "full": TooManyMembers,
    "too_many": TooManyProjects,
}


@dataclass(frozen=True, slots=True)
class CreatedMemberInvitation:
    """A new invitation. `link` cannot be retrieved later."""

    invitation: MemberInvitation
    link: str


class Members:
    """Lists, changes and removes members, and creates, revokes and accepts invitations.

    A method that takes a project id raises InvalidRequest if the id is malformed, ProjectNotFound if the developer has
    no such project, and InsufficientRole if their role does not permit the call. The changes need the scope `tokens`,
    because they give and end rights. A call that raises changes nothing. Links begin with `base_url`.
    """

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy, *, base_url: str) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy
        self._base_url = base_url

    async def list_members(self, developer: Developer, project_id: str) -> list[Member]:
        """Return the members of a project, in the order in which they joined."""
        async with reading_project(self._storage, developer, project_id):
            return await self._storage.members.list_members(project_id)

    async def update_role(self, actor: Actor, project_id: str, member_id: str, role: Role) -> Member:
        """Give a member another role, and return the member. Raise MemberNotFound, or LastOwner for the only owner."""
        actor.grant.require("tokens")
        await read_project_for(self._storage, actor.developer, project_id, "members")
        before = await self._member(project_id, member_id)
        details = {"email": before.email, "role": role, "before": before.role}
        entry = self._entry(actor, "member.role_changed", project_id, member_id, details)
        changed = await self._storage.members.update_role(actor.developer.id, project_id, member_id, role, entry=entry)
        if changed is None:
            raise MemberNotFound
        return replace(before, role=role)

    async def delete_member(self, actor: Actor, project_id: str, member_id: str) -> None:
        """Remove a member; each may remove themselves. Raise MemberNotFound, or LastOwner for the only owner."""
        actor.grant.require("tokens")
        project = await read_project_for(self._storage, actor.developer, project_id)
        if member_id != actor.developer.id and project.role is not None:
            require_action(project.role, "members")
        member = await self._member(project_id, member_id)
        details = {"email": member.email, "role": member.role}
        entry = self._entry(actor, "member.removed", project_id, member_id, details)
        if not await self._storage.members.delete_member(actor.developer.id, project_id, member_id, entry=entry):
            raise MemberNotFound

    async def invite_member(self, actor: Actor, project_id: str, role: Role) -> CreatedMemberInvitation:
        """Create an invitation for one more member. Raise TooManyMembers at `MEMBER_LIMIT` open invitations."""
        actor.grant.require("tokens")
        await read_project_for(self._storage, actor.developer, project_id, "members")
        now, grant = self._clock(), actor.grant
        invitation = MemberInvitation(
            id=new_id("minv", self._entropy),
            project_id=project_id,
            role=role,
            created_at=now,
            expires_at=min(now + LIFETIME, grant.expires_at or now + LIFETIME),
            invited_by=actor.developer.email,
            inviter_id=actor.developer.id,
            access_token_id=grant.access_token_id,
            sign_in=grant.sign_in,
        )
        code = new_key("join", self._entropy)
        entry = self._entry(actor, "member.invited", project_id, invitation.id, {"role": role})
        if not await self._storage.members.create_member_invitation(invitation, key_hash(code), entry=entry):
            await read_project_for(self._storage, actor.developer, project_id, "members")  # Removed just now?
            raise TooManyMembers
        return CreatedMemberInvitation(invitation, f"{self._base_url}/console/join#{code}")

    async def list_invitations(self, developer: Developer, project_id: str) -> list[MemberInvitation]:
        """Return the open invitations of a project, newest first."""
        async with reading_project(self._storage, developer, project_id):
            return await self._storage.members.list_member_invitations(project_id, self._clock())

    async def delete_invitation(self, actor: Actor, project_id: str, invitation_id: str) -> None:
        """Revoke an invitation. Raise InvitationNotFound if the project has no such invitation."""
        actor.grant.require("tokens")
        await read_project_for(self._storage, actor.developer, project_id, "members")
        entry = self._entry(actor, "member.invitation_revoked", project_id, invitation_id, {})
        if _INVITATION_ID.fullmatch(invitation_id) is None or not await self._storage.members.delete_member_invitation(
            actor.developer.id, project_id, invitation_id, entry=entry
        ):
            raise InvitationNotFound("There is no such invitation: it was used, was revoked or has expired.")

    async def read_invitation(self, code: str) -> tuple[MemberInvitation, str]:
        """Return the open invitation with this code and the name of its project, or raise InvitationNotFound."""
        found = None
        if is_key(code, "join"):
            found = await self._storage.members.read_member_invitation(key_hash(code), self._clock())
        project = None if found is None else await self._storage.projects.read_project(found.project_id)
        if found is None or project is None:
            raise InvitationNotFound
        return found, project.name

    async def accept_invitation(self, actor: Actor, code: str) -> Project:
        """Make the acting developer a member, and return the project.

        Raises:
            InvitationNotFound, AlreadyMember, TooManyMembers, TooManyProjects: nothing is changed.
        """
        actor.grant.require("tokens")
        invitation, _ = await self.read_invitation(code)
        details = {"role": invitation.role, "invited_by": invitation.invited_by, "invitation": invitation.id}
        entry = self._entry(actor, "member.joined", invitation.project_id, actor.developer.id, details)
        outcome = await self._storage.members.accept_member_invitation(
            key_hash(code), actor.developer.id, self._clock(), entry=entry
        )
        if outcome != "joined":
            raise _REFUSALS[outcome]
        return await read_project_for(self._storage, actor.developer, invitation.project_id)

    async def _member(self, project_id: str, member_id: str) -> Member:
        found = None
        if _DEVELOPER_ID.fullmatch(member_id) is not None:
            members = await self._storage.members.list_members(project_id)
            found = next((each for each in members if each.developer_id == member_id), None)
        if found is None:
            raise MemberNotFound
        return found

    def _entry(
        self, actor: Actor, action: AuditAction, project_id: str, subject: str, details: Mapping[str, object]
    ) -> AuditEntry:
        now = self._clock()
        return audit_entry(actor, action, now, self._entropy, subject=subject, details=details, project_id=project_id)
