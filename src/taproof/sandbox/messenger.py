"""The messenger's state, all of it in memory, and what people do with it.

A person's act becomes a message or a callback query, and an update for the bot. What the bot does in turn is in
`bot_methods.py`.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from taproof.core.clock import SECOND, Clock
from taproof.core.entropy import Entropy
from taproof.sandbox.chats import Chat, Message, Person
from taproof.sandbox.html_text import Entity, clean_text, utf16_length
from taproof.sandbox.reply_markup import InlineKeyboard
from taproof.sandbox.updates import UpdateQueue

PEOPLE_LIMIT: Final = 1_000
QUERY_LIMIT: Final = 1_000
"""Callback queries that wait for their answer at once; the oldest goes when another comes."""
QUERY_LIFETIME: Final = 60 * SECOND
"""How long a callback query can be answered. The real time is of this order, and not documented."""
FIRST_ID: Final = 1_001

_COMMAND: Final = re.compile(r"(?<![\w/<>@])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/<>@])")
_PEOPLE: Final = (
    Person(FIRST_ID, "Ada", "Lovelace", "ada", "+15550001001", "en"),
    Person(FIRST_ID + 1, "Борис", "Петров", None, "+15550001002", "ru"),
    Person(FIRST_ID + 2, "سارا", "احمدی", "sara_ahmadi", "+15550001003", "fa"),
)


@dataclass(slots=True)
class Tap:
    """A callback query: somebody tapped a button. `asked_at` in ms; `notice` is what the bot answered."""

    query_id: str
    chat: Chat
    asked_at: int
    is_answered: bool = False
    notice: str = ""
    shows_alert: bool = False


class Messenger:
    """One bot and the people who may write to it.

    Args:
        bot_id: the number that the bot's token begins with.
        bot_username: without the `@`.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(self, bot_id: int, bot_username: str, clock: Clock, entropy: Entropy) -> None:
        self.bot: Final[dict[str, Any]] = {
            "id": bot_id,
            "is_bot": True,
            "first_name": "Taproof sandbox",
            "username": bot_username,
        }
        self.updates: Final = UpdateQueue(clock, entropy)
        self.chats: Final[dict[int, Chat]] = {}
        self.is_closed = False
        self._clock = clock
        self._entropy = entropy
        self._chat_instance = int.from_bytes(entropy(7))
        self._next_message_id = 1
        self._taps: OrderedDict[str, Tap] = OrderedDict()
        for person in _PEOPLE:
            self.put_person(person)

    # ---- people

    def free_id(self) -> int:
        """Return an id that nobody has."""
        return max([FIRST_ID, *(user_id + 1 for user_id in self.chats)])

    def put_person(self, person: Person) -> Chat:
        """Add a person, or change the one with this id; the chat stays."""
        chat = self.chats.get(person.id)
        if chat is None:
            chat = self.chats[person.id] = Chat(person)
        else:
            chat.person = person
            chat.note_change()
        return chat

    # ---- what people do

    def write(self, chat: Chat, text: str) -> Message:
        """Send a text from the person to the bot; whoever has written to a bot may be written to by it."""
        text = clean_text(text)
        entities: list[Entity] = [
            {"type": "bot_command", "offset": utf16_length(text[: found.start()]), "length": utf16_length(found[0])}
            for found in _COMMAND.finditer(text)
        ]
        chat.has_started = True
        message = self._add(chat, text, entities, [], from_bot=False)
        self.updates.add("message", chat.person.id, chat.as_message(message, self.bot))
        return message

    def tap(self, chat: Chat, message: Message, data: str) -> Tap:
        """Tap a button of a message that carries `data`."""
        query_id = str(int.from_bytes(self._entropy(8)) >> 1)
        tap = Tap(query_id, chat, self._clock())
        if len(self._taps) >= QUERY_LIMIT:
            self._taps.popitem(last=False)
        self._taps[query_id] = tap
        query = {
            "id": query_id,
            "from": chat.person.as_user(),
            "message": chat.as_message(message, self.bot),
            "chat_instance": str(self._chat_instance + chat.person.id),
            "data": data,
        }
        self.updates.add("callback_query", chat.person.id, query)
        return tap

    def set_blocked(self, chat: Chat, *, blocked: bool) -> None:
        """Block the bot, or let it write again."""
        if chat.has_blocked == blocked:
            return
        chat.has_blocked = blocked
        chat.note_change()
        kicked = {"user": self.bot, "status": "kicked", "until_date": 0}
        member = {"user": self.bot, "status": "member"}
        change = {
            "chat": chat.person.as_chat(),
            "from": chat.person.as_user(),
            "date": self._clock() // SECOND,
            "old_chat_member": member if blocked else kicked,
            "new_chat_member": kicked if blocked else member,
        }
        self.updates.add("my_chat_member", chat.person.id, change)

    # ---- what the bot does; whether it may is checked in bot_methods.py

    def post(self, chat: Chat, text: str, entities: list[Entity], keyboard: InlineKeyboard) -> Message:
        """Send a message from the bot."""
        return self._add(chat, text, entities, keyboard, from_bot=True)

    def answer(self, query_id: str, notice: str, *, shows_alert: bool) -> bool:
        """Answer a callback query; False when it is unknown, too old or answered."""
        tap = self._taps.pop(query_id, None)
        if tap is None or self._clock() - tap.asked_at > QUERY_LIFETIME:
            return False
        tap.is_answered, tap.notice, tap.shows_alert = True, notice, shows_alert
        tap.chat.note_change()
        return True

    def close(self) -> None:
        """Let everything that waits come to its end."""
        self.is_closed = True
        self.updates.close()
        for chat in self.chats.values():
            chat.note_change()

    def _add(
        self, chat: Chat, text: str, entities: list[Entity], keyboard: InlineKeyboard, *, from_bot: bool
    ) -> Message:
        message = Message(self._next_message_id, from_bot, text, entities, self._clock(), keyboard)
        self._next_message_id += 1
        chat.add(message)
        return message
