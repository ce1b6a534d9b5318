"""The chats of one bot with all people, kept in memory.

An action of a person becomes a message or a callback query, and an update for the bot. The bot's own calls are in
`methods.py`.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from taproof.core.clock import SECOND, Clock
from taproof.core.entropy import Entropy
from taproof.sandbox.telegram.chats import SandboxChat, SandboxMessage
from taproof.sandbox.telegram.html import Entity, FormattedText, clean_text, utf16_length
from taproof.sandbox.telegram.people import People, Person, SandboxContact
from taproof.sandbox.telegram.reply_markup import ReplyButton, SandboxMarkup
from taproof.sandbox.telegram.updates import UpdateQueue

QUERY_LIMIT: Final = 1_000
"""Maximum number of callback queries that wait for a response. A new one replaces the oldest."""
QUERY_LIFETIME: Final = 60 * SECOND
"""The time in ms within which a callback query can be answered. The real limit is similar, but not documented."""
CALLBACK_MODES: Final = {"default", "auto", "inline"}
"""How taps on the bot's own messages are delivered: with the message; without it if the bot cannot access the message;
always without it (https://core.telegram.org/bots/api#setmysettings)."""
_NO_TEXT: Final = FormattedText("", [])
_FOUND_BY_ITSELF: Final = {
    "bot_command": re.compile(r"(?<![\w/<>@])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/<>@])"),
    "phone_number": re.compile(r"(?<![\w+])\+[0-9]{7,15}(?!\w)"),
}
"""The entities that the messenger detects in a typed text. The real one detects more, but no bot here needs them."""


@dataclass(slots=True)
class Tap:
    """A callback query, which a tap on a button sends. `asked_at` is in ms; `notice` is the bot's response."""

    query_id: str
    chat: SandboxChat
    asked_at: int
    is_answered: bool = False
    notice: str = ""
    shows_alert: bool = False


class Messenger:
    """One bot, whose id is the number at the start of its token, and the people who can write to it."""

    def __init__(
        self, bot_id: int, username: str, name: str, people: People, *, clock: Clock, entropy: Entropy
    ) -> None:
        self.bot: Final[dict[str, Any]] = {"id": bot_id, "is_bot": True, "first_name": name, "username": username}
        self.people: Final = people
        self.updates: Final = UpdateQueue(clock, entropy)
        self.is_closed = False
        self.callback_mode = "default"
        self._chats: dict[int, SandboxChat] = {}
        self._clock = clock
        self._entropy = entropy
        self._chat_instance = int.from_bytes(entropy(7))
        self._next_message_id = 1
        self._taps: OrderedDict[str, Tap] = OrderedDict()

    def chat(self, user_id: int) -> SandboxChat:
        """Return a person's chat with this bot. The first call creates it.

        Raises:
            KeyError: no person has this id.
        """
        chat = self._chats.get(user_id)
        if chat is None:
            chat = self._chats[self.people[user_id].id] = SandboxChat(user_id, self.people)
        return chat

    # ---- actions of people

    def write(self, chat: SandboxChat, text: str) -> SandboxMessage:
        """Send a text from the person to the bot. From then on, the bot may write to this person."""
        text = clean_text(text)
        entities: list[Entity] = [
            {"type": kind, "offset": utf16_length(text[: found.start()]), "length": utf16_length(found[0])}
            for kind, pattern in _FOUND_BY_ITSELF.items()
            for found in pattern.finditer(text)
        ]
        entities.sort(key=lambda entity: entity["offset"])
        return self._send(chat, FormattedText(text, entities))

    def share(self, chat: SandboxChat, contact: SandboxContact, forwarded_from: Person | None = None) -> SandboxMessage:
        """Send a contact to the bot, as the app's attachment menu or a forward does."""
        return self._send(chat, contact=contact, forwarded_from=forwarded_from)

    def press(self, chat: SandboxChat, button: ReplyButton) -> SandboxMessage:
        """Press a button of the chat's reply keyboard: send its text, or the contact that it asks for."""
        opened = chat.open_keyboard
        chat.note_keyboard_used()
        if not button.request_contact:
            return self.write(chat, button.text)
        return self._send(
            chat, contact=SandboxContact.of(chat.person), reply_to=None if opened is None else opened.message
        )

    def tap(self, chat: SandboxChat, message: SandboxMessage, data: str, *, inaccessible: bool = False) -> Tap:
        """Send a callback query with `data` about a message. A modified app can send data that belongs to no button.

        If the message is `inaccessible`, the messenger no longer shows it to the bot.
        """
        query_id = str(int.from_bytes(self._entropy(8)) >> 1)
        tap = Tap(query_id, chat, self._clock())
        if len(self._taps) >= QUERY_LIMIT:
            self._taps.popitem(last=False)
        self._taps[query_id] = tap
        query = {
            "id": query_id,
            "from": chat.person.as_user(),
            **self._tapped(chat, message, inaccessible=inaccessible),
            "chat_instance": str(self._chat_instance + chat.person.id),
            "data": data,
        }
        self.updates.add("callback_query", chat.person.id, query)
        return tap

    def _tapped(self, chat: SandboxChat, message: SandboxMessage, *, inaccessible: bool) -> dict[str, Any]:
        """Return the fields of a callback query that name the message."""
        if self.callback_mode == "inline" or (inaccessible and self.callback_mode == "auto"):
            return {"inline_message_id": f"AgAAA{chat.person.id}_{message.message_id}"}
        shown = chat.as_message(message, self.bot)
        if inaccessible:
            shown = {"message_id": shown["message_id"], "chat": shown["chat"], "date": 0}
        return {"message": shown}

    def set_blocked(self, chat: SandboxChat, *, blocked: bool) -> None:
        """Block or unblock the bot."""
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

    # ---- actions of the bot; methods.py checks whether they are allowed

    def post(
        self, chat: SandboxChat, formatted: FormattedText, markup: SandboxMarkup, *, is_protected: bool = False
    ) -> SandboxMessage:
        """Send a message from the bot."""
        editable = markup.is_inline
        message = self._message(
            formatted, from_bot=True, keyboard=markup.inline, is_editable=editable, is_protected=is_protected
        )
        chat.put_keyboard(message, markup)
        chat.add(message)
        return message

    def answer(self, query_id: str, notice: str, *, shows_alert: bool) -> bool:
        """Answer a callback query. Return False if it is unknown, too old or already answered."""
        tap = self._taps.pop(query_id, None)
        if tap is None or self._clock() - tap.asked_at > QUERY_LIFETIME:
            return False
        tap.is_answered, tap.notice, tap.shows_alert = True, notice, shows_alert
        tap.chat.note_change()
        return True

    def close(self) -> None:
        """End all waiting calls."""
        self.is_closed = True
        self.updates.close()
        for chat in self._chats.values():
            chat.note_change()

    def _message(self, formatted: FormattedText, *, from_bot: bool, **parts: Any) -> SandboxMessage:
        message = SandboxMessage(self._next_message_id, from_bot, *formatted, self._clock(), **parts)
        self._next_message_id += 1
        return message

    def _send(self, chat: SandboxChat, formatted: FormattedText = _NO_TEXT, **parts: Any) -> SandboxMessage:
        """Send a message from the person. `parts` are more fields of the message."""
        message = self._message(formatted, from_bot=False, **parts)
        chat.has_started = True
        chat.add(message)
        self.updates.add("message", chat.person.id, chat.as_message(message, self.bot))
        return message
