"""Sign-in sessions, as frozen values. Times are integer milliseconds since the Unix epoch (UTC)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

from taproof.contract.session import SignInStatus
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import EncryptedWebhookSecrets
from taproof.core.service_bot import SERVICE_BOT

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


class SessionKey(NamedTuple):
    """The storage key of a session: the UTC day in its token, and the SHA-256 of the token."""

    day: int
    token_hash: bytes


@dataclass(frozen=True, slots=True)
class DeveloperSignIn:
    """A session with which a developer signed in to the service itself: its storage key and its id."""

    key: SessionKey
    id: str


class PromptDetails(NamedTuple):
    """The details that the bot shows or requests before the user decides.

    `bot_id` is the only bot that may show the session and accept its decision. `context` is a JSON object; None if
    nothing is known. `match_choices` are three codes, of which `match_code` is the right one; both are None without
    match codes. `collect_phone`: the project collects phone numbers, and its developer's plan allows it. `return_url`
    is the page to return to after Confirm, if any. `texts` is the project's own texts as JSON. `is_returning`: the user
    has confirmed, and the session waits for its return code. `is_blocked`: the user for whom the session was read has
    blocked its project.
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


@dataclass(frozen=True, slots=True)
class Session:
    """One authentication attempt, with the fields of its project that every reader of a session needs."""

    key: SessionKey
    id: str
    project_id: str
    project_name: str
    status: SignInStatus
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
    prompt: PromptDetails | None = field(default=None, compare=False)
    """Details that only the bot needs. Only `read_session` returns them."""


class FoundState(NamedTuple):
    """The state in which a guarded statement found a session. The fields are those of `Session`, as they are stored."""

    status: SignInStatus
    opener_id: str | None
    expires_at: int
    confirmed_at: int | None
    cancelled_at: int | None
    withdrawn: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The result of a guarded statement that changed nothing. It is false, where the result of a change is True.

    `found` is the reason: the state in which the statement found the session; None if there is no such session.
    """

    found: FoundState | None

    def __bool__(self) -> Literal[False]:
        return False


class NewPhone(NamedTuple):
    """A phone number to store with a confirmation, and the encrypted body that the event then has."""

    encrypted: bytes
    event_body: bytes


class PolledSession(NamedTuple):
    """The fields needed to answer a poll. It is a tuple for speed, since polls are the hottest path."""

    project_id: str
    public_access: bool
    status: SignInStatus
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
    def webhook_secrets(self) -> EncryptedWebhookSecrets | None:
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


class NewSession(NamedTuple):
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
