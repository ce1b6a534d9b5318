"""The private chat of a person with a bot, and its messages.

The dictionaries are the Bot API's own objects (https://core.telegram.org/bots/api#available-types).
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from taproof.core.clock import SECOND, iso8601
from taproof.sandbox.telegram.html import Entity, FormattedText
from taproof.sandbox.telegram.people import People, Person, SandboxContact
from taproof.sandbox.telegram.reply_markup import InlineKeyboard, ReplyKeyboard, SandboxMarkup

MESSAGE_LIMIT: Final = 500
"""Maximum number of stored messages per chat. A new one replaces the oldest."""


@dataclass(slots=True)
class SandboxMessage:
    """A message in a chat. `date` and `edited_at` are in ms."""

    message_id: int
    from_bot: bool
    text: str
    entities: list[Entity]
    date: int
    keyboard: InlineKeyboard = field(default_factory=list)
    edited_at: int | None = None
    contact: SandboxContact | None = None
    forwarded_from: Person | None = None
    reply_to: "SandboxMessage | None" = None
    is_editable: bool = True
    """False for a message that showed or removed a reply keyboard: the messenger does not allow edits of it."""
    is_protected: bool = False
    """True if apps do not let the person forward or save the message. An edit does not change it."""

    def shown(self) -> dict[str, Any]:
        """Return the message in the control API's format."""
        return {
            "message_id": self.message_id,
            "from": "bot" if self.from_bot else "user",
            "text": self.text,
            "entities": self.entities,
            "buttons": [[button["text"] for button in row] for row in self.keyboard],
            "inline_keyboard": self.keyboard,
            "contact": None if self.contact is None else self.contact.as_contact(),
            "forwarded_from": None if self.forwarded_from is None else self.forwarded_from.id,
            "date": iso8601(self.date),
            "edited": self.edited_at is not None,
            "protected": self.is_protected,
        }


@dataclass(slots=True)
class OpenKeyboard:
    """The reply keyboard of a chat, from the message that shows it until another message removes it."""

    message: SandboxMessage
    keyboard: ReplyKeyboard
    is_hidden: bool = False
    """True for a used one-time keyboard. Apps show it again when the person asks for it."""

    def shown(self) -> dict[str, Any]:
        """Return the keyboard in the control API's format."""
        return {"message_id": self.message.message_id, **self.keyboard.shown(), "is_hidden": self.is_hidden}


class SandboxChat:
    """The chat of one person with one bot, newest message last."""

    def __init__(self, user_id: int, people: People) -> None:
        self._user_id = user_id
        self._people = people
        self.has_started = False
        self.has_blocked = False
        self.messages: dict[int, SandboxMessage] = {}
        self.open_keyboard: OpenKeyboard | None = None
        self.version = 0
        """A number that increases with every change, so that a reader can wait for the next change."""
        self.bot_acts = 0
        """The number of times that the bot has sent, edited or deleted a message in this chat."""
        self._changed = asyncio.Event()

    @property
    def person(self) -> Person:
        """The person, with their current data."""
        return self._people[self._user_id]

    def add(self, message: SandboxMessage) -> None:
        """Append a message, and drop the oldest if the chat is full."""
        if len(self.messages) >= MESSAGE_LIMIT:
            self._forget(self.messages[next(iter(self.messages))])
        self.messages[message.message_id] = message
        self.note_change(by_bot=message.from_bot)

    def edit(self, message: SandboxMessage, formatted: FormattedText, keyboard: InlineKeyboard, now: int) -> None:
        """Replace the text and buttons of a bot message."""
        message.text, message.entities = formatted
        message.keyboard = keyboard
        message.edited_at = now
        self.note_change(by_bot=True)

    def delete(self, message: SandboxMessage) -> None:
        """Delete a message, and also the reply keyboard that it showed, as apps do."""
        self._forget(message)
        self.note_change(by_bot=True)

    def put_keyboard(self, message: SandboxMessage, markup: SandboxMarkup) -> None:
        """Show the reply keyboard of a message, or remove the current one if the message asks for it."""
        if markup.keyboard is not None:
            self.open_keyboard = OpenKeyboard(message, markup.keyboard)
        elif markup.ends_keyboard:
            self.open_keyboard = None

    def note_keyboard_used(self) -> None:
        """Hide the keyboard if it is a one-time keyboard."""
        if self.open_keyboard is not None and self.open_keyboard.keyboard.flags["one_time_keyboard"]:
            self.open_keyboard.is_hidden = True

    def note_change(self, *, by_bot: bool = False) -> None:
        """Increase the version and wake all waiting readers."""
        self.version += 1
        self.bot_acts += by_bot
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait at most `seconds` until `condition` is true, and return whether it is. Check it at each change."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    await self._changed.wait()
        return condition()

    def shown(self) -> dict[str, Any]:
        """Return the person in the control API's format."""
        blocked = {"has_started": self.has_started, "has_blocked": self.has_blocked}
        return asdict(self.person) | {"phone": self.person.number} | blocked

    def as_message(self, message: SandboxMessage, bot: dict[str, Any]) -> dict[str, Any]:
        """Return a message of this chat as the bot sees it."""
        seen: dict[str, Any] = {
            "message_id": message.message_id,
            "from": bot if message.from_bot else self.person.as_user(),
            "chat": self.person.as_chat(),
            "date": message.date // SECOND,
        }
        if message.edited_at is not None:
            seen["edit_date"] = message.edited_at // SECOND
        if message.forwarded_from is not None:
            sender, date = message.forwarded_from.as_user(), message.date // SECOND
            seen["forward_origin"] = {"type": "user", "sender_user": sender, "date": date}
            # Older fields, which the Bot API still sends in addition to forward_origin.
            seen["forward_from"], seen["forward_date"] = sender, date
        if message.reply_to is not None:
            seen["reply_to_message"] = self.as_message(message.reply_to, bot)
        if message.contact is not None:
            seen["contact"] = message.contact.as_contact()
        else:
            seen["text"] = message.text
        if message.entities:
            seen["entities"] = message.entities
        if message.is_protected:
            seen["has_protected_content"] = True
        if message.keyboard:
            seen["reply_markup"] = {"inline_keyboard": message.keyboard}
        return seen

    def _forget(self, message: SandboxMessage) -> None:
        del self.messages[message.message_id]
        if self.open_keyboard is not None and self.open_keyboard.message is message:
            self.open_keyboard = None
