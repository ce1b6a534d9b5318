"""The bot's answers to messages and button taps (contract.md, Messenger).

`service/sessions/decide.py` makes the decision. It is safe to repeat, so a repeated update has one effect.
"""

import asyncio
import dataclasses
import functools
import re
from typing import Final

import structlog

from taproof.core.clock import Clock
from taproof.core.errors import MessengerUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.core.service_bot import SERVICE_BOT
from taproof.http.metrics import TapRefusal
from taproof.messengers.reply_limits import ReplyLimits
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.chat import (
    ButtonTap,
    Handlers,
    PrivateChat,
    Reply,
    TapResult,
    loggable,
    send_to_group,
    thread_of,
)
from taproof.messengers.telegram.payloads import read_command
from taproof.messengers.telegram.prompts import (
    CANCEL,
    CONFIRM,
    MATCH,
    WITHOUT_PHONE,
    keyboard_gone,
    outcome_notice,
    outcome_reply,
    phone_keyboard,
    phone_reply,
    wrong_contact_reply,
)
from taproof.messengers.telegram.session_prompts import SessionPrompts
from taproof.messengers.telegram.signed_buttons import ButtonSigner, is_own_chat, shows
from taproof.messengers.telegram.types import (
    CallbackQuery,
    ChatMemberUpdated,
    ManagedBotUpdated,
    Message,
    ReplyKeyboardRemove,
    Update,
)
from taproof.messengers.telegram.unverified_taps import ELSEWHERE, SAFE, UnverifiedTaps, tap_of
from taproof.messengers.telegram.user_control_replies import commands_help
from taproof.messengers.texts.catalog import texts_for
from taproof.service.bots import BotAccount
from taproof.service.managed_bots import ManagedBots
from taproof.service.sessions.decide import Decisions
from taproof.service.sessions.prompts import Prompts
from taproof.service.sessions.seen import SeenSession

_TAP: Final = re.compile(r"([a-z]{1,2}):(.*)", re.DOTALL)
_TOKEN: Final = re.compile(r"([A-Za-z0-9_-]{43})(?::([0-2]))?")
_WRITTEN: Final = (
    *("text", "contact", "location", "photo", "sticker", "document"),
    *("animation", "audio", "video", "video_note", "voice", "rich_message"),
)
_CHOICES: Final = {CONFIRM, CANCEL, MATCH, WITHOUT_PHONE}
_log = structlog.get_logger(__name__)


