"""Projects and sessions, as frozen values.

Times are integer milliseconds since the Unix epoch (UTC). See also `accounts.py` and `deliveries.py`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, get_args

from taproof.contract.fields import UNSET, described, stored_settings
from taproof.contract.member import Role
from taproof.contract.project import ProjectEvent, ProjectUpdate, SameDevice, TurnOffReason
from taproof.core.accounts import Plan
from taproof.core.project_texts import ProjectTexts

Status = Literal["pending", "confirmed", "cancelled", "expired", "used"]
"""A session's state (service-spec.md, States and transitions)."""

Hint = Literal["waiting", "opened", "choosing", "phone_asked", "return", "unreachable"]
"""The next step of a pending session (contract.md, Hints).

"waiting": nobody has opened the link. "opened": the user may confirm. "choosing": the user may choose a match code.
"phone_asked": the user confirmed, and was asked for their phone number. "return": the user confirmed, and the return
code is missing. "unreachable": the user has blocked the bot.
"""
HINTS: Final[Mapping[str | None, Hint]] = {hint: hint for hint in get_args(Hint)}


def known_hint(stored: str | None) -> Hint:
    """Return a stored hint. None and a hint of a later release, which may use the same database, are "waiting"."""
    return HINTS.get(stored, "waiting")


SERVICE_DEVELOPER: Final = "dev_console"
"""The owner of the projects through which developers sign in to the service. No developer's id is as short."""

SERVICE_BOT: Final = 0
"""The bot id that stands for the service's own bot."""


class SessionKey(NamedTuple):
    """The storage key of a session: the UTC day in its token, and the SHA-256 of the token."""

    day: int
    token_hash: bytes


@dataclass(frozen=True, slots=True)
class DeveloperSignIn:
    """A session with which a developer signed in to the service itself: its storage key and its id."""

    key: SessionKey
    id: str


@dataclass(frozen=True, slots=True)
class MessengerIdentity:
    """The messenger account that confirmed. `messenger_username` is "" if the account has none.

    `messenger_phone` is in E.164 format; None unless the project collects it and the user shared it.
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
    """The user's phone number, encrypted for this session: see `service/phones.py`."""
    reported_at: int | None = None
    withdrawn: bool = False
    """True if the application cancelled the session, and not its user."""
    prompt: "PromptDetails | None" = field(default=None, compare=False)
    """Details that only the bot needs. Only `read_session` returns them."""


