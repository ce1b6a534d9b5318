"""The members of projects, and the invitations that add members."""

from typing import Final, Literal

from taproof.contract.member import Role
from taproof.core.accounts import AuditEntry, Member, MemberInvitation
from taproof.core.errors import LastOwner
from taproof.core.roles import PERMITTED, require_action
from taproof.storage.queries.database import Queries
from taproof.storage.queries.plans import STOP_COLLECTING_IN_PROJECT
from taproof.storage.queries.projects import COUNT_PROJECTS
from taproof.storage.queries.rights import (
    ADD_MEMBER,
    DELETE_MEMBER_INVITATIONS_OF,
    FIND_DEVELOPER,
    FIND_ROLE,
    end_membership,
    lock_members,
)
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import member_invitation_values

READ_ROLES: Final = "SELECT DISTINCT role FROM project_members WHERE developer_id = $1"
LIST_MEMBERS: Final = """
SELECT m.project_id, m.developer_id, m.role, m.created_at, m.invited_by, d.email
FROM project_members m JOIN developers d ON d.id = m.developer_id
WHERE m.project_id = $1 ORDER BY m.created_at, m.developer_id"""
UPDATE_ROLE: Final = "UPDATE project_members SET role = $1 WHERE project_id = $2 AND developer_id = $3"
FIND_OWNERS: Final = """
SELECT d.id FROM developers d WHERE d.id IN (
  SELECT m.developer_id FROM project_members m WHERE m.project_id = $1 AND m.role = 'owner') ORDER BY d.id"""
"""Finds the developers who are owners. The lock keeps their plans unchanged."""
FIND_NEXT_PLAN: Final = """
SELECT m.developer_id, d.plan FROM projects p
JOIN project_members m ON m.project_id = p.id AND m.role = 'owner' JOIN developers d ON d.id = m.developer_id
WHERE p.id = $1 AND NOT EXISTS (
  SELECT 1 FROM project_members o WHERE o.project_id = $1 AND o.developer_id = p.developer_id AND o.role = 'owner')
ORDER BY m.created_at, m.developer_id LIMIT 1"""
"""Finds the owner whose plan counts from now on, if the developer whose plan counted is no longer an owner."""
MOVE_PROJECT: Final = "UPDATE projects SET developer_id = $1 WHERE id = $2"

# ---- invitations

CREATE_MEMBER_INVITATION: Final = """
INSERT INTO member_invitations (id, project_id, code_hash, role, created_at, expires_at, invited_by, inviter_id,
  access_token_id, sign_in)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 WHERE (
  SELECT COUNT(*) FROM member_invitations WHERE project_id = $2 AND expires_at > $5) < $11 RETURNING id"""
_INVITATION: Final = """
SELECT id, project_id, role, created_at, expires_at, invited_by, inviter_id, access_token_id, sign_in
FROM member_invitations"""
READ_MEMBER_INVITATION: Final = f"{_INVITATION} WHERE code_hash = $1 AND expires_at > $2"
LIST_MEMBER_INVITATIONS: Final = f"""{_INVITATION}
WHERE project_id = $1 AND expires_at > $2 ORDER BY created_at DESC, id DESC"""
DELETE_MEMBER_INVITATION: Final = "DELETE FROM member_invitations WHERE project_id = $1 AND id = $2 RETURNING id"
ADD_ORIGIN: Final = """
INSERT INTO member_origins (project_id, developer_id, inviter_id, sign_in) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING"""
INHERIT_ORIGINS: Final = """
INSERT INTO member_origins (project_id, developer_id, inviter_id, sign_in)
SELECT o.project_id, $1, o.inviter_id, o.sign_in FROM member_origins o WHERE o.project_id = $2 AND o.developer_id = $3
ON CONFLICT DO NOTHING"""


MEMBER_LIMIT: Final = 100
"""The maximum number of a project's members, and of its open invitations."""
MEMBERSHIP_LIMIT: Final = 2000
"""The maximum number of projects of which a developer becomes a member: calls across all projects read them all."""
JoinOutcome = Literal["joined", "gone", "already_member", "full", "too_many"]
"""The result of accepting an invitation. "gone": it does not exist, was used or revoked, or has expired."""


