"""Buttons that only this service can make: a tag binds their callback data to the user and to the whole message.

An attacker with the bot's token can send and edit the bot's messages. They can also read the callback data of a genuine
prompt, because the Bot API returns a message to a caller that replies to it. An id in the data is therefore not enough.
A button's tag covers everything that the user sees, so genuine data is valid only with the genuine text and labels.
"""

import base64
import functools
import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, Final

from taproof.http.metrics import TapRefusal
from taproof.messengers.telegram.types import (
    CallbackQuery,
    InaccessibleMessage,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
    ShownMessage,
    TappedMessage,
    UnreadableMessage,
    User,
)

PURPOSE: Final = "telegram callback data"
"""The purpose used to derive the keys of `ButtonSigner`."""
TAG_LENGTH: Final = 12
"""Number of characters of the tag at the end of the data: 72 bits. The longest data, for a past sign-in, has no room
for more."""
_TAGS: Final = re.compile(r"</?code>")
"""The only tags in the bot's messages."""
_SHOWN_AS_TYPED: Final = {"code", "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"}
"""The entities that the messenger detects automatically, and `<code>`. Others, such as a spoiler or a folded quote,
could hide words."""
_REMOVED: Final = {"\u030a", "\u0333", "\u033f"}
"""The combining marks that the messenger removes from every text."""

_TURNS_TEXT_AROUND: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2067]")
"""The bidirectional controls that the bot never sends. With them, the same characters could display other words."""

