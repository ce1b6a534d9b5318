"""Invitations: one-time links that create a developer, or link a messenger account to an existing one.

The link is `{base_url}/console/invite#inv_…`. Anyone with the code can use the link; only a hash of the code is stored.
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import Final

from taproof.contract.account import Plan
from taproof.contract.audit import AuditAction
from taproof.core.accounts import Actor, AuditEntry, Developer, Invitation, InvitationOutcome
from taproof.core.clock import DAY, Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    DeveloperExists,
    IdentityTaken,
    InvalidRequest,
    InvitationNotFound,
    MessengerOnly,
    NotTheFirst,
    OwnerOnly,
    TaproofError,
)
from taproof.core.identifiers import is_key, key_hash, new_id, new_key
from taproof.core.identity import MessengerIdentity
from taproof.core.names import stored_text
from taproof.core.sessions import DeveloperSignIn
from taproof.service.audit import audit_entry
from taproof.service.developers import checked_email
from taproof.storage.protocol import Storage

FIRST_LIFETIME: Final = DAY
"""The lifetime (ms) of the first developer's invitation. It is short, because the operator uses it right away."""
LIFETIME: Final = 7 * DAY
"""The lifetime (ms) of any other invitation."""
INVITATION_LIMIT: Final = 200
"""The maximum number of open invitations in an installation: one page lists them all."""
_INVITATION_ID: Final = re.compile(r"invite_[A-Za-z0-9]{1,40}")
_REFUSALS: Final[dict[InvitationOutcome, type[TaproofError]]] = {
    "gone": InvitationNotFound,
    "email_taken": DeveloperExists,
    "identity_taken": IdentityTaken,
    "not_first": NotTheFirst,
}


@dataclass(frozen=True, slots=True)
class CreatedInvitation:
    """A new invitation. `code` cannot be retrieved later."""

    invitation: Invitation
    code: str