class FoundState(NamedTuple):
    """The state in which a guarded statement found a session. The fields are those of `Session`, as they are stored."""

    status: Status
    opener_id: str | None
    expires_at: int
    confirmed_at: int | None
    cancelled_at: int | None
    withdrawn: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The result of a guarded statement that changed nothing. It is false, where the result of a change is True.

    `found` is the reason: the state in which the statement itself found the session; None if there is no such session.
    """

    found: FoundState | None

    def __bool__(self) -> Literal[False]:
        return False


class NewPhone(NamedTuple):
    """A phone number to store with a confirmation, and the encrypted body that the event then has."""

    encrypted: bytes
    event_body: bytes


class PromptDetails(NamedTuple):
    """The details that the bot shows or requests before the user decides.

    `bot_id` is the only bot that may show the session and accept its decision. `context` is a JSON object; None if
    nothing is known. `match_choices` are three codes, of which `match_code` is the right one; both are None without
    match codes. `collect_phone` is true if the project collects phone numbers and its developer's plan allows it.
    `return_url` is the page to return to after Confirm, if there is one. `texts` is the project's own texts as JSON.
    `is_returning`: the user has confirmed, and the session waits for its return code. `is_blocked`: the user for whom
    the session was read has blocked its project.
    """

    bot_id: int = SERVICE_BOT
    context: str | None = None
    match_code: str | None = None
    match_choices: str | None = None
    collect_phone: bool = False
    phone_required: bool = True
    return_url: str | None = None
    return_required: bool = False
    texts: str = "{}"
    is_returning: bool = False
    is_blocked: bool = False


class SignInProject(NamedTuple):
    """The settings of a project that apply to a new session."""

    developer_id: str
    plan: Plan
    is_active: bool
    public_access: bool
    show_context: bool
    match_code: bool
    allowed_origins: str
    """Origins separated by spaces; "" allows any."""
    bot_id: int | None
    bot_username: str | None
    bot_broken_at: int | None
    requires_phone: bool = False
    same_device: SameDevice = "off"
    return_urls: str = ""
    """URLs separated by spaces."""


class PolledSession(NamedTuple):
    """The fields needed to answer a poll. It is a tuple for speed, since polls are the hottest path."""

    project_id: str
    public_access: bool
    status: Status
    expires_at: int
    code_challenge: bytes | None = None
    encrypted_phone: bytes | None = None
    hint: Hint | None = None
    """None stands for "waiting". It has no meaning once the session has left pending."""
    return_required: bool = False
    return_hash: bytes | None = None
    encrypted_webhook_secret: bytes | None = None
    encrypted_next_webhook_secret: bytes | None = None
    next_webhook_secret_at: int | None = None

    @property
    def webhook_secrets(self) -> "EncryptedWebhookSecrets | None":
        """The secrets of its project, from the last three fields; None unless the session is confirmed."""
        if self.encrypted_webhook_secret is None:
            return None
        return EncryptedWebhookSecrets(
            self.encrypted_webhook_secret, self.encrypted_next_webhook_secret, self.next_webhook_secret_at
        )


class ReturningUser(NamedTuple):
    """The user who confirmed a session that waits for its return code."""

    session_id: str
    identity: MessengerIdentity
    encrypted_phone: bytes | None = None


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to store as pending. If `code_challenge` (a SHA-256) is set, only the verifier's holder can read it."""

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
    return_url: str | None = None


class ReturnPolicy(NamedTuple):
    """The way back from a new session: `required` with its return code, or only `offered` by a button."""

    required: bool
    offered: bool


class ExpiredSession(NamedTuple):
    """A session that has just moved from pending to expired."""

    key: SessionKey
    id: str
    project_id: str
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class PhoneRequest:
    """A user who tapped Confirm and was asked to share a contact. `encrypted_token` is the encrypted session token."""

    key: SessionKey
    session_id: str
    messenger_id: str
    bot_id: int
    encrypted_token: bytes
    asked_at: int
    expires_at: int


class ShownPrompt(NamedTuple):
    """The latest message that shows a session to its owner, or that could not be sent (`message_id` is None).

    `language` is one of the bot's languages.
    """

    key: SessionKey
    bot_id: int
    messenger_id: str
    message_id: int | None
    language: str


class Renewal(NamedTuple):
    """The decision about a fresh message in place of the one that shows a session.

    "begun": it has to be sent now, in place of `message_id`. "sent": it is `message_id`, or another process is just
    sending it (None). "refused": the session has had too many, or does not wait for this account.
    """

    state: Literal["begun", "sent", "refused"]
    message_id: int | None = None


class EndedPrompt(NamedTuple):
    """A prompt of a session that its application cancelled. The message has to be edited by the claim's holder."""

    prompt: ShownPrompt
    leased_until: int


class NamedProject(NamedTuple):
    """A project's id and name. The developer chose `project_name`: show it only through `core.names`."""

    project_id: str
    project_name: str


class EncryptedWebhookSecrets(NamedTuple):
    """A project's encrypted webhook secrets. During a rotation there are two, until `next_at` (ms).

    `core.proof.signing_secrets` returns the ones that sign at a given time.
    """

    current: bytes
    next: bytes | None = None
    next_at: int | None = None


