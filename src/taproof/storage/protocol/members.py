"""The interface of `store.members`."""

from typing import Final, Literal, Protocol

from taproof.contract.member import Role
from taproof.core.accounts import AuditEntry, Member, MemberInvitation

MEMBER_LIMIT: Final = 100
"""The maximum number of a project's members, and of its open invitations."""
MEMBERSHIP_LIMIT: Final = 2000
"""The maximum number of projects of which a developer becomes a member: calls across all projects read them all."""
JoinOutcome = Literal["joined", "gone", "already_member", "full", "too_many"]
"""The result of accepting an invitation. "gone": it does not exist, was used or revoked, or has expired."""


class MemberStorage(Protocol):
    """The members of projects, and the invitations that add members.

    Each project has an owner at any time. The plan of the owner `Project.developer_id` counts. If that developer is no
    longer an owner, the project moves to the plan of the owner who joined first. It stops collecting phone numbers if
    that plan is "free".

    A change for a developer checks their role in the same transaction. It raises InsufficientRole if the role does not
    permit the change.
    """

    async def read_role(self, developer_id: str, project_id: str) -> Role | None:
        """Return a developer's role in a project; None if they are no member."""

    async def read_roles(self, developer_id: str) -> set[Role]:
        """Return the roles that a developer has in any project."""

    async def list_members(self, project_id: str) -> list[Member]:
        """Return the members of a project, in the order in which they joined."""

    async def update_role(
        self, developer_id: str, project_id: str, member_id: str, role: Role, *, entry: AuditEntry | None = None
    ) -> Role | None:
        """Give a member another role on behalf of `developer_id`; return the previous one.

        Return None if one of the two is no member. The open invitations of a member who may no longer invite end.

        Raises:
            LastOwner: the member is the only owner.
        """

    async def delete_member(
        self, developer_id: str, project_id: str, member_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """Remove a member on behalf of `developer_id`; False if one of the two is no member. Anyone may leave.

        The open invitations of the removed member end. Once this returns, no change that the member began is made.

        Raises:
            LastOwner: the member is the only owner.
        """

    async def create_member_invitation(
        self, invitation: MemberInvitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> bool:
        """Store an invitation; False if its inviter is no member, or if the project has `MEMBER_LIMIT` open ones."""

    async def read_member_invitation(self, code_hash: bytes, now: int) -> MemberInvitation | None:
        """Return the invitation whose code has this SHA-256; None if there is none or it has expired at `now`."""

    async def list_member_invitations(self, project_id: str, now: int) -> list[MemberInvitation]:
        """Return the invitations of a project that have not expired at `now`, newest first."""

    async def delete_member_invitation(
        self, developer_id: str, project_id: str, invitation_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """Revoke an invitation on behalf of `developer_id`; False if they are no member, or there is none."""

    async def accept_member_invitation(
        self, code_hash: bytes, developer_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> JoinOutcome:
        """Make a developer a member, and end the invitation. Exactly one of several callers gets "joined".

        With any other outcome, nothing is changed, and the invitation can be tried again. "full": the project has
        `MEMBER_LIMIT` members. "too_many": the developer is a member of `MEMBERSHIP_LIMIT` projects.
        """