class Invitations:
    """Creates, lists, revokes and accepts invitations."""

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    async def invite_first(self) -> str | None:
        """Return the code of an invitation for the first developer, an owner; None if a developer exists.

        Several such invitations may be open. Accepting one creates the developer and invalidates the others.
        """
        if await self._storage.developers.list_developers():
            return None
        # The operator could change the plan anyway, so it should not limit them.
        invitation = self._new("", "business", is_owner=True, lifetime=FIRST_LIFETIME)
        return (await self._create(invitation, None)).code

    async def invite_developer(
        self, actor: Actor | None, email: str, *, plan: Plan = "free", is_owner: bool = False
    ) -> CreatedInvitation:
        """Invite a person who is not a developer yet; `actor` is None on the command line.

        Raises:
            OwnerOnly: `actor` is not an owner.
            MessengerOnly: the rights of `actor` derive from an access token. A leaked token must not invite anyone.
            InvalidRequest: `email` is not an e-mail address, or `INVITATION_LIMIT` invitations are open.
            DeveloperExists: a developer has this address.
        """
        if actor is not None:
            _require_owner(actor.developer)
            _require_messenger(actor)
        email = checked_email(email)
        if await self._storage.developers.read_developer(email) is not None:
            raise DeveloperExists
        if len(await self._storage.developers.list_invitations(self._clock())) >= INVITATION_LIMIT:
            raise InvalidRequest(
                f"There are {INVITATION_LIMIT} invitations that have not been accepted yet. Revoke some, or wait until "
                "they expire."
            )
        invitation = self._new(email, plan, is_owner=is_owner, inviter=actor)
        return await self._create(invitation, actor)

    async def invite_again(self, actor: Actor, developer: Developer) -> CreatedInvitation:
        """Invite an existing developer to link a messenger account, which replaces the current one.

        The link lets its holder sign in as that developer, so only the operator or the service itself may create it.
        Others get OwnerOnly.
        """
        if actor.via not in {"command_line", "service"}:
            raise OwnerOnly(
                "Only the operator of this installation can do this (with: taproof developers invite EMAIL)."
            )
        invitation = self._new(developer.email, developer.plan, is_owner=developer.is_owner, developer_id=developer.id)
        return await self._create(invitation, dataclasses.replace(actor, developer=developer))

    async def read_invitation(self, code: str) -> Invitation:
        """Return the invitation with this code, or raise InvitationNotFound if it is not open."""
        found = None
        if is_key(code, "inv"):
            found = await self._storage.developers.read_invitation(key_hash(code), self._clock())
        if found is None:
            raise InvitationNotFound
        return found

    async def accept_invitation(
        self,
        code: str,
        identity: MessengerIdentity,
        *,
        email: str = "",
        address: str,
        sign_in: DeveloperSignIn | None = None,
    ) -> Developer:
        """Accept an invitation: create the developer, or link the messenger account to the existing developer.

        Args:
            code: the invitation's code.
            identity: the messenger account that confirmed.
            email: the e-mail address of the first developer, whose invitation contains none.
            address: the client's IP address, for the audit log.
            sign_in: the sign-in that `identity` confirmed.

        Raises:
            AccessDenied: the sign-in was reported; nothing is changed.
            InvitationNotFound, DeveloperExists, IdentityTaken, NotTheFirst, InvalidRequest: nothing is changed.
        """
        invitation = await self.read_invitation(code)
        now = self._clock()
        name = stored_text(identity.messenger_name)
        if invitation.developer_id is None:
            developer = Developer(
                id=new_id("dev", self._entropy),
                email=checked_email(invitation.email or email),
                plan=invitation.plan,
                created_at=now,
                is_owner=invitation.is_owner,
                messenger_id=identity.messenger_id,
                messenger_name=name,
            )
        else:
            invited = await self._storage.developers.read_developer(invitation.email)
            if invited is None or invited.id != invitation.developer_id:
                raise InvitationNotFound
            developer = dataclasses.replace(invited, messenger_id=identity.messenger_id, messenger_name=name)
        entry = self._acceptance(invitation, developer, now, address)
        outcome = await self._storage.developers.accept_invitation(
            key_hash(code), developer, now, sign_in=sign_in, entry=entry
        )
        if outcome != "accepted":
            raise _REFUSALS[outcome]
        return developer

    async def list_invitations(self, developer: Developer) -> list[Invitation]:
        """Return the open invitations, newest first, except those for a first developer.

        Raise OwnerOnly unless the developer is an owner.
        """
        _require_owner(developer)
        return await self._storage.developers.list_invitations(self._clock())

    async def delete_invitation(self, actor: Actor, invitation_id: str) -> None:
        """Revoke an invitation.

        Raises:
            OwnerOnly, MessengerOnly: as for `invite_developer`.
            InvitationNotFound: there is no such invitation.
        """
        _require_owner(actor.developer)
        _require_messenger(actor)
        entry = audit_entry(actor, "invitation.revoked", self._clock(), self._entropy, subject=invitation_id)
        if _INVITATION_ID.fullmatch(invitation_id) is None or not await self._storage.developers.delete_invitation(
            invitation_id, entry=entry
        ):
            raise InvitationNotFound("There is no such invitation: it was used, was revoked or has expired.")

    def _new(
        self,
        email: str,
        plan: Plan,
        *,
        is_owner: bool,
        developer_id: str | None = None,
        inviter: Actor | None = None,
        lifetime: int = LIFETIME,
    ) -> Invitation:
        now = self._clock()
        return Invitation(
            id=new_id("invite", self._entropy),
            email=email,
            plan=plan,
            is_owner=is_owner,
            developer_id=developer_id,
            invited_by="" if inviter is None else inviter.developer.email,
            created_at=now,
            expires_at=now + lifetime,
            inviter_id=None if inviter is None else inviter.developer.id,
            sign_in=None if inviter is None else inviter.grant.sign_in,
        )

    async def _create(self, invitation: Invitation, actor: Actor | None) -> CreatedInvitation:
        """Store an invitation. Without an actor, no audit log entry is written."""
        code = new_key("inv", self._entropy)
        entry = None
        if actor is not None:
            now = invitation.created_at
            details = {"email": invitation.email, "plan": invitation.plan, "is_owner": invitation.is_owner}
            entry = audit_entry(actor, "developer.invited", now, self._entropy, subject=invitation.id, details=details)
        await self._storage.developers.create_invitation(invitation, key_hash(code), entry=entry)
        return CreatedInvitation(invitation, code)

    def _acceptance(self, invitation: Invitation, developer: Developer, now: int, address: str) -> AuditEntry:
        actor = Actor(developer, "invitation", invitation.id, address)
        action: AuditAction = "developer.identity_bound"
        details: dict[str, object] = {}
        if invitation.developer_id is None:
            action = "developer.created"
            details = {"email": developer.email, "plan": developer.plan, "is_owner": developer.is_owner}
            details["invited_by"] = invitation.invited_by
        details |= {"messenger_id": developer.messenger_id, "messenger_name": developer.messenger_name}
        return audit_entry(actor, action, now, self._entropy, subject=developer.id, details=details)


def _require_owner(developer: Developer) -> None:
    if not developer.is_owner:
        raise OwnerOnly


def _require_messenger(actor: Actor) -> None:
    if actor.grant.access_token_id is not None:
        raise MessengerOnly
