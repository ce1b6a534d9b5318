"""Invitations: one-time links by which a developer comes in, and a messenger account is bound to one.

The link is `{base_url}/console/invite#inv_…`; its code is all that is needed, and only a hash of it is stored.
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import Final

from taproof.core.accounts import Actor, AuditEntry, Developer, Invitation, InvitationOutcome, Plan
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
from taproof.core.model import DeveloperSignIn, MessengerIdentity
from taproof.core.names import stored_text
from taproof.service.audit import audit_entry
from taproof.service.developers import checked_email
from taproof.storage.protocol import Storage

FIRST_LIFETIME: Final = DAY
"""How long (ms) the invitation of the first developer is valid: whoever starts the service is about to use it."""
LIFETIME: Final = 7 * DAY
"""How long (ms) any other invitation is valid."""
INVITATION_LIMIT: Final = 200
"""Invitations of an installation that wait at once: they are listed on one page."""
_INVITATION_ID: Final = re.compile(r"invite_[A-Za-z0-9]{1,40}")
_REFUSALS: Final[dict[InvitationOutcome, type[TaproofError]]] = {
    "gone": InvitationNotFound,
    "email_taken": DeveloperExists,
    "identity_taken": IdentityTaken,
    "not_first": NotTheFirst,
}


@dataclass(frozen=True, slots=True)
class CreatedInvitation:
    """A new invitation; `code` is never to be had again."""

    invitation: Invitation
    code: str


class Invitations:
    """Makes, lists, revokes and takes up invitations."""

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    async def invite_first(self) -> str | None:
        """Return the code of an invitation for the first developer, an owner; None when there is a developer.

        Of any number of such invitations one makes the first developer, and the others are worth nothing then.
        """
        if await self._storage.developers.list_developers():
            return None
        # Who runs the installation is not to be held back by a plan that they themselves would have to change.
        invitation = self._new("", "business", is_owner=True, developer_id=None, inviter=None, lifetime=FIRST_LIFETIME)
        return (await self._create(invitation, None)).code

    async def invite_developer(
        self, actor: Actor | None, email: str, *, plan: Plan = "free", is_owner: bool = False
    ) -> CreatedInvitation:
        """Invite somebody who is no developer yet; `actor` is None on the command line.

        Raises:
            OwnerOnly: who acts is no owner.
            MessengerOnly: who acts does so by an access token: a leaked one must not leave other ways in behind.
            InvalidRequest: not an e-mail address, or `INVITATION_LIMIT` invitations wait already.
            DeveloperExists: the address is a developer's.
        """
        if actor is not None:
            _require_owner(actor.developer)
            _require_messenger(actor)
        email = checked_email(email)
        if await self._storage.developers.read_developer(email) is not None:
            raise DeveloperExists
        if len(await self._storage.developers.list_invitations(self._clock())) >= INVITATION_LIMIT:
            raise InvalidRequest(
                f"There are {INVITATION_LIMIT} invitations that nobody has taken up yet. Revoke some, or wait until "
                "their time is over."
            )
        invitation = self._new(email, plan, is_owner=is_owner, developer_id=None, inviter=actor, lifetime=LIFETIME)
        return await self._create(invitation, actor)

    async def invite_again(self, actor: Actor, developer: Developer) -> CreatedInvitation:
        """Invite a developer who is there to bind a messenger account, which takes the place of any before.

        Whoever has the link can sign in as that developer, so only the operator may do this, or the service itself.

        Raises:
            OwnerOnly: who acts does so by any other way.
        """
        if actor.via not in {"command_line", "service"}:
            raise OwnerOnly(
                "Only the operator of this installation may do this (with: taproof developers invite EMAIL)."
            )
        invitation = self._new(
            developer.email,
            developer.plan,
            is_owner=developer.is_owner,
            developer_id=developer.id,
            inviter=None,
            lifetime=LIFETIME,
        )
        return await self._create(invitation, dataclasses.replace(actor, developer=developer))

    async def read_invitation(self, code: str) -> Invitation:
        """Return the invitation of a code.

        Raises:
            InvitationNotFound: unknown, taken up, revoked, or its time is over.
        """
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
        """Take up an invitation, once: make the developer, or bind the messenger account to the one who is there.

        Args:
            code: the invitation's.
            identity: who confirmed in the messenger.
            email: the address of the first developer, whose invitation has none.
            address: the IP address that this comes from, for the audit log.
            sign_in: by which they confirmed.

        Raises:
            AccessDenied: the sign-in was reported.
            InvitationNotFound, DeveloperExists, IdentityTaken, NotTheFirst, InvalidRequest: and nothing is changed.
        """
        invitation = await self.read_invitation(code)
        now = self._clock()
        name = stored_text(identity.messenger_name)
        if invitation.developer_id is None:
            developer = Developer(
                new_id("dev", self._entropy),
                checked_email(invitation.email or email),
                invitation.plan,
                now,
                invitation.is_owner,
                identity.messenger_id,
                name,
            )
        else:
            invited = await self._invited(invitation)
            developer = dataclasses.replace(invited, messenger_id=identity.messenger_id, messenger_name=name)
        entry = self._acceptance(invitation, developer, now, address)
        outcome = await self._storage.developers.accept_invitation(
            key_hash(code), developer, now, sign_in=sign_in, entry=entry
        )
        if outcome != "accepted":
            raise _REFUSALS[outcome]
        return developer

    async def list_invitations(self, developer: Developer) -> list[Invitation]:
        """Return the invitations that can be taken up, newest first, but for those of a first developer.

        Raises:
            OwnerOnly: who asks is no owner.
        """
        _require_owner(developer)
        return await self._storage.developers.list_invitations(self._clock())

    async def revoke_invitation(self, actor: Actor, invitation_id: str) -> None:
        """Revoke an invitation at once.

        Raises:
            OwnerOnly: who acts is no owner.
            InvitationNotFound: there is no such invitation.
        """
        _require_owner(actor.developer)
        _require_messenger(actor)
        entry = audit_entry(actor, "invitation.revoked", self._clock(), self._entropy, subject=invitation_id)
        if _INVITATION_ID.fullmatch(invitation_id) is None or not await self._storage.developers.delete_invitation(
            invitation_id, entry=entry
        ):
            raise InvitationNotFound("There is no such invitation: it was used or revoked, or its time is over.")

    def _new(
        self, email: str, plan: Plan, *, is_owner: bool, developer_id: str | None, inviter: Actor | None, lifetime: int
    ) -> Invitation:
        now = self._clock()
        return Invitation(
            new_id("invite", self._entropy),
            email,
            plan,
            is_owner,
            developer_id,
            "" if inviter is None else inviter.developer.email,
            now,
            now + lifetime,
            None if inviter is None else inviter.developer.id,
            None if inviter is None else inviter.grant.sign_in,
        )

    async def _create(self, invitation: Invitation, actor: Actor | None) -> CreatedInvitation:
        """Store an invitation; without an actor there is no log that it could be noted in."""
        code = new_key("inv", self._entropy)
        entry = None
        if actor is not None:
            details = {"email": invitation.email, "plan": invitation.plan, "is_owner": invitation.is_owner}
            entry = audit_entry(
                actor,
                "developer.invited",
                invitation.created_at,
                self._entropy,
                subject=invitation.id,
                details=details,
            )
        await self._storage.developers.create_invitation(invitation, key_hash(code), entry=entry)
        return CreatedInvitation(invitation, code)

    async def _invited(self, invitation: Invitation) -> Developer:
        """Return the developer that an invitation binds a messenger account to."""
        developer = await self._storage.developers.read_developer(invitation.email)
        if developer is None or developer.id != invitation.developer_id:
            raise InvitationNotFound
        return developer

    def _acceptance(self, invitation: Invitation, developer: Developer, now: int, address: str) -> AuditEntry:
        actor = Actor(developer, "invitation", invitation.id, address)
        messenger = {"messenger_id": developer.messenger_id, "messenger_name": developer.messenger_name}
        if invitation.developer_id is not None:
            return audit_entry(
                actor, "developer.identity_bound", now, self._entropy, subject=developer.id, details=messenger
            )
        details = {
            "email": developer.email,
            "plan": developer.plan,
            "is_owner": developer.is_owner,
            "invited_by": invitation.invited_by,
            **messenger,
        }
        return audit_entry(actor, "developer.created", now, self._entropy, subject=developer.id, details=details)


def _require_owner(developer: Developer) -> None:
    if not developer.is_owner:
        raise OwnerOnly


def _require_messenger(actor: Actor) -> None:
    if actor.grant.access_token_id is not None:
        raise MessengerOnly
