"""What the service keeps, as frozen values. Times are integer milliseconds since the Unix epoch (UTC)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Status = Literal["pending", "confirmed", "cancelled", "expired", "used"]
"""A session's state (service-spec.md, States and transitions)."""

Plan = Literal["free", "pro", "business"]
EventType = Literal["auth.confirmed", "auth.cancelled", "webhook.test"]
DeliveryState = Literal["due", "delivered", "failed", "ended"]
"""What became of an event: still to be sent, taken by the receiver, given up after the last retry (dead letter), or
ended because its webhook was removed or turned off."""
Via = Literal["access_token", "console", "login", "command_line", "service"]
"""How somebody acted: through the API, in the console, with `taproof login` (the messenger alone, from a terminal), on
the operator's command line, or it was the service itself."""
AuditAction = Literal[
    "developer.created",
    "developer.invited",
    "developer.identity_bound",
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
]
"""What an entry of the audit log says was done."""
InvitationOutcome = Literal["accepted", "gone", "email_taken", "identity_taken", "not_first"]
"""What became of taking up an invitation. "gone": there is none, it was taken up already, or its time is over."""
SERVICE_DEVELOPER: Final = "dev_console"
"""Whose the projects are through which the service uses itself: too short for the id of any developer."""
SERVICE_BOT: Final = 0
"""What stands for the service's own bot where the id of a project's own bot would stand."""
TurnOffReason = Literal["gone", "failing"]
"""Why a webhook was turned off: its receiver answered 410 Gone, or nothing but failures for five days."""


class SessionKey(NamedTuple):
    """Where a session is stored: the UTC day that its token carries, and the SHA-256 of the token."""

    day: int
    token_hash: bytes


@dataclass(frozen=True, slots=True)
class Identity:
    """Who confirmed: the messenger's own account data. `messenger_username` is "" when there is none.

    `messenger_phone` is in E.164 form, and None unless the project collects it and the user gave it.
    """

    messenger_id: str
    messenger_name: str
    messenger_username: str
    messenger_phone: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One authentication attempt, with the fields of its project that every reader of a session needs."""

    key: SessionKey
    id: str
    project_id: str
    project_name: str
    status: Status
    created_at: int
    expires_at: int
    opened_at: int | None = None
    opener_id: str | None = None
    confirmed_at: int | None = None
    cancelled_at: int | None = None
    used_at: int | None = None
    identity: Identity | None = None
    sealed_phone: bytes | None = None
    """The phone number that the identity goes with, encrypted for this session: see `service/phones.py`."""
    reported_at: int | None = None
    prompt: "PromptDetails | None" = field(default=None, compare=False)
    """What only the bot needs: `Storage.read_session` alone gives it."""


class PromptDetails(NamedTuple):
    """What the bot shows and asks before a session is decided.

    `bot_id`: the one bot that may show it and take its decision. `context`: a JSON object, None when there is nothing
    to tell. `match_choices`: three codes, of which `match_code` is the right one; None when the project has no match
    codes. `collect_phone`: whether the project does, and its developer's plan has it.
    """

    bot_id: int = SERVICE_BOT
    context: str | None = None
    match_code: str | None = None
    match_choices: str | None = None
    collect_phone: bool = False
    phone_required: bool = True


class SignInProject(NamedTuple):
    """What a project has to say about a new session."""

    developer_id: str
    plan: Plan
    is_active: bool
    public_access: bool
    show_context: bool
    match_code: bool
    allowed_origins: str
    """Origins with a space between them; "" is any."""
    bot_id: int | None
    bot_username: str | None
    bot_broken_at: int | None


class PolledSession(NamedTuple):
    """The least that answers a poll: read on the hottest path, so it is a tuple."""

    project_id: str
    public_access: bool
    status: Status
    expires_at: int
    code_challenge: bytes | None = None
    sealed_phone: bytes | None = None


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be stored as pending; with a `code_challenge`, a SHA-256, who has its verifier alone reads it."""

    key: SessionKey
    id: str
    project_id: str
    created_at: int
    expires_at: int
    code_challenge: bytes | None = None
    bot_id: int = SERVICE_BOT
    context: str | None = None
    match_code: str | None = None
    match_choices: str | None = None


