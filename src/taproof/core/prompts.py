"""Messages in the messenger that ask for a decision, as frozen values."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from taproof.core.sessions import SessionKey


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
    """The latest message that shows a session to its owner, or that could not be sent (`message_id` is None)."""

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