class Conversation:
    """Answers one update at a time. Its only state is the number of messages to each user.

    Only two replies wait until the Bot API's flood limit ends, because a sign-in needs them: the prompt, and the
    outcome of a decision that was just made. Any other reply that exceeds the limit is not sent. `handlers` handle all
    other commands and buttons.
    """

    def __init__(
        self,
        decisions: Decisions,
        signer: ButtonSigner,
        clock: Clock,
        handlers: Handlers | None = None,
        limits: ReplyLimits | None = None,
        *,
        prompts: Prompts,
        managed_bots: ManagedBots | None = None,
    ) -> None:
        self._prompts = prompts
        self._managed_bots = managed_bots
        self._decisions = decisions
        self._signer = signer
        self._handlers = handlers or Handlers()
        self._limits = limits or ReplyLimits(clock)
        self._shown = SessionPrompts(prompts, clock)
        self._unverified = UnverifiedTaps(decisions, prompts, self._shown, self._handlers, self._limits)

    async def on_update(self, update: Update, bot: Bot, bot_id: int, hurry: asyncio.Event) -> TapRefusal | None:
        """Answer an update of `bot`. Return why a tap had no effect. For `bot_id` and `hurry`, see `PrivateChat`."""
        if update.callback_query is not None:
            return await self.on_tap(update.callback_query, bot, bot_id, hurry)
        if update.message is not None:
            await self.on_message(update.message, bot, bot_id, hurry)
        elif update.my_chat_member is not None:
            await self.on_membership(update.my_chat_member, bot_id)
        elif update.managed_bot is not None and bot_id == SERVICE_BOT:
            await self._adopt_bot(update.managed_bot, bot)
        return None

    async def on_message(self, message: Message, bot: Bot, bot_id: int, hurry: asyncio.Event) -> None:
        """Answer a message: an opened link, or anything else that a person writes to the bot."""
        user = message.from_user
        if user is None or user.is_bot:
            return
        command, mention, payload = read_command(message)
        if message.chat.type != "private":
            is_meant = command == "start" and (mention is None or await _is_me(bot, mention))
            if is_meant and self._limits.spend_reply(user.id):
                await send_to_group(bot, message.chat.id, texts_for(user.language_code).private_only)
            return
        if not is_own_chat(message, user):
            return
        chat = PrivateChat(bot, bot_id, user, hurry, self._signer, thread_id=thread_of(message))
        handler = self._handlers.commands.get(command or "")
        if command == "start" and payload:
            await self._open(chat, payload)
        elif handler is not None:
            if self._limits.spend_reply(user.id):
                await handler(chat, payload)
        elif _is_worth_an_answer(message):
            await self._answer_other_message(chat, message, is_command=command is not None)

    async def on_tap(self, query: CallbackQuery, bot: Bot, bot_id: int, hurry: asyncio.Event) -> TapRefusal | None:
        """Decide a session for the user who tapped a button of the prompt, then show the outcome.

        Return why the tap had no effect, or None if it had one.
        """
        checked = self._signer.check(bot.id, query)
        found = _TAP.fullmatch(checked.data)
        act, data = (found[1], found[2]) if found is not None else ("", "")
        tap = tap_of(query, bot, bot_id, hurry, self._signer)
        if checked.refusal is not None and (act not in SAFE or checked.refusal in ELSEWHERE):
            await self._unverified.answer(tap, query, checked, act, data)
            return checked.refusal
        if checked.refusal is not None:
            tap = await self._unverified.find_message(tap, act, data)
        result = await self._act(tap, act, data)
        if result == "done":
            if checked.refusal is not None:
                _log.info("bot_tap_unverified", reason=checked.refusal, entities=loggable(checked.entities))
            return None
        refusal = checked.refusal or result
        _log.info("bot_tap_refused", reason=refusal, entities=loggable(checked.entities), answer="outcome")
        return refusal

    async def _act(self, tap: ButtonTap, act: str, data: str) -> TapResult:
        """Do what a button says."""
        handler = self._handlers.taps.get(act)
        if handler is not None:
            return await handler(tap, data)
        found = _TOKEN.fullmatch(data)
        if found is None or act not in _CHOICES or (found[2] is not None) is not (act == MATCH):
            await tap.answer(tap.texts.unknown)
            return "unknown_session"
        seen = await self._decide(tap, act, found[1], found[2])
        await self._show_decision(tap, found[1], seen)
        if seen.outcome == "foreign":
            return "foreign"
        return "unknown_session" if seen.outcome == "unknown" else "done"

    async def on_membership(self, change: ChatMemberUpdated, bot_id: int) -> None:
        """Record that a user blocked or unblocked the bot. Log that a user blocked it, or that a group removed it."""
        status, user_id = change.new_chat_member.status, str(change.chat.id)
        if status == "kicked":
            _log.info("bot_blocked", chat_type=change.chat.type)
        if change.chat.type != "private":
            return
        if status == "kicked":
            await self._prompts.mark_unreachable(bot_id, user_id)
        elif status == "member":
            await self._prompts.mark_reachable(bot_id, user_id)

    async def _adopt_bot(self, updated: ManagedBotUpdated, bot: Bot) -> None:
        """Handle the update that a bot was created for this one to manage, or got another token or owner."""
        created = updated.bot
        if self._managed_bots is None or not created.is_bot or not created.username or updated.user.is_bot:
            return
        account = BotAccount(created.id, created.username)
        read_token = functools.partial(bot.get_managed_bot_token, created.id)
        try:
            await self._managed_bots.adopt_bot(str(updated.user.id), account, read_token)
        except MessengerUnavailable:
            raise TimeoutError from None  # The update is delivered again.

    async def _open(self, chat: PrivateChat, session_token: str) -> None:
        """Show the prompt of an opened link, unless this user has seen too many prompts recently."""
        decision = self._limits.spend_prompt(chat.user.id)
        if decision != "allowed":
            if decision == "refused":
                await chat.send(Reply(chat.texts.too_many))
            return
        shown = False
        try:
            seen = await self._decisions.open_session(session_token, chat.user_id, chat.bot_id)
            _log_seen("sign_in_opened", seen)
            if seen.outcome in {"opened", "phone", "returning"}:
                await self._shown.send(chat, session_token, seen)
                shown = True
            elif self._limits.spend_reply(chat.user.id):
                await chat.send(outcome_reply(chat.texts, seen, session_token))
        finally:
            # An update that could not be answered is delivered again and must not be counted twice.
            if not shown:
                self._limits.give_back_prompt(chat.user.id)

    async def _answer_other_message(self, chat: PrivateChat, message: Message, *, is_command: bool) -> None:
        """Answer a message other than a link or a known command: a contact that a sign-in waits for, or any text."""
        texts, contact = chat.texts, message.contact
        if contact is None and not self._limits.spend_reply(chat.user.id):
            return
        if is_command:
            seen = SeenSession("unknown")
        else:
            # A contact counts as the user's own only if they share it personally, not by a forward or another bot.
            is_own = contact is not None and message.forward_origin is None and message.via_bot is None
            owner = str(contact.user_id) if contact is not None and is_own and contact.user_id else None
            number = contact.phone_number if contact is not None else ""
            answers = functools.partial(_answers_request, chat, message)
            seen = await self._decisions.give_phone(_identity(chat), owner, number, chat.bot_id, answers=answers)
        if seen.changed:
            _log_seen("sign_in_decided", seen)
        elif contact is not None and not self._limits.spend_reply(chat.user.id):
            return
        if seen.outcome == "phone":
            await chat.send(wrong_contact_reply(texts, seen))
        elif contact is None:
            await chat.send(Reply(f"{texts.help}\n\n{commands_help(texts.control)}"))
        elif seen.outcome == "unknown":
            # The help message also removes a leftover button.
            await chat.send(Reply(texts.phone.unasked, keyboard=ReplyKeyboardRemove()))
        else:
            reply = outcome_reply(texts, seen, seen.session_token)
            if reply.buttons is not None:
                shown = await chat.send(reply, needed=seen.return_link is not None)
                if seen.outcome == "returning":
                    await self._shown.record(chat, seen.session_token, shown)
                reply = Reply(texts.phone.removed)
            await chat.send(dataclasses.replace(reply, keyboard=ReplyKeyboardRemove()), needed=seen.changed)

    async def _decide(self, tap: ButtonTap, choice: str, session_token: str, index: str | None) -> SeenSession:
        if choice == CANCEL:
            return await self._decisions.cancel_session(session_token, tap.user_id, tap.bot_id)
        if choice == WITHOUT_PHONE:
            return await self._decisions.continue_without_phone(session_token, _identity(tap), tap.bot_id)
        match_choice = None if index is None else int(index)
        return await self._decisions.confirm_session(session_token, _identity(tap), tap.bot_id, choice=match_choice)

    async def _show_decision(self, tap: ButtonTap, session_token: str, seen: SeenSession) -> None:
        """Replace a session's prompt with its outcome."""
        texts = tap.texts
        if seen.changed:
            _log_seen("sign_in_decided", seen)
        if seen.outcome == "foreign":
            await tap.answer(outcome_notice(texts, seen), alert=True)
        elif seen.outcome == "phone":
            shown = await tap.replace(phone_reply(texts, seen, session_token), needed=True)
            await self._shown.record(tap, session_token, shown)
            await tap.send(phone_keyboard(texts, seen), needed=True)
            await tap.answer(texts.phone.notice)
        elif seen.outcome == "opened":
            # The project has stopped asking for phone numbers in the meantime, so the prompt returns.
            shown = await tap.replace(await self._shown.make(tap, session_token, seen), needed=True)
            await self._shown.record(tap, session_token, shown)
            await tap.answer(texts.phone.over)
        else:
            # A repeated tap has made another return code, so its button is needed too.
            is_needed = seen.changed or seen.return_link is not None
            shown = await tap.replace(outcome_reply(texts, seen, session_token), needed=is_needed)
            if seen.outcome == "returning":
                await self._shown.record(tap, session_token, shown)
            if seen.phone_asked:
                await tap.send(keyboard_gone(texts), needed=seen.changed)
            await tap.answer(outcome_notice(texts, seen))


