"""Answers taps on messages that prove nothing: they are missing, unreadable, or not exactly as the bot sent them.

Whoever has the bot's token can show any words around a genuine button, so such a tap must not sign anybody in. But
it may be genuine: the messenger may leave the message out, or show it in a way of its own. So the buttons of `SAFE`
work all the same, and any other button of a waiting session gets a fresh prompt with the genuine words. Only the
session's owner gets it, in the private chat with the bot.
"""

import asyncio
import dataclasses
import re
from typing import Final, Literal

import structlog

from taproof.http.metrics import TapRefusal
from taproof.messengers.reply_limits import ReplyLimits
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.bot_settings import restore_callback_mode
from taproof.messengers.telegram.chat import ButtonTap, Handlers, Reply, loggable, thread_of
from taproof.messengers.telegram.prompts import CANCEL, CONFIRM, MATCH, WITHOUT_PHONE, outcome_notice
from taproof.messengers.telegram.session_prompts import SessionPrompts
from taproof.messengers.telegram.signed_buttons import ButtonSigner, CheckedTap, is_own_chat
from taproof.messengers.telegram.types import CallbackQuery, InaccessibleMessage, ShownMessage
from taproof.messengers.telegram.user_control_replies import BLOCK, REPORT, REPORT_SIGN_IN, UNBLOCK
from taproof.messengers.texts.catalog import known_language
from taproof.service.sessions.decide import Decisions
from taproof.service.sessions.prompts import Prompts

SAFE: Final = frozenset({CANCEL, REPORT, REPORT_SIGN_IN, BLOCK})
"""The buttons that work whatever their message shows, because they sign nobody in. The messenger vouches for the user
who tapped, and each of them changes only this user's own sessions and blocks."""
DECIDES: Final = frozenset({CONFIRM, MATCH, WITHOUT_PHONE})
_TOKEN: Final = re.compile(r"([A-Za-z0-9_-]{43})(?::[0-2])?")
_ID_LENGTH: Final = 64
_WITHOUT_MESSAGE: Final = {"no_message", "inline_message"}
ELSEWHERE: Final = frozenset({"other_chat", "not_a_person"})
"""The reasons why not even the buttons of `SAFE` work: the bot acts for people in their private chats only, so this is
no tap on a message that it sent."""

_Given = Literal["renewed", "limited", "outcome", "offered", "none"]
"""The answer to the user: a fresh prompt, none because of the limit, the session's outcome, a fresh list, or a
sentence."""

_log = structlog.get_logger(__name__)


class UnverifiedTaps:
    """Answers taps that are not proven. `handlers` has the commands whose lists are offered again."""

    def __init__(
        self, decisions: Decisions, prompts: Prompts, shown: SessionPrompts, handlers: Handlers, limits: ReplyLimits
    ) -> None:
        self._decisions = decisions
        self._prompts = prompts
        self._shown = shown
        self._handlers = handlers
        self._limits = limits

    async def answer(self, tap: ButtonTap, query: CallbackQuery, checked: CheckedTap, act: str, data: str) -> None:
        """Answer a tap that has no effect. Log why, and what the user got."""
        token = _TOKEN.fullmatch(data)
        answer: _Given = "none"
        if checked.refusal in ELSEWHERE:
            await tap.answer(tap.texts.foreign, alert=True)
        elif checked.refusal == "no_data":
            await tap.answer(tap.texts.unknown, alert=True)
        elif act in DECIDES and token is not None:
            answer = await self._show_session(tap, query, checked.refusal, token[1])
        elif checked.refusal == "button_gone":
            await tap.answer(tap.texts.control.gone)
        elif act == UNBLOCK and "unblock" in self._handlers.commands and self._limits.spend_reply(tap.user.id):
            answer = "offered"
            await self._handlers.commands["unblock"](tap, "")
            await tap.answer(tap.texts.renewed)
        else:
            await tap.answer(tap.texts.stale_button, alert=True)
        _log.info("bot_tap_refused", reason=checked.refusal, entities=loggable(checked.entities), answer=answer)

    async def find_message(self, tap: ButtonTap, act: str, data: str) -> ButtonTap:
        """Return a tap of `SAFE` with the message that shows its session, if the tap does not tell it."""
        if tap.message_id is not None or act not in {CANCEL, REPORT}:
            return tap
        message_id = await self._prompts.find_message(data, tap.bot_id, tap.user_id)
        return dataclasses.replace(tap, message_id=message_id)

    async def _show_session(
        self, tap: ButtonTap, query: CallbackQuery, refusal: TapRefusal | None, session_token: str
    ) -> _Given:
        seen = await self._decisions.look_at_session(session_token, tap.user_id, tap.bot_id)
        if seen.outcome not in {"opened", "returning"}:
            await tap.answer(outcome_notice(tap.texts, seen), alert=seen.outcome in {"foreign", "unknown"})
            return "outcome"
        if refusal == "button_gone" and _offers(query, session_token):
            # The second of two quick taps: the message already shows the result of the first.
            await tap.answer(tap.texts.control.gone)
            return "none"
        language = known_language(tap.user.language_code)
        renewal = await self._prompts.renew_prompt(
            session_token, tap.bot_id, tap.user_id, language, query.id[:_ID_LENGTH]
        )
        if renewal.state == "refused":
            await tap.answer(tap.texts.cannot_verify, alert=True)
            return "limited"
        current = renewal.message_id
        earlier = set() if current is None and renewal.state == "sent" else {tap.message_id, current}
        if renewal.state == "begun":
            if refusal in _WITHOUT_MESSAGE:
                await restore_callback_mode(tap.bot)
            # The user owns the session, so this changes no owner.
            seen = await self._decisions.open_session(session_token, tap.user_id, tap.bot_id)
            current = await self._shown.send(tap, session_token, seen)
        for message_id in earlier - {current, None}:
            await dataclasses.replace(tap, message_id=message_id).replace(Reply(tap.texts.renewed))
        # Without its message, the tap may come from another chat, where the user does not see the fresh prompt.
        await tap.answer(tap.texts.renewed, alert=tap.message_id is None)
        return "renewed"


def tap_of(query: CallbackQuery, bot: Bot, bot_id: int, hurry: asyncio.Event, signer: ButtonSigner) -> ButtonTap:
    """Return a tap with its message, if the message may be edited because it is in the user's own chat."""
    user, message = query.from_user, query.message
    message_id = thread_id = None
    if isinstance(message, InaccessibleMessage | ShownMessage) and is_own_chat(message, user):
        message_id = message.message_id
        thread_id = thread_of(message) if isinstance(message, ShownMessage) else None
    return ButtonTap(bot, bot_id, user, hurry, signer, query.id, message_id, thread_id=thread_id)


def _offers(query: CallbackQuery, session_token: str) -> bool:
    """Return whether the message has another button of this session."""
    markup = query.message.reply_markup if isinstance(query.message, ShownMessage) else None
    buttons = [] if markup is None else [each for row in markup.inline_keyboard for each in row]
    return any(session_token in (each.callback_data or "") for each in buttons)
