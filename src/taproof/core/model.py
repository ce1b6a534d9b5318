"""What the service keeps of projects and sessions, as frozen values.

Times are integer milliseconds since the Unix epoch (UTC). See also `accounts.py` and `deliveries.py`.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NamedTuple

from taproof.core.accounts import AuditEntry, Plan

Status = Literal["pending", "confirmed", "cancelled", "expired", "used"]
"""A session's state (service-spec.md, States and transitions)."""

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
class DeveloperSignIn:
    """A session by which a developer signed in to the service itself: where it is stored, and its id."""

    key: SessionKey
    id: str


@dataclass(frozen=True, slots=True)
class MessengerIdentity:
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
    identity: MessengerIdentity | None = None
    encrypted_phone: bytes | None = None
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
    encrypted_phone: bytes | None = None


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
    """A user who tapped Confirm and was asked for a contact. `encrypted_token` is the encrypted session token."""

    key: SessionKey
    session_id: str
    messenger_id: str
    bot_id: int
    encrypted_token: bytes
    asked_at: int
    expires_at: int


class NamedProject(NamedTuple):
    """A project as users know it. `project_name` is what the developer typed: show it through `core.names` only."""

    project_id: str
    project_name: str


class EncryptedWebhookSecrets(NamedTuple):
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
    identity: MessengerIdentity
    confirmed_at: int
    webhook_secrets: EncryptedWebhookSecrets
    used_at: int
    session_id: str = ""
    encrypted_phone: bytes | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """The unit that sessions are created under (service-spec.md, Project)."""

    id: str
    developer_id: str
    name: str
    secret_key_preview: str
    encrypted_webhook_secret: bytes
    webhook_url: str
    is_active: bool
    public_access: bool
    collect_phone: bool
    created_at: int
    sessions_count: int = 0
    confirmed_count: int = 0
    encrypted_next_webhook_secret: bytes | None = None
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
    def webhook_secrets(self) -> EncryptedWebhookSecrets:
        """The current webhook secret and, during a rotation, the next one."""
        return EncryptedWebhookSecrets(
            self.encrypted_webhook_secret, self.encrypted_next_webhook_secret, self.next_webhook_secret_at
        )


@dataclass(frozen=True, slots=True)
class ProjectChanges:
    """The fields that a developer sets. None leaves a field as it is, and in a new project at its default."""

    name: str | None = None
    webhook_url: str | None = None
    is_active: bool | None = None
    public_access: bool | None = None
    collect_phone: bool | None = None
    phone_required: bool | None = None
    show_context: bool | None = None
    match_code: bool | None = None
    allowed_origins: tuple[str, ...] | None = None

    def given(self) -> dict[str, Any]:
        """Return the fields that are not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


PROJECT_DEFAULTS: Final = ProjectChanges(
    webhook_url="",
    is_active=True,
    public_access=True,
    collect_phone=False,
    phone_required=True,
    show_context=True,
    match_code=False,
    allowed_origins=(),
)
"""What a new project has unless its developer sets it."""


@dataclass(frozen=True, slots=True)
class ProjectBot:
    """A bot of a project's own, with its encrypted token."""

    project_id: str
    bot_id: int
    username: str
    encrypted_token: bytes
    broken_at: int | None = None


class BotLoss(NamedTuple):
    """A project that loses its bot to another one, if the bot is broken; `entry` tells its developer.

    It stays broken, without a token: starting sign-ins in another bot is for its developer to choose.
    """

    project_id: str
    entry: AuditEntry


class BotChange(NamedTuple):
    """The bot that a project gets in the place of any other, None to take away its own; `entry` tells of it.

    `loss`: who has had the bot until now.
    """

    bot: ProjectBot | None
    entry: AuditEntry | None = None
    loss: BotLoss | None = None


@dataclass(frozen=True, slots=True)
class CheckedBot:
    """A bot whose token the messenger has just accepted; `loss` is the project that loses the bot."""

    id: int
    username: str
    token: str = field(repr=False)
    loss: BotLoss | None = None


class RemovedBot(NamedTuple):
    """A project's bot, which is to be taken away; `username` is None when the project has none."""

    username: str | None


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
