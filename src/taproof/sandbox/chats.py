"""The people of the sandbox, and the private chat that each has with the bot.

The dictionaries are the Bot API's own objects (https://core.telegram.org/bots/api#available-types).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from taproof.core.clock import SECOND, iso8601
from taproof.sandbox.html_text import Entity
from taproof.sandbox.reply_markup import InlineKeyboard

MESSAGE_LIMIT: Final = 500
"""Messages kept of a chat; the oldest goes when another comes."""


@dataclass(frozen=True, slots=True)
class Person:
    """A pretend user; None for what the account does not have."""

    id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    phone: str | None = None
    language_code: str | None = None

    def as_user(self) -> dict[str, Any]:
        """Return the User that the bot sees. The phone number is not part of it."""
        user = {"id": self.id, "is_bot": False, "first_name": self.first_name}
        others = {"last_name": self.last_name, "username": self.username, "language_code": self.language_code}
        return user | {name: value for name, value in others.items() if value is not None}

    def as_chat(self) -> dict[str, Any]:
        """Return the Chat that the bot sees."""
        chat = {name: value for name, value in self.as_user().items() if name not in {"is_bot", "language_code"}}
        return chat | {"type": "private"}


@dataclass(slots=True)
class Message:
    """A message in a chat. `date` and `edited_at` in ms."""

    message_id: int
    from_bot: bool
    text: str
    entities: list[Entity]
    date: int
    keyboard: InlineKeyboard = field(default_factory=list)
    edited_at: int | None = None

    def shown(self) -> dict[str, Any]:
        """Return the message as the control API has it."""
        return {
            "message_id": self.message_id,
            "from": "bot" if self.from_bot else "user",
            "text": self.text,
            "entities": self.entities,
            "buttons": [[button["text"] for button in row] for row in self.keyboard],
            "date": iso8601(self.date),
            "edited": self.edited_at is not None,
        }


class Chat:
    """What one person and the bot said to each other, newest last."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.has_started = False
        self.has_blocked = False
        self.messages: dict[int, Message] = {}
        self.version = 0
        """Rises with every change, so that a reader can wait for the next one."""
        self._changed = asyncio.Event()

    def add(self, message: Message) -> None:
        """Append a message."""
        if len(self.messages) >= MESSAGE_LIMIT:
            del self.messages[next(iter(self.messages))]
        self.messages[message.message_id] = message
        self.note_change()

    def note_change(self) -> None:
        """Wake everybody who waits for a change."""
        self.version += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until `condition` holds after a change, at most that long; return whether it holds."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await self._changed.wait()
        except TimeoutError:
            pass
        return condition()

    def shown(self) -> dict[str, Any]:
        """Return the person as the control API has it."""
        person = self.person
        return {
            "id": person.id,
            "first_name": person.first_name,
            "last_name": person.last_name,
            "username": person.username,
            "phone": person.phone,
            "language_code": person.language_code,
            "has_started": self.has_started,
            "has_blocked": self.has_blocked,
        }

    def as_message(self, message: Message, bot: dict[str, Any]) -> dict[str, Any]:
        """Return a message of this chat as the bot sees it."""
        seen: dict[str, Any] = {
            "message_id": message.message_id,
            "from": bot if message.from_bot else self.person.as_user(),
            "chat": self.person.as_chat(),
            "date": message.date // SECOND,
        }
        if message.edited_at is not None:
            seen["edit_date"] = message.edited_at // SECOND
        seen["text"] = message.text
        if message.entities:
            seen["entities"] = message.entities
        if message.keyboard:
            seen["reply_markup"] = {"inline_keyboard": message.keyboard}
        return seen
