"""Developers and all by which they are recognised and remembered, as frozen values. Times are as in `model.py`."""

from dataclasses import dataclass
from typing import Literal

from taproof.core.rights import FULL, SCOPES, Grant, Scope

Plan = Literal["free", "pro", "business"]

Via = Literal["access_token", "console", "login", "invitation", "command_line", "service"]
"""How somebody acted: through the API, in the console, with `taproof login` (the messenger alone, from a terminal), by
taking up an invitation, on the operator's command line, or it was the service itself."""

AuditAction = Literal[
    "developer.created",
    "developer.invited",
    "developer.identity_bound",
    "developer.identity_unbound",
    "developer.shut_out",
    "invitation.revoked",
    "console.signed_in",
    "console.signed_out",
    "console.session_revoked",
    "console.signed_out_everywhere",
    "access_token.created",
    "access_token.revoked",
    "project.created",
    "project.updated",
    "project.secrets_regenerated",
    "project.deleted",
    "webhook_secret.rotated",
    "webhook_secret.promoted",
    "webhook_secret.revealed",
    "webhook.turned_off",
    "delivery.resent",
    "developer.plan_changed",
    "bot.set",
    "bot.removed",
    "bot.broken",
    "user.erased",
    "audit.purged",
]
"""What an entry of the audit log says was done."""

InvitationOutcome = Literal["accepted", "gone", "email_taken", "identity_taken", "not_first"]
"""What became of taking up an invitation. "gone": there is none, it was taken up already, or its time is over."""


@dataclass(frozen=True, slots=True)
class Developer:
    """An account that owns projects.

    An owner may invite others. `messenger_id` is the messenger account that signs in to the console, None as long as
    none was bound.
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
    """Who does something: the developer, how they were recognised, and where the request came from.

    `via_id` is the id of the access token, the console session or the invitation, "" for any other `via`; `address` an
    IP address, "" on the command line. `grant`: what the acting credential may do.
    """

    developer: Developer
    via: Via
    via_id: str = ""
    address: str = ""
    grant: Grant = FULL


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of a developer's audit log; it is written once and never changed.

    `developer_id`: whose log it is in. `actor`: who did it: an e-mail address, "command line" or "Taproof". `subject`:
    the id of what was changed. `details`: a JSON object, as text, that never holds a secret.
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


@dataclass(frozen=True, slots=True)
class AuditPurge:
    """Erased entries of a developer's audit log: every one made before `before` (ms), `entries` of them ever."""

    before: int
    entries: int
    purged_at: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """A one-time link that makes a developer, or binds a messenger account to one; only a hash of its code is stored.

    `email` is "" for the first developer of an installation, who says theirs. `developer_id`: the developer that is
    there already and gets another messenger account; None to make a new one.
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
class ConsoleSession:
    """A browser that is signed in to the console; only a hash of its cookie is stored.

    `access_token_id`: the access token that it was signed in with, and that it ends with. `messenger_id`: the account
    that signed in, when it was the messenger; it ends when another one is bound to the developer. `user_agent` is what
    the browser called itself, cut to 200 characters. `scopes`, `expires_at` (ms) and `sign_in` are those of its grant.
    """

    id: str
    developer_id: str
    created_at: int
    last_seen_at: int
    access_token_id: str | None
    address: str
    user_agent: str
    messenger_id: str | None = None
    scopes: tuple[Scope, ...] = SCOPES
    expires_at: int | None = None
    sign_in: str | None = None

    @property
    def grant(self) -> Grant:
        """Its rights."""
        return Grant(self.scopes, self.expires_at, self.access_token_id, self.sign_in)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A developer's Bearer token, without its plaintext: only the SHA-256 of it is stored.

    `parent_id`: the access token that it was created with; None if it was created otherwise. `sign_in`: see `Grant`.
    """

    id: str
    developer_id: str
    name: str
    preview: str
    created_at: int
    last_used_at: int | None = None
    expires_at: int | None = None
    scopes: tuple[Scope, ...] = SCOPES
    parent_id: str | None = None
    sign_in: str | None = None

    @property
    def grant(self) -> Grant:
        """Its rights."""
        return Grant(self.scopes, self.expires_at, self.id, self.sign_in)


@dataclass(frozen=True, slots=True)
class EndedToken:
    """An access token that was revoked."""

    id: str
    developer_id: str
    name: str
    preview: str


@dataclass(frozen=True, slots=True)
class EndedRights:
    """Credentials and access that the report of a sign-in ended.

    `console_sessions`: how many of the developer's. `invitations` and `developers`: their ids. A developer who came by
    an invitation of the reported sign-in keeps the account, but nothing signs them in and they are no owner.
    `is_unbound`: whether the sign-in had bound the developer's messenger account, which it no longer is.
    """

    console_sessions: int
    tokens: tuple[EndedToken, ...]
    invitations: tuple[str, ...]
    developers: tuple[str, ...]
    is_unbound: bool
