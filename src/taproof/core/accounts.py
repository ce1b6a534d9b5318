"""Developers, their credentials and their audit log, as frozen values. Times are as in `sessions.py`."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from taproof.contract.access_token import AccessScope
from taproof.contract.account import Plan
from taproof.contract.audit import AuditAction, Via
from taproof.contract.member import Role
from taproof.core.rights import FULL, SCOPES, Grant

NO_PHONES: Final = (
    "collect_phone is available on the pro and business plans, and this account is on the free plan. Keep it false, "
    "or ask the operator of this service for another plan."
)

InvitationOutcome = Literal["accepted", "gone", "email_taken", "identity_taken", "not_first"]
"""The result of accepting an invitation. "gone": the invitation does not exist, was accepted or has expired."""


@dataclass(frozen=True, slots=True)
class Developer:
    """An account that owns projects. `is_owner`: it can invite others.

    `messenger_id` is the messenger account used to sign in to the console; None until one is linked.
    """

    id: str
    email: str
    plan: Plan
    created_at: int
    is_owner: bool = False
    messenger_id: str | None = None
    messenger_name: str = ""


@dataclass(frozen=True, slots=True)
class Actor:
    """The developer who acts, the credential used, its grant, and the origin of the request.

    `via_id` is the id of the access token, console session or invitation; "" for any other `via`. `address` is an IP
    address; "" on the command line.
    """

    developer: Developer
    via: Via
    via_id: str = ""
    address: str = ""
    grant: Grant = FULL


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of a developer's audit log. Entries are never changed.

    `developer_id` is the developer whose log contains the entry. `actor` is an e-mail address, "command line" or
    "Taproof". `subject` is the id of the changed object. `details` is a JSON object, as text, without secrets.
    `project_id` is the changed project, whose members see the entry; "" if none was changed.
    """

    id: str
    developer_id: str
    created_at: int
    action: AuditAction
    actor: str
    via: Via
    via_id: str
    address: str
    subject: str
    details: str = "{}"
    project_id: str = ""


@dataclass(frozen=True, slots=True)
class AuditPurge:
    """The erased part of a developer's audit log: all entries before `before` (ms). `entries` is their number."""

    before: int
    entries: int
    purged_at: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """A one-time link that creates a developer or links a messenger account; only a hash of its code is stored.

    `email` is "" for an installation's first developer, who enters it when accepting. `developer_id` is the existing
    developer to whom another messenger account is linked; None to create a developer.
    """

    id: str
    email: str
    plan: Plan
    is_owner: bool
    developer_id: str | None
    invited_by: str
    created_at: int
    expires_at: int
    inviter_id: str | None = None
    sign_in: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A developer's membership in a project, with their current address and the inviter's ("" for the creator)."""

    project_id: str
    developer_id: str
    role: Role
    created_at: int
    invited_by: str
    email: str


@dataclass(frozen=True, slots=True)
class MemberInvitation:
    """A one-time link that makes a developer a member of a project; only a hash of its code is stored.

    `inviter_id`, `access_token_id` and `sign_in` are the inviter and their grant. The invitation ends with each of
    them, and with the inviter's right to invite.
    """

    id: str
    project_id: str
    role: Role
    created_at: int
    expires_at: int
    invited_by: str
    inviter_id: str
    access_token_id: str | None = None
    sign_in: str | None = None


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A console session, which belongs to one browser. Only a hash of its cookie is stored.

    `access_token_id` is the access token used to sign in; the session ends with it. `messenger_id` is the messenger
    account used to sign in; the session ends when the developer links another one. `user_agent` is the browser's
    User-Agent, cut to 200 characters. `scopes`, `expires_at` (ms) and `sign_in` are those of the session's grant.
    """

    id: str
    developer_id: str
    created_at: int
    last_seen_at: int
    access_token_id: str | None
    address: str
    user_agent: str
    messenger_id: str | None = None
    scopes: tuple[AccessScope, ...] = SCOPES
    expires_at: int | None = None
    sign_in: str | None = None

    @property
    def grant(self) -> Grant:
        """The rights of this credential."""
        return Grant(self.scopes, self.expires_at, self.access_token_id, self.sign_in)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A developer's Bearer token (RFC 6750) without its plaintext: only its SHA-256 is stored.

    `parent_id` is the id of the access token that created this one, if any. `sign_in`: see `Grant`.
    """

    id: str
    developer_id: str
    name: str
    preview: str
    created_at: int
    last_used_at: int | None = None
    expires_at: int | None = None
    scopes: tuple[AccessScope, ...] = SCOPES
    parent_id: str | None = None
    sign_in: str | None = None

    @property
    def grant(self) -> Grant:
        """The rights of this credential."""
        return Grant(self.scopes, self.expires_at, self.id, self.sign_in)


@dataclass(frozen=True, slots=True)
class EndedToken:
    """An access token that was revoked."""

    id: str
    developer_id: str
    name: str
    preview: str


class ProjectItem(NamedTuple):
    """A project's id, with the id of its member or invitation, or with its name."""

    project_id: str
    item: str


@dataclass(frozen=True, slots=True)
class EndedRights:
    """The credentials and rights that a reported sign-in ended.

    `invitations` and `developers` are ids. A developer who accepted an invitation created with the reported sign-in
    keeps the account, but can no longer sign in and is no longer an owner. `members` and `member_invitations` are
    memberships and open invitations that derive from the sign-in. `is_unbound`: the sign-in linked the developer's
    messenger account, which is now unlinked.
    """

    console_sessions: int
    tokens: tuple[EndedToken, ...]
    invitations: tuple[str, ...]
    developers: tuple[str, ...]
    is_unbound: bool
    members: tuple[ProjectItem, ...] = ()
    member_invitations: tuple[ProjectItem, ...] = ()


@dataclass(frozen=True, slots=True)
class RemovedDeveloper:
    """A removed developer, who was the only owner of `transferred` and `deleted`, and a member of `left`."""

    transferred: tuple[ProjectItem, ...]
    deleted: tuple[ProjectItem, ...]
    left: tuple[ProjectItem, ...]
    console_sessions: int
    tokens: int
