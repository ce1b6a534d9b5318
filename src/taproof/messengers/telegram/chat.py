"""The private chat of one user with one bot, through which handlers reply while they handle one update.

`handlers.py` handles sign-ins. `Handlers` contains the handlers of all other commands and buttons. A handler
gets a `PrivateChat` only if the user acted personally, in their own private chat with the bot. It gets a `ButtonTap`
only if this service made the button (`signed_buttons.py`), or if it is one that never needs this proof
(`unverified_taps.py`).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import structlog

from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError, TelegramBadRequest, TelegramRetryAfter
from taproof.messengers.telegram.signed_buttons import ButtonSigner, unusual_kinds
from taproof.messengers.telegram.types import (
    InlineKeyboardMarkup,
    Message,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
    SentMessage,
    User,
)
from taproof.messengers.texts.catalog import Texts, texts_for

_LOGGED_KINDS: Final = 5
_NAME: Final = re.compile(r"[a-z_]{1,32}")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """A message as HTML, with optional buttons or an optional change of the user's reply keyboard.

    Apps do not forward a protected message. This is set when it is sent: an edit cannot change it.
    """

    text: str
    buttons: InlineKeyboardMarkup | None = None
    keyboard: ReplyKeyboardMarkup | ReplyKeyboardRemove | None = None
    is_protected: bool = False


@dataclass(frozen=True, slots=True)
class PrivateChat:
    """A user's private chat with a bot.

    `bot_id` is the id that the services use: `SERVICE_BOT` for the service's own bot, the real id for a project's bot.
    `signer` signs every button that is sent. Until `hurry` is set, a needed message waits for the Bot API's flood
    limit to end. `thread_id` is the topic of the chat in which the user acted, if it has topics.
    """

    bot: Bot
    bot_id: int
    user: User
    hurry: asyncio.Event
    signer: ButtonSigner
    thread_id: int | None = field(default=None, kw_only=True)

    @property
    def user_id(self) -> str:
        """The user's id as it is stored."""
        return str(self.user.id)

    @property
    def texts(self) -> Texts:
        """The texts in the user's language."""
        return texts_for(self.user.language_code)

    async def send(self, reply: Reply, *, needed: bool = False) -> int | None:
        """Send a message and return its id, or None if it was not sent.

        If it is not `needed` and exceeds the flood limit, it is not sent.
        """
        hurry = self.hurry if needed else None
        buttons = self._signed(reply, edited=False)
        try:
            with _within_flood_limit(hurry):
                sent = await self.bot.send_message(
                    self.user.id,
                    reply.text,
                    buttons or reply.keyboard,
                    is_protected=reply.is_protected,
                    thread_id=self.thread_id,
                    hurry=hurry,
                )
                await self._sign_again(reply, sent, edited=False)
                return sent.message_id
        except TelegramBadRequest as refusal:
            if self.thread_id is not None and "thread not found" in refusal.message:
                # The user has deleted the topic in the meantime.
                return await replace(self, thread_id=None).send(reply, needed=needed)
            if "chat not found" not in refusal.message:
                raise
            _log.info("bot_chat_gone")
        return None

    async def _sign_again(self, reply: Reply, sent: SentMessage, *, edited: bool) -> None:
        """Replace the buttons of a message that was just sent, if the messenger has added something to it."""
        if reply.buttons is None or sent.shown is None:
            return
        words = self.bot.id, self.user.id, reply.text, reply.buttons
        again = self.signer.sign_again(*words, sent.shown, edited=edited)
        if again is None:
            return
        _log.info("bot_message_shown_otherwise", entities=loggable(unusual_kinds(sent.shown)))
        try:
            await self.bot.edit_buttons(self.user.id, sent.message_id, again, hurry=self.hurry)
        except TelegramAPIError as trouble:
            # The user has the message, so it is not sent again. A tap on it gets a fresh one.
            _log.info("bot_prompt_gone", reason=trouble.message)

    def _signed(self, reply: Reply, *, edited: bool) -> InlineKeyboardMarkup | None:
        """Return a reply's signed buttons, each valid only in this chat and under exactly this text."""
        if reply.buttons is None:
            return None
        return self.signer.sign(self.bot.id, self.user.id, reply.text, reply.buttons, edited=edited)


