"""The interface of `store.developers`."""

from collections.abc import Callable, Sequence
from typing import Protocol

from taproof.core.accounts import AuditEntry, Developer, EndedRights, Invitation, InvitationOutcome, RemovedDeveloper
from taproof.core.model import DeveloperSignIn

DescribeEnded = Callable[[EndedRights], Sequence[AuditEntry]]
"""Returns the audit entries for the rights that a report ended. A driver may call it more than once, so it must have no
side effects."""


DescribeRemoved = Callable[[RemovedDeveloper], Sequence[AuditEntry]]
"""Returns the audit entries for the removal of a developer, with the same rules as `DescribeEnded`."""


class DeveloperStorage(Protocol):
    """Developers and invitations."""

    async def create_developer(self, developer: Developer, *, entry: AuditEntry | None = None) -> bool:
        """Store a developer; False if the e-mail address is taken (compared without case)."""

    async def read_developer(self, email: str) -> Developer | None:
        """Return the developer with this e-mail address (compared without case)."""

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        """Return the developer to whom this messenger account is linked."""

    async def list_developers(self) -> list[Developer]:
        """Return all developers, oldest first."""

    async def read_developer_of_sign_in(self, messenger_id: str, sign_in: str) -> Developer | None:
        """Return the developer whose rights derive from a sign-in; otherwise the one to whom this account is linked."""

    async def remove_developer(
        self,
        developer_id: str,
        now: int,
        *,
        successor_id: str | None = None,
        delete_projects: bool = False,
        describe: DescribeRemoved = lambda _: (),
    ) -> RemovedDeveloper | None:
        """Erase a developer's account with its credentials, memberships and invitations, in one transaction.

        The projects of which the developer is the only owner pass to `successor_id`, or are deleted with
        `delete_projects`. Return None if one of the two developers does not exist; nothing is changed.

        Raises:
            ProjectsNeedOwner: there are such projects, and neither is given.
        """

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        """End, in one transaction, all credentials and rights that derive from a developer's reported sign-in.

        The sign-in must be reported before this call. The transaction ends:

        - all console sessions of the developer;
        - all access tokens that derive, directly or indirectly, from this sign-in or a later one;
        - the invitations that derive from this sign-in or, if it linked the account, also from a later one;
        - the memberships in projects of those who accepted one of these, and of those whom they invited in turn.

        Developers who accepted one of these invitations can no longer sign in, and the credentials that they created
        end too. A project that loses its last owner gets this developer as its owner. A messenger account that the
        sign-in linked is unlinked. No such credential can be created meanwhile,
        so none remains. Repeating the call is safe.
        """

    async def create_invitation(
        self, invitation: Invitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> None:
        """Store an invitation, which replaces all others for the same developer or address (compared without case)."""

    async def read_invitation(self, code_hash: bytes, now: int) -> Invitation | None:
        """Return the invitation whose code has this SHA-256; None if there is none or it has expired at `now`."""

    async def list_invitations(self, now: int) -> list[Invitation]:
        """Return the invitations with an e-mail address that have not expired at `now`, newest first."""

    async def delete_invitation(self, invitation_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Revoke an invitation; False if there is none."""

    async def accept_invitation(
        self,
        code_hash: bytes,
        developer: Developer,
        now: int,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> InvitationOutcome:
        """Accept an invitation: store `developer`, or link its messenger account to the existing developer.

        Exactly one of several concurrent callers gets "accepted". This also deletes all other invitations for that
        developer or that address, and those for the first developer. So no older link can link another account later.
        With any other outcome, nothing is changed, and the invitation can be tried again. "not_first": the invitation
        is for the first developer, but a developer exists. "email_taken" and "identity_taken": another developer has
        that address or that messenger account. Linking another account to a developer ends that developer's console
        sessions.

        For an invitation with a `developer_id`, `developer` is the existing developer with the messenger account to
        link. `sign_in` is the sign-in that confirmed this account.
        """