class MemberQueries(Queries):
    """The members of projects, and the invitations that add members.

    Each project has an owner at any time. The plan of the owner `Project.developer_id` counts. If that developer is no
    longer an owner, the project moves to the plan of the owner who joined first. It stops collecting phone numbers if
    that plan is "free".

    A change for a developer checks their role in the same transaction. It raises InsufficientRole if the role does not
    permit the change.
    """

    async def read_role(self, developer_id: str, project_id: str) -> Role | None:
        """Return a developer's role in a project; None if they are no member."""
        found = await self._database.read(FIND_ROLE, project_id, developer_id)
        return found[0][0] if found else None

    async def read_roles(self, developer_id: str) -> set[Role]:
        """Return the roles that a developer has in any project."""
        return {row[0] for row in await self._database.read(READ_ROLES, developer_id)}

    async def list_members(self, project_id: str) -> list[Member]:
        """Return the members of a project, in the order in which they joined."""
        return [Member(*row) for row in await self._database.read(LIST_MEMBERS, project_id)]

    async def update_role(
        self, developer_id: str, project_id: str, member_id: str, role: Role, *, entry: AuditEntry | None = None
    ) -> Role | None:
        """Give a member another role on behalf of `developer_id`; return the previous one.

        Return None if one of the two is no member. The open invitations of a member who may no longer invite end.

        Raises:
            LastOwner: the member is the only owner.
        """

        async def update(transaction: Transaction) -> Role | None:
            await transaction.lock(FIND_OWNERS, project_id, mode="FOR SHARE")
            roles = await lock_members(transaction, project_id)
            if developer_id not in roles or member_id not in roles:
                return None
            require_action(roles[developer_id], "members")
            before = roles[member_id]
            if before == role:
                return before
            _require_other_owner(roles, member_id)
            await transaction.fetch(UPDATE_ROLE, role, project_id, member_id)
            if "members" not in PERMITTED[role]:
                await transaction.fetch(DELETE_MEMBER_INVITATIONS_OF, project_id, member_id)
            await settle_plans(transaction, [project_id])
            await transaction.add_entry(entry)
            return before

        return await self._database.in_transaction(update)

    async def delete_member(
        self, developer_id: str, project_id: str, member_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """Remove a member on behalf of `developer_id`; False if one of the two is no member. Anyone may leave.

        The open invitations of the removed member end. Once this returns, no change that the member began is made.

        Raises:
            LastOwner: the member is the only owner.
        """

        async def delete(transaction: Transaction) -> bool:
            await transaction.lock(FIND_OWNERS, project_id, mode="FOR SHARE")
            roles = await lock_members(transaction, project_id)
            if developer_id not in roles:
                return False
            if member_id != developer_id:
                require_action(roles[developer_id], "members")
            if member_id not in roles:
                return False
            _require_other_owner(roles, member_id)
            await end_membership(transaction, project_id, member_id)
            await settle_plans(transaction, [project_id])
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(delete)

    async def create_member_invitation(
        self, invitation: MemberInvitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> bool:
        """Store an invitation; False if its inviter is no member, or if the project has `MEMBER_LIMIT` open ones."""
        values = (*member_invitation_values(invitation, code_hash), MEMBER_LIMIT)

        async def create(transaction: Transaction) -> bool:
            # A report of the inviter's sign-in locks the inviter too. So it finds this invitation, or has ended the
            # acting credential.
            await transaction.lock(FIND_DEVELOPER, invitation.inviter_id)
            # With this lock, two calls cannot exceed the limit, and a removal of the inviter finds the invitation.
            roles = await lock_members(transaction, invitation.project_id)
            if invitation.inviter_id not in roles:
                return False
            require_action(roles[invitation.inviter_id], "members")
            if not await transaction.add(CREATE_MEMBER_INVITATION, *values):
                return False
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(create)

    async def read_member_invitation(self, code_hash: bytes, now: int) -> MemberInvitation | None:
        """Return the invitation whose code has this SHA-256; None if there is none or it has expired at `now`."""
        found = await self._database.read(READ_MEMBER_INVITATION, code_hash, now)
        return MemberInvitation(*found[0]) if found else None

    async def list_member_invitations(self, project_id: str, now: int) -> list[MemberInvitation]:
        """Return the invitations of a project that have not expired at `now`, newest first."""
        found = await self._database.read(LIST_MEMBER_INVITATIONS, project_id, now)
        return [MemberInvitation(*row) for row in found]

    async def delete_member_invitation(
        self, developer_id: str, project_id: str, invitation_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """Revoke an invitation on behalf of `developer_id`; False if they are no member, or there is none."""

        async def delete(transaction: Transaction) -> bool:
            roles = await lock_members(transaction, project_id)
            if developer_id not in roles:
                return False
            require_action(roles[developer_id], "members")
            if not await transaction.fetch(DELETE_MEMBER_INVITATION, project_id, invitation_id):
                return False
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(delete)

    async def accept_member_invitation(
        self,
        code_hash: bytes,
        developer_id: str,
        now: int,
        *,
        member_limit: int = MEMBER_LIMIT,
        membership_limit: int = MEMBERSHIP_LIMIT,
        entry: AuditEntry | None = None,
    ) -> JoinOutcome:
        """Make a developer a member, and end the invitation. Exactly one of several callers gets "joined".

        With any other outcome, nothing is changed, and the invitation can be tried again. "full": the project has
        `member_limit` members. "too_many": the developer is a member of `membership_limit` projects.
        """

        async def accept(transaction: Transaction) -> JoinOutcome:
            found = await transaction.fetch(READ_MEMBER_INVITATION, code_hash, now)
            if not found:
                return "gone"
            invitation = MemberInvitation(*found[0])
            # Each removal of a member or invitation locks the members first. A removal of a developer locks that
            # developer, and a report of the inviter's sign-in the inviter. So nobody joins after the end of what this
            # depends on.
            for each in sorted({developer_id, invitation.inviter_id}):
                if not await transaction.lock(FIND_DEVELOPER, each):
                    return "gone"
            roles = await lock_members(transaction, invitation.project_id)
            if not await transaction.fetch(READ_MEMBER_INVITATION, code_hash, now):
                return "gone"
            if developer_id in roles:
                return "already_member"
            if len(roles) >= member_limit:
                return "full"
            ((memberships,),) = await transaction.fetch(COUNT_PROJECTS, developer_id)
            if memberships >= membership_limit:
                return "too_many"
            await transaction.fetch(DELETE_MEMBER_INVITATION, invitation.project_id, invitation.id)
            member = (invitation.project_id, developer_id)
            await transaction.add(ADD_MEMBER, *member, invitation.role, now, invitation.invited_by)
            await transaction.add(INHERIT_ORIGINS, developer_id, invitation.project_id, invitation.inviter_id)
            if invitation.sign_in is not None:
                await transaction.add(ADD_ORIGIN, *member, invitation.inviter_id, invitation.sign_in)
            await transaction.add_entry(entry)
            return "joined"

        return await self._database.in_transaction(accept)


def _require_other_owner(roles: dict[str, Role], member_id: str) -> None:
    """Raise LastOwner if the member is the only owner of a project, whose members are locked."""
    if roles[member_id] == "owner" and list(roles.values()).count("owner") == 1:
        raise LastOwner


async def settle_plans(transaction: Transaction, project_ids: list[str]) -> None:
    """Move projects to an owner's plan if the developer whose plan counted is no longer an owner.

    The members of the projects are locked.
    """
    for project_id in project_ids:
        for developer_id, plan in await transaction.fetch(FIND_NEXT_PLAN, project_id):
            await transaction.fetch(MOVE_PROJECT, developer_id, project_id)
            if plan == "free":
                await transaction.fetch(STOP_COLLECTING_IN_PROJECT, project_id)