Keyboard = Sequence[Sequence[InlineKeyboardButton]]
Rows = Sequence[Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class CheckedTap:
    """The data of a tapped button without its tag, and why it is not proven; `refusal` is None if it is proven.

    Data that is not proven may be of a message that somebody else wrote: the user may have seen any text. `entities`
    are the kinds of formatting in the message that the bot does not send.
    """

    data: str
    refusal: TapRefusal | None
    entities: tuple[str, ...] = ()


class ButtonSigner:
    """Signs the buttons of a message before it is sent, and verifies a tap.

    `keys` returns the secrets derived from each master key, the current one first. A tap on a message from before a
    rotation is valid while the earlier master key is configured.
    """

    def __init__(self, keys: Callable[[], Sequence[str]]) -> None:
        self._keys = keys

    def sign(
        self,
        bot_id: int,
        user_id: int,
        text: str,
        buttons: InlineKeyboardMarkup,
        unusual: Sequence[Any] = (),
        *,
        edited: bool,
    ) -> InlineKeyboardMarkup:
        """Return the buttons, with a tag at the end of their callback data. Links stay as they are.

        `bot_id` is the bot's real id, and `text` the message as HTML. `edited` is true if it replaces an existing
        message. `unusual` is what the messenger adds to the message.
        """
        covered = _covered(bot_id, user_id, _plain(text), _rows(buttons), unusual, edited=edited)
        tag = _tag(self._keys()[0], covered).decode()
        signed = [
            [
                each if each.url else each.model_copy(update={"callback_data": f"{each.callback_data}{tag}"})
                for each in row
            ]
            for row in buttons.inline_keyboard
        ]
        return InlineKeyboardMarkup(inline_keyboard=signed)

    def sign_again(
        self,
        bot_id: int,
        user_id: int,
        text: str,
        buttons: InlineKeyboardMarkup,
        shown: ShownMessage,
        *,
        edited: bool,
    ) -> InlineKeyboardMarkup | None:
        """Return the buttons with a tag that also covers what the messenger has added; None if it has added nothing.

        `shown` is the messenger's answer to the call that sent or edited this message. A later release of the messenger
        may add something to every message, such as a new kind of entity, and no tap would be valid any more. Only the
        answer to the service's own call is trusted, because anybody with the bot's token can edit the message. What an
        edited message replies to is not trusted either: an edit keeps it, whoever sent the message.
        """
        sent = _covered(bot_id, user_id, _plain(text), _rows(buttons), edited=edited)
        if _covered(bot_id, user_id, shown.text or "", _untagged(_keyboard(shown)), edited=edited) != sent:
            return None
        unusual = _unusual(shown)
        says_edited = shown.edit_date is not None and not edited
        if (edited and _beside(shown)) or not (unusual or says_edited):
            return None
        return self.sign(bot_id, user_id, text, buttons, unusual, edited=True)

    def check(self, bot_id: int, query: CallbackQuery) -> CheckedTap:
        """Check that this service made the tapped button, for this user and for exactly this message."""
        data, message = (query.data or "")[:-TAG_LENGTH], query.message
        refusal = _unseen(query)
        if refusal is not None or not isinstance(message, ShownMessage):
            return CheckedTap(data, refusal)
        entities = unusual_kinds(message)
        if self._is_valid(bot_id, query.from_user.id, message):
            return CheckedTap(data, None, entities)
        if entities:
            return CheckedTap(data, "unknown_entity", entities)
        return CheckedTap(data, "changed_look" if _unusual(message) else "wrong_signature")

    def _is_valid(self, bot_id: int, user_id: int, message: ShownMessage) -> bool:
        """Return whether all buttons of a message have one tag, which covers exactly this message."""
        keyboard = _keyboard(message)
        tags = {(each.callback_data or "")[-TAG_LENGTH:] for row in keyboard for each in row if not each.url}
        if len(tags) != 1:
            return False
        tag, rows, unusual = tags.pop().encode(errors="replace"), _untagged(keyboard), _unusual(message)
        # A message that was never edited has no edit date. An edited message may hide its date.
        for edited in (False, True) if message.edit_date is None else (True,):
            covered = _covered(bot_id, user_id, message.text or "", rows, unusual, edited=edited)
            if any(hmac.compare_digest(_tag(key, covered), tag) for key in self._keys()):
                return True
        return False


def shows(text: str | None, html: str) -> bool:
    """Return whether a message with this text was sent as this HTML."""
    return text is not None and _normal(text) == _normal(_plain(html))


def is_own_chat(message: TappedMessage | Message, user: User) -> bool:
    """Return whether a message is in the private chat of this bot and this user."""
    if isinstance(message, UnreadableMessage) or _is_of_business(message):
        return False
    return message.chat.type == "private" and message.chat.id == user.id


def _is_of_business(message: TappedMessage | Message) -> bool:
    """Return whether a message is in the chat of a business account, which looks like the bot's own chat."""
    return isinstance(message, Message) and message.business_connection_id is not None


def _unseen(query: CallbackQuery) -> TapRefusal | None:
    """Return why a tap cannot be checked at all: the message with the button is missing, elsewhere or another one."""
    message = query.message
    if query.from_user.is_bot:
        return "not_a_person"
    if not query.data:
        return "no_data"
    if message is None:
        return "no_message" if query.inline_message_id is None else "inline_message"
    if isinstance(message, UnreadableMessage):
        return "unreadable_message"
    if _is_of_business(message):
        return "business_chat"
    if not is_own_chat(message, query.from_user):
        return "other_chat"
    if isinstance(message, InaccessibleMessage):
        return "inaccessible_message"
    if message.text is None:
        return "no_text"
    # An app may show an older state of the message.
    has_button = any(each.callback_data == query.data for row in _keyboard(message) for each in row)
    return None if has_button else "button_gone"


def _keyboard(message: ShownMessage) -> Keyboard:
    return message.reply_markup.inline_keyboard if message.reply_markup is not None else []


def _rows(buttons: InlineKeyboardMarkup) -> Rows:
    """Return label and data of each button."""
    return [[(each.text, each.callback_data or "") for each in row] for row in buttons.inline_keyboard]


def _untagged(keyboard: Keyboard) -> list[list[tuple[str, str]]]:
    """Return label and data of each button, without the tag."""
    return [[(each.text, (each.callback_data or "")[:-TAG_LENGTH]) for each in row] for row in keyboard]


def unusual_kinds(message: ShownMessage) -> tuple[str, ...]:
    """Return the kinds of formatting in a message that the bot does not send."""
    return tuple(sorted({entity.type for entity in _unusual_entities(message)}))


def _unusual_entities(message: ShownMessage) -> list[MessageEntity]:
    return [entity for entity in message.entities or [] if entity.type not in _SHOWN_AS_TYPED]


def _beside(message: ShownMessage) -> list[Any]:
    """Return what a message shows above its text: the message that it replies to.

    A message in a topic replies to the message that created the topic, and apps do not show that.
    """
    replied = message.reply_to_message
    is_in_topic = bool(message.is_topic_message and replied and replied.forum_topic_created)
    shown = None if replied is None or is_in_topic else replied.model_dump()
    return [each for each in (shown, message.external_reply, message.reply_to_story) if each is not None]


def _unusual(message: ShownMessage) -> list[Any]:
    """Return everything that a message shows besides plain text and plain buttons. The bot sends nothing of this."""
    found: list[Any] = [entity.model_dump() for entity in _unusual_entities(message)]
    found += _beside(message)
    preview = message.link_preview_options
    if preview is not None and preview.is_disabled is not True:
        found.append(preview.model_dump())
    for row in _keyboard(message):
        found += [[each.text, each.style, each.icon_custom_emoji_id] for each in row if _is_styled(each)]
    shown = [message.text or "", *(button.text for row in _keyboard(message) for button in row)]
    return found + [text for text in shown if _TURNS_TEXT_AROUND.search(text)]


def _is_styled(button: InlineKeyboardButton) -> bool:
    return bool(button.style or button.icon_custom_emoji_id)


def _covered(bot_id: int, user_id: int, text: str, rows: Rows, unusual: Sequence[Any] = (), *, edited: bool) -> bytes:
    """Return the data that a tag covers, as JSON. Any two different messages have different data.

    A link counts by its label, because the messenger writes some URLs differently. A tap on it sends the bot nothing.
    """
    shown = [[(_normal(label), data) for label, data in row] for row in rows]
    return json.dumps([bot_id, user_id, edited, _normal(text), shown, list(unusual)], sort_keys=True).encode()


def _plain(text: str) -> str:
    """Return the text of a message that is sent as HTML."""
    return unescape(_TAGS.sub("", text))


def _normal(text: str) -> str:
    """Return a text without the differences that the messenger introduces: kinds of spaces, and invisible characters.

    The number of spaces and line breaks is kept, because a large number would push the words out of sight.
    """
    return "".join(map(_kept, text)).strip()


@functools.lru_cache(4096)
def _kept(character: str) -> str:
    if character.isspace():
        return character if character == "\n" else " "
    return "" if character in _REMOVED or unicodedata.category(character) in {"Cc", "Cf"} else character


def _tag(key: str, covered: bytes) -> bytes:
    return base64.urlsafe_b64encode(hmac.digest(bytes.fromhex(key), covered, "sha256"))[:TAG_LENGTH]