@dataclass(frozen=True, slots=True)
class ButtonTap(PrivateChat):
    """A tap on a button of a message in that chat. `message_id` is None if the message is not known."""

    query_id: str = field(repr=False)
    message_id: int | None

    async def replace(self, reply: Reply, *, needed: bool = False) -> int | None:
        """Replace the message and its buttons with a reply; return the id of the message that shows it, if one does.

        If the message cannot be edited and the reply is needed, the reply is sent as a separate message.
        """
        hurry = self.hurry if needed else None
        if self.message_id is None:
            return await self.send(reply, needed=True) if needed else None
        buttons = self._signed(reply, edited=True)
        try:
            with _within_flood_limit(hurry):
                shown = await self.bot.edit_message_text(
                    self.user.id, self.message_id, reply.text, buttons, hurry=hurry
                )
                await self._sign_again(reply, shown, edited=True)
        except TelegramBadRequest as refusal:
            if "message is not modified" not in refusal.message:
                _log.info("bot_prompt_gone", reason=refusal.message)
                return await self.send(reply, needed=True) if needed else None
        return self.message_id

    async def answer(self, notice: str, *, alert: bool = False) -> None:
        """Show a pop-up of at most 200 characters of plain text. With `alert`, the user has to close it."""
        await answer_tap(self.bot, self.query_id, notice, alert=alert)


OnCommand = Callable[[PrivateChat, str], Awaitable[None]]
"""Handles a command. It receives the text after the command, or "" if there is none."""
TapResult = Literal["done", "foreign", "unknown_session"]
"""The result of a button. "foreign": its session belongs to another account. "unknown_session": its session or project
does not exist, or this bot may not show it."""
OnTap = Callable[[ButtonTap, str], Awaitable[TapResult]]
"""Handles a button. It receives the button's data after the colon."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of actions outside a sign-in, by command and by button.

    The key of a command is its name without the slash: `sessions` for /sessions. The key of a button is the word before
    the colon of its data: `r` for `r:<token>`.
    """

    commands: Mapping[str, OnCommand] = field(default_factory=dict)
    taps: Mapping[str, OnTap] = field(default_factory=dict)


async def answer_tap(bot: Bot, query_id: str, notice: str, *, alert: bool = False) -> None:
    """Show a pop-up to the user who tapped. If the tap can no longer be answered, do nothing."""
    try:
        with _within_flood_limit(None):
            await bot.answer_callback_query(query_id, notice, alert=alert)
    except TelegramBadRequest as refusal:
        # A tap cannot be answered after a few seconds. The message contains the same text and stays visible.
        _log.info("bot_tap_too_old", reason=refusal.message)


def thread_of(message: Message) -> int | None:
    """Return the topic of a message, so that an answer is sent to where the user looks; None outside topics."""
    return message.message_thread_id if message.is_topic_message else None


def loggable(kinds: Sequence[str]) -> list[str]:
    """Return the names of some kinds of entities for a log, with "other" for a text that is not such a name."""
    return [kind if _NAME.fullmatch(kind) else "other" for kind in kinds[:_LOGGED_KINDS]]


async def send_to_group(bot: Bot, chat_id: int, text: str) -> None:
    """Send a message to a group. If the flood limit or the group prevents it, do nothing."""
    try:
        with _within_flood_limit(None):
            await bot.send_message(chat_id, text)
    except TelegramBadRequest as refusal:
        # A group can prevent a bot from writing in many ways; none of them matters here.
        _log.info("bot_group_silent", reason=refusal.message)


@contextmanager
def _within_flood_limit(hurry: asyncio.Event | None) -> Iterator[None]:
    """Suppress the flood limit's error, so that the reply is skipped. With `hurry`, only once it is set."""
    try:
        yield
    except TelegramRetryAfter:
        if hurry is not None and not hurry.is_set():
            raise
        _log.info("bot_reply_left_out", reason="flood_limit")
