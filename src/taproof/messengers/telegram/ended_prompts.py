"""Edits the prompts of sessions that their application cancelled, in every process that may run the bot."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from taproof.core.errors import StoreUnavailable
from taproof.core.stacks import describe_stack
from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError, TelegramBadRequest, TelegramForbiddenError
from taproof.messengers.telegram.chat import Reply
from taproof.messengers.telegram.prompts import keyboard_gone, outcome_reply
from taproof.messengers.telegram.signed_buttons import ButtonSigner
from taproof.messengers.texts.catalog import texts_for
from taproof.service.sessions.prompts import Prompts, PromptToEdit
from taproof.service.sessions.seen import SeenSession

LOOK_SECONDS: Final = 1.0
"""The interval between checks for prompts that other processes ended."""
AT_ONCE: Final = 10
"""The maximum number of messages that are edited concurrently. Telegram allows about 30 messages a second."""

FindBot = Callable[[int], Awaitable[Bot | None]]
"""Returns the bot with an id as the services use it; None if it cannot be used now."""

_log = structlog.get_logger(__name__)


class EndedPrompts:
    """Edits ended prompts.

    A message is claimed first, so that no two processes edit it. If this process ends before the edit is recorded,
    another one repeats it when the claim lapses. If the Bot API fails or the bot cannot be used, the edit is tried
    again after growing pauses, until `Prompts` drops it an hour after the session's expiry. `ended` is set when a
    session in this process was cancelled.
    """

    def __init__(self, prompts: Prompts, find_bot: FindBot, signer: ButtonSigner, ended: asyncio.Event) -> None:
        self._signer = signer
        self._prompts = prompts
        self._find_bot = find_bot
        self._ended = ended

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Edit prompts until `stopping` is set, then finish the edits in progress."""
        while not stopping.is_set():
            self._ended.clear()
            try:
                more = await self.edit_some() == AT_ONCE
            except StoreUnavailable:
                more = False
            except Exception as error:  # noqa: BLE001 — later prompts must still be edited.
                _log.error("prompt_edit_failed", error=type(error).__name__, stack=describe_stack(error))
                more = False
            if not more:
                await _first_of(stopping, self._ended)

    async def edit_some(self) -> int:
        """Edit some of the prompts that are due; return how many were edited or postponed."""
        claimed = await self._prompts.claim_ended_prompts(AT_ONCE)
        results = await asyncio.gather(*(self._edit(each) for each in claimed), return_exceptions=True)
        failures = [each for each in results if isinstance(each, Exception)]
        for failure in failures:
            # The claim lapses, and a process tries again. The store reports its own outages.
            if not isinstance(failure, StoreUnavailable):
                _log.error("prompt_edit_failed", error=type(failure).__name__, stack=describe_stack(failure))
        return len(claimed) - len(failures)

    async def _edit(self, to_edit: PromptToEdit) -> None:
        shown = to_edit.ended.prompt
        texts = texts_for(shown.language)
        try:
            bot = await self._find_bot(shown.bot_id)
            if bot is None:
                await self._prompts.postpone(to_edit)
                return
            chat_id, message_id = int(shown.messenger_id), shown.message_id or 0
            name, cancelled_at = to_edit.project_name, to_edit.cancelled_at
            seen = SeenSession("withdrawn", name, decided_at=cancelled_at, project_id=to_edit.project_id)
            await self._edit_message(bot, chat_id, message_id, outcome_reply(texts, seen, session_token=""))
            if to_edit.phone_asked:
                gone = keyboard_gone(texts)
                await bot.send_message(chat_id, gone.text, gone.keyboard)
        except TelegramForbiddenError:
            pass  # The user has blocked the bot, so the message stays as it is. A tap on it says who cancelled.
        except TelegramAPIError as trouble:
            _log.warning("prompt_edit_deferred", reason=type(trouble).__name__)
            await self._prompts.postpone(to_edit)
            return
        await self._prompts.finish(to_edit.ended)

    async def _edit_message(self, bot: Bot, chat_id: int, message_id: int, reply: Reply) -> None:
        buttons = reply.buttons and self._signer.sign(bot.id, chat_id, reply.text, reply.buttons, edited=True)
        try:
            await bot.edit_message_text(chat_id, message_id, reply.text, buttons)
        except TelegramBadRequest as refusal:
            # The message already has this text, or the user has deleted it.
            _log.info("bot_prompt_gone", reason=refusal.message)


async def _first_of(*events: asyncio.Event) -> None:
    """Wait for one of the events, or for `LOOK_SECONDS`."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