@dataclass(frozen=True, slots=True)
class PhoneRequest:
    """A user who tapped Confirm and was asked for their contact; `sealed_token` is the session's token, encrypted."""

    key: SessionKey
    session_id: str
    messenger_id: str
    bot_id: int
    sealed_token: bytes
    asked_at: int
    expires_at: int


class NamedProject(NamedTuple):
    """A project as users know it. `project_name` is what the developer typed: show it through `core.names` only."""

    project_id: str
    project_name: str


class SealedWebhookSecrets(NamedTuple):
    """A project's webhook secrets as they are stored. During a rotation there are two, until `next_at` (ms)."""

    current: bytes
    next: bytes | None = None
    next_at: int | None = None

    def at(self, now: int) -> tuple[bytes, bytes | None]:
        """Return the secret that proofs and webhooks are signed with at `now`, and the one that will follow it.

        The second one is signed with beside the first (service `webhooks.py`). Once `next_at` has come it is the only
        one, whether or not anything has written that down.
        """
        if self.next is None or self.next_at is None:
            return self.current, None
        return (self.next, None) if self.next_at <= now else (self.current, self.next)


@dataclass(frozen=True, slots=True)
class ConsumedSession:
    """What the one reader that moved a session from confirmed to used gets, to build the answer and the proof.

    `used_at`: when that was, so that the same answer and proof can be made again.
    """

    project_id: str
    identity: Identity
    confirmed_at: int
    webhook_secrets: SealedWebhookSecrets
    used_at: int
    session_id: str = ""
    sealed_phone: bytes | None = None


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

    `via_id` is the id of the access token or of the console session, "" for any other `via`; `address` an IP address,
    "" on the command line.
    """

    developer: Developer
    via: Via
    via_id: str = ""
    address: str = ""


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


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A browser that is signed in to the console; only a hash of its cookie is stored.

    `access_token_id`: the access token that it was signed in with, and that it ends with. `messenger_id`: the account
    that signed in, when it was the messenger; it ends when another one is bound to the developer. `user_agent` is what
    the browser called itself, cut to 200 characters.
    """

    id: str
    developer_id: str
    created_at: int
    last_seen_at: int
    access_token_id: str | None
    address: str
    user_agent: str
    messenger_id: str | None = None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A developer's Bearer token, without its plaintext: only the SHA-256 of it is stored."""

    id: str
    developer_id: str
    name: str
    preview: str
    created_at: int
    last_used_at: int | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """The unit that sessions are created under (service-spec.md, Project)."""

    id: str
    developer_id: str
    name: str
    secret_key_preview: str
    sealed_webhook_secret: bytes
    webhook_url: str
    is_active: bool
    public_access: bool
    collect_phone: bool
    created_at: int
    sessions_count: int = 0
    confirmed_count: int = 0
    sealed_next_webhook_secret: bytes | None = None
    next_webhook_secret_at: int | None = None
    webhook_failing_since: int | None = None
    """When the first attempt failed since when none has succeeded; None while the webhook works."""
    webhook_off_at: int | None = None
    webhook_off_reason: TurnOffReason | None = None
    webhook_off_url: str | None = None
    """Where the webhook led that was turned off: `webhook_url` is "" since then."""
    phone_required: bool = True
    """Whether who does not give their phone number is not signed in; of no effect without `collect_phone`."""
    show_context: bool = True
    """Whether the prompt tells where the request came from."""
    match_code: bool = False
    allowed_origins: tuple[str, ...] = ()
    """The origins of the pages that may start sign-ins; any when there are none."""
    bot_id: int | None = None
    bot_username: str | None = None
    bot_broken_at: int | None = None
    """Since when the messenger refuses the token of the project's own bot."""

    @property
    def webhook_secrets(self) -> SealedWebhookSecrets:
        """The current webhook secret and, during a rotation, the next one."""
        return SealedWebhookSecrets(
            self.sealed_webhook_secret, self.sealed_next_webhook_secret, self.next_webhook_secret_at
        )