@dataclass(frozen=True, slots=True)
class ConsumedSession:
    """The data for the response and the proof, returned to the one call that moves a session from confirmed to used.

    With `used_at`, the same response and proof can be created again.
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
    """A project, to which sessions belong (service-spec.md, Project).

    `developer_id` is the owner whose plan and limits count. All members share the project: see `core.roles`.
    """

    id: str
    developer_id: str
    name: str
    secret_key_preview: str
    encrypted_webhook_secret: bytes
    webhook_url: str
    created_at: int
    is_active: bool
    public_access: bool
    collect_phone: bool
    phone_required: bool = True
    """Whether users must share their phone number to sign in. Ignored without `collect_phone`."""
    show_context: bool = True
    """Whether the prompt shows where the request came from."""
    match_code: bool = False
    sessions_count: int = 0
    confirmed_count: int = 0
    encrypted_next_webhook_secret: bytes | None = None
    next_webhook_secret_at: int | None = None
    webhook_failing_since: int | None = None
    """The time (ms) of the first failed attempt since the last success; None while the webhook works."""
    webhook_off_at: int | None = None
    webhook_off_reason: TurnOffReason | None = None
    webhook_off_url: str | None = None
    """The URL of the webhook that was turned off. `webhook_url` is "" from then on."""
    allowed_origins: tuple[str, ...] = ()
    """The origins of the pages that may start sign-ins. An empty tuple allows any."""
    bot_id: int | None = None
    bot_username: str | None = None
    bot_broken_at: int | None = None
    """The time (ms) since which the messenger has refused the project bot's token."""
    webhook_events: tuple[ProjectEvent, ...] = ("auth.confirmed", "auth.cancelled")
    """The events that are sent to `webhook_url`."""
    same_device: SameDevice = "off"
    """The policy for ending a sign-in in the browser in which it began."""
    return_urls: tuple[str, ...] = ()
    """URLs to which a sign-in may return, besides the pages of `allowed_origins`."""
    texts: ProjectTexts = field(default_factory=dict)
    """The project's own texts for its users: see `core.project_texts`."""
    logo_url: str = ""
    """The image that hosted pages show; "" for none."""
    plan: Plan | None = field(default=None, compare=False)
    """The plan of the developer `developer_id`; None if the project was not read for a member."""
    role: Role | None = field(default=None, compare=False)
    """The role of the member for whom the project was read; None if it was not read for a member."""

    @property
    def webhook_secrets(self) -> EncryptedWebhookSecrets:
        """The current webhook secret and, during a rotation, the next one."""
        return EncryptedWebhookSecrets(
            self.encrypted_webhook_secret, self.encrypted_next_webhook_secret, self.next_webhook_secret_at
        )


@dataclass(frozen=True, slots=True)
class ProjectChanges:
    """The fields that a developer can set. None leaves a field unchanged, or at its default in a new project."""

    name: str | None = None
    webhook_url: str | None = None
    is_active: bool | None = None
    public_access: bool | None = None
    collect_phone: bool | None = None
    phone_required: bool | None = None
    show_context: bool | None = None
    match_code: bool | None = None
    allowed_origins: tuple[str, ...] | None = None
    webhook_events: tuple[ProjectEvent, ...] | None = None
    same_device: SameDevice | None = None
    return_urls: tuple[str, ...] | None = None
    texts: ProjectTexts | None = None
    logo_url: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the fields that are not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def project_changes(settings: Mapping[str, Any]) -> ProjectChanges:
    """Return the changes to the given settings, whose values are those of the API."""
    values = stored_settings(settings)
    if "match_code" in values:
        values["match_code"] = values["match_code"] == "on"
    return ProjectChanges(**values)


PROJECT_DEFAULTS: Final = project_changes(
    {
        name: field.default
        for name, (_, field) in described(ProjectUpdate).items()
        if field.default is not UNSET and name != "bot_token"
    }
)
"""The default settings of a new project."""

PROJECT_FLAGS: Final = tuple(each.name for each in fields(ProjectChanges) if each.type == bool | None)
"""A project's boolean fields. Columns, forms and responses derive from this list."""


class PageCursor(NamedTuple):
    """The position of a page's last item in a list, newest first. The next page starts strictly after it."""

    created_at: int
    id: str
