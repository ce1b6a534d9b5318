"""What handlers act through: the private chat of one user with one bot, while one update of theirs is handled.

What is not part of the sign-in's own conversation (`handlers.py`) comes in as `Acts`: a command's or a button's handler
gets a `PrivateChat` or a `ButtonTap` only once it is certain that the user acted themselves, in their own private chat
with the bot, and a `ButtonTap` only for a button that this service made (`signed_buttons.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from taproof.messengers.telegram.bot_api import Bot, TelegramBadRequest, TelegramRetryAfter
from taproof.messengers.telegram.signed_buttons import ButtonSigner
from taproof.messengers.telegram.types import InlineKeyboardMarkup, ReplyKeyboardMarkup, ReplyKeyboardRemove, User

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """A message as HTML, with its buttons if it has any, or with what takes the place of the user's keyboard."""

    text: str
    buttons: InlineKeyboardMarkup | None = None
    keyboard: ReplyKeyboardMarkup | ReplyKeyboardRemove | None = None


@dataclass(frozen=True, slots=True)
class PrivateChat:
    """A user's private chat with a bot.

    `bot_id` is what the services know the bot by: `SERVICE_BOT` for the service's own, the real id for a project's own.
    `signer` signs every button that is sent.
    Until `hurry` is set, what the user cannot go on without waits out the Bot API's flood limit.
    """

    bot: Bot
    bot_id: int
    user: User
    hurry: asyncio.Event
    signer: ButtonSigner

    @property
    def user_id(self) -> str:
        """The user's id as it is stored."""
        return str(self.user.id)

    async def send(self, reply: Reply, *, needed: bool = False) -> None:
        """Send a message. One that is not `needed` and meets the flood limit is left out."""
        hurry = self.hurry if needed else None
        markup = self._signed(reply, edited=False) or reply.keyboard
        try:
            with _within_flood_limit(hurry):
                await self.bot.send_message(self.user.id, reply.text, markup, hurry=hurry)
        except TelegramBadRequest as refusal:
            if "chat not found" not in refusal.message:
                raise
            _log.info("bot_chat_gone")

    def _signed(self, reply: Reply, *, edited: bool) -> InlineKeyboardMarkup | None:
        """Return a reply's buttons as they are sent: each counts in this chat and under this very text only."""
        if reply.buttons is None:
            return None
        return self.signer.sign(self.bot.id, self.user.id, reply.text, reply.buttons, edited=edited)


@dataclass(frozen=True, slots=True)
class ButtonTap(PrivateChat):
    """A tap on a button of a message in that chat."""

    query_id: str = field(repr=False)
    message_id: int

    async def replace(self, reply: Reply, *, needed: bool = False) -> None:
        """Put a reply in the message's place; its buttons go unless the reply has some.

        If the message cannot be edited and the reply is needed, it is sent as a message of its own.
        """
        hurry = self.hurry if needed else None
        buttons = self._signed(reply, edited=True)
        try:
            with _within_flood_limit(hurry):
                await self.bot.edit_message_text(self.user.id, self.message_id, reply.text, buttons, hurry=hurry)
        except TelegramBadRequest as refusal:
            if "message is not modified" in refusal.message:
                return
            _log.info("bot_prompt_gone", reason=refusal.message)
            if needed:
                await self.send(reply, needed=True)

    async def answer(self, notice: str, *, alert: bool = False) -> None:
        """Show a short pop-up, of at most 200 characters of plain text; with `alert` one that has to be closed."""
        await answer_tap(self.bot, self.query_id, notice, alert=alert)


OnCommand = Callable[[PrivateChat, str], Awaitable[None]]
"""Gets what stands behind the command, "" when nothing does."""
OnTap = Callable[[ButtonTap, str], Awaitable[None]]
"""Gets what stands behind the colon of the button's data, once it is certain that this service made the button."""


@dataclass(frozen=True, slots=True)
class Acts:
    """What users can do besides: handlers by their commands and buttons.

    A command is written as in `sessions` for /sessions, a button as the word before the colon of its data: `r` for
    `r:<token>`.
    """

    commands: Mapping[str, OnCommand] = field(default_factory=dict)
    taps: Mapping[str, OnTap] = field(default_factory=dict)


async def answer_tap(bot: Bot, query_id: str, notice: str, *, alert: bool = False) -> None:
    """Show a pop-up to who tapped; too late, it is left out."""
    try:
        with _within_flood_limit(None):
            await bot.answer_callback_query(query_id, notice, alert=alert)
    except TelegramBadRequest as refusal:
        # After some seconds a tap can no longer be answered. The message says the same and stays.
        _log.info("bot_tap_too_old", reason=refusal.message)


async def send_to_group(bot: Bot, chat_id: int, text: str) -> None:
    """Send a message to a group; one that meets the flood limit, or that the group does not take, is left out."""
    try:
        with _within_flood_limit(None):
            await bot.send_message(chat_id, text)
    except TelegramBadRequest as refusal:
        # A group has many ways to keep a bot from writing, none of which matters here.
        _log.info("bot_group_silent", reason=refusal.message)


@contextmanager
def _within_flood_limit(hurry: asyncio.Event | None) -> Iterator[None]:
    """Leave out a reply that meets the flood limit; one that has a `hurry` only once that is set."""
    try:
        yield
    except TelegramRetryAfter:
        if hurry is not None and not hurry.is_set():
            raise
        _log.info("bot_reply_left_out", reason="flood_limit")