@dataclass(frozen=True, slots=True)
class ProjectChanges:
    """The fields of a PATCH; None leaves a field as it is."""

    name: str | None = None
    webhook_url: str | None = None
    is_active: bool | None = None
    public_access: bool | None = None
    collect_phone: bool | None = None
    phone_required: bool | None = None
    show_context: bool | None = None
    match_code: bool | None = None
    allowed_origins: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ProjectBot:
    """A bot of a project's own, with its sealed token."""

    project_id: str
    bot_id: int
    username: str
    sealed_token: bytes
    broken_at: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A webhook event to be recorded in the transaction of the decision that causes it.

    `sealed_body` is the exact body that will be sent, encrypted: it holds the session token, of which nothing
    but a hash may lie in the store.
    """

    id: str
    type: EventType
    project_id: str
    sealed_body: bytes
    created_at: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A claimed event with what is needed to send it. The claim is a lease that ends at `leased_until`.

    `attempt` is the number that this attempt has, from 1; `stage` how many attempts were made before it since the
    event was recorded or last resent: where the schedule of retries stands. `endpoint_fails` is what every process
    knows of the endpoint: nothing has succeeded there since an attempt failed.
    """

    event: Event
    developer_id: str
    webhook_url: str
    webhook_secrets: SealedWebhookSecrets
    attempt: int
    stage: int
    leased_until: int
    endpoint_fails: bool

    @property
    def is_resent(self) -> bool:
        """Whether this is the first attempt since a developer asked for the event to be sent again."""
        return self.stage == 0 and self.attempt > 1


class PassedOver(NamedTuple):
    """Whose due events are not claimed: those of `projects`, and of `developers` those of all projects but `spared`."""

    projects: Sequence[str] = ()
    developers: Sequence[str] = ()
    spared: Sequence[str] = ()


NOBODY: Final = PassedOver()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver an event.

    `started_at` and `duration` in ms; `status` is the receiver's HTTP status, None when there was no answer; `error` a
    code of `core/attempt_errors.py`, None when there was one. `sealed_answer` is the beginning of the answer's body,
    encrypted since a receiver may send back what it was sent.
    """

    number: int
    started_at: int
    duration: int
    status: int | None
    error: str | None
    sealed_answer: bytes | None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """What a developer may see of an event's delivery.

    `due_at`: when the next attempt is made, while `state` is "due"; `leased_until`: until when a worker holds it, 0
    when none does. `interrupted` attempts were begun by a worker that ended before it could write down their outcome.
    `session_id`: the session whose decision the event tells of; None for a test, and for events of older releases.
    """

    event_id: str
    project_id: str
    type: EventType
    created_at: int
    state: DeliveryState
    due_at: int
    leased_until: int
    finished_at: int | None
    interrupted: int
    session_id: str | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class DailyCounts:
    """What became of the sessions that were created on one UTC day, for one project."""

    project_id: str
    day: int
    requested: int = 0
    opened: int = 0
    confirmed: int = 0
    used: int = 0
    cancelled: int = 0
    expired: int = 0
    unique_users: int = 0
    latest_users: int = 0
    reported: int = 0
    """Sessions of that day whose user said that it was not them."""


@dataclass(frozen=True, slots=True)
class DailyUsers:
    """Distinct users of one UTC day, over all projects of a developer.

    `unique_users` confirmed on that day; `latest_users` confirmed on that day and on no later one, so that the
    sum of `latest_users` from a day onwards is the number of distinct users since that day.
    """

    day: int
    unique_users: int
    latest_users: int


class PageCursor(NamedTuple):
    """Where a page, newest first, ended: the next one starts strictly after this item."""

    created_at: int
    id: str