def _is_worth_an_answer(message: Message) -> bool:
    """Return whether a person sent the message, unlike a service message such as a pinned message."""
    if message.venue or message.live_photo:
        return False  # A venue also has a location.
    return any(getattr(message, kind) for kind in _WRITTEN)


def _identity(chat: PrivateChat) -> MessengerIdentity:
    return MessengerIdentity(chat.user_id, chat.user.full_name, chat.user.username or "")


def _log_seen(event: str, seen: SeenSession) -> None:
    _log.info(event, outcome=seen.outcome, project_id=seen.project_id, session_id=seen.session_id)


def _answers_request(chat: PrivateChat, message: Message, seen: SeenSession) -> bool:
    """Return whether a contact appears to come from the button that asks for it for this session.

    Telegram's apps for Android and the desktop send it as a reply to the message with the button. The apps for iOS,
    macOS and the web do not send it as a reply. A forward with a hidden sender looks the same, except for the name: it
    contains the name under which somebody saved the user. The button sends the account's own name.
    """
    contact, asked = message.contact, message.reply_to_message
    if asked is not None and (asked.date == 0 or asked.forum_topic_created):
        asked = None  # The messenger no longer has that message, or the contact is in a topic and replies to nothing.
    if contact is None or message.external_reply is not None or message.reply_to_story is not None:
        return False
    if asked is None:
        own = (chat.user.first_name, chat.user.last_name or "")
        return (contact.first_name.strip(), (contact.last_name or "").strip()) == tuple(map(str.strip, own))
    is_from_bot = asked.from_user is not None and asked.from_user.id == chat.bot.id
    asking = (phone_keyboard(chat.texts, seen), wrong_contact_reply(chat.texts, seen))
    return is_from_bot and any(shows(asked.text, each.text) for each in asking)


async def _is_me(bot: Bot, mention: str) -> bool:
    return mention.lower() == (await bot.read_username()).lower()
