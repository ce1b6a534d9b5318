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
from html import unescape
from typing import Final

from taproof.messengers.telegram.types import (
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
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


class ButtonSigner:
    """Signs the buttons of a message before it is sent, and verifies a tap.

    Args:
        keys: returns the secrets derived from each master key, the current one first. A tap on a message from before a
            rotation is valid while the earlier master key is configured.
    """

    def __init__(self, keys: Callable[[], Sequence[str]]) -> None:
        self._keys = keys

    def sign(
        self, bot_id: int, user_id: int, text: str, buttons: InlineKeyboardMarkup, *, edited: bool
    ) -> InlineKeyboardMarkup:
        """Return the buttons, with a tag at the end of their callback data. Links stay as they are.

        `bot_id` is the bot's real id, and `text` the message as HTML. `edited` is true if it replaces an existing
        message.
        """
        rows = [[(each.text, each.callback_data or "") for each in row] for row in buttons.inline_keyboard]
        covered = _covered(bot_id, user_id, _plain(text), rows, edited=edited)
        tag = _tag(self._keys()[0], covered).decode()
        signed = [
            [
                each if each.url else each.model_copy(update={"callback_data": f"{each.callback_data}{tag}"})
                for each in row
            ]
            for row in buttons.inline_keyboard
        ]
        return InlineKeyboardMarkup(inline_keyboard=signed)

    def open(self, bot_id: int, query: CallbackQuery) -> str | None:
        """Return the data of a button that this service made for this user and message, or None for any other button.

        If the messenger no longer returns the message, its buttons cannot be verified and are not valid.
        """
        message, tapped = query.message, query.data or ""
        if not isinstance(message, Message) or message.text is None or not _is_plain(message):
            return None
        if not carries_button(query):
            return None
        keyboard, tag = _keyboard(message), tapped[-TAG_LENGTH:]
        if not all(each.url or (each.callback_data or "").endswith(tag) for row in keyboard for each in row):
            return None
        rows = [[(each.text, (each.callback_data or "")[:-TAG_LENGTH]) for each in row] for row in keyboard]
        # A message that was never edited has no edit date. An edited message may hide its date.
        for edited in (False, True) if message.edit_date is None else (True,):
            covered = _covered(bot_id, query.from_user.id, message.text, rows, edited=edited)
            if any(hmac.compare_digest(_tag(key, covered), tag.encode(errors="replace")) for key in self._keys()):
                return tapped[:-TAG_LENGTH]
        return None


def shows(text: str | None, html: str) -> bool:
    """Tell whether a message with this text was sent as this HTML."""
    return text is not None and _normal(text) == _normal(_plain(html))


def carries_button(query: CallbackQuery) -> bool:
    """Tell whether the message still has the tapped button. An app may show an older state of the message."""
    message = query.message
    if not isinstance(message, Message):
        return message is not None
    return any(each.callback_data == query.data for row in _keyboard(message) for each in row)


def _keyboard(message: Message) -> Keyboard:
    return message.reply_markup.inline_keyboard if message.reply_markup is not None else []


def _is_plain(message: Message) -> bool:
    """Tell whether a message shows only its text and buttons, in the form in which the bot sends them."""
    preview = message.link_preview_options
    shown = [message.text or "", *(button.text for row in _keyboard(message) for button in row)]
    return (
        not any(map(_TURNS_TEXT_AROUND.search, shown))
        and all(entity.type in _SHOWN_AS_TYPED for entity in message.entities or [])
        and not any(button.style or button.icon_custom_emoji_id for row in _keyboard(message) for button in row)
        and (preview is None or preview.is_disabled is True)
        and message.reply_to_message is None
        and message.external_reply is None
    )


def _covered(bot_id: int, user_id: int, text: str, rows: Sequence[Sequence[tuple[str, str]]], *, edited: bool) -> bytes:
    """Return the data that a tag covers, as JSON. Any two different messages have different data.

    A link counts by its label, because the messenger writes some URLs differently. A tap on it sends the bot nothing.
    """
    shown = [[(_normal(label), data) for label, data in row] for row in rows]
    return json.dumps([bot_id, user_id, edited, _normal(text), shown]).encode()


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
