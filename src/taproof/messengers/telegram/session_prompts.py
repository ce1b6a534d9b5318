"""Sends the messages that show a session to its owner, and records them."""

from taproof.core.clock import Clock
from taproof.messengers.browsers import name_browser
from taproof.messengers.telegram.bot_api import TelegramForbiddenError
from taproof.messengers.telegram.chat import PrivateChat, Reply
from taproof.messengers.telegram.prompts import opened_reply, phone_keyboard
from taproof.messengers.texts.catalog import known_language
from taproof.service.sessions.prompts import Prompts
from taproof.service.sessions.seen import SeenSession


class SessionPrompts:
    """Shows sessions. Each method needs a session that waits for the user of the chat."""

    def __init__(self, prompts: Prompts, clock: Clock) -> None:
        self._prompts = prompts
        self._clock = clock

    async def make(self, chat: PrivateChat, session_token: str, seen: SeenSession) -> Reply:
        """Return the prompt: what was requested, by whom, and the buttons."""
        browser = await name_browser(seen.context.user_agent)
        return opened_reply(chat.texts, seen, session_token, self._clock(), browser)

    async def send(self, chat: PrivateChat, session_token: str, seen: SeenSession) -> int | None:
        """Send the prompt and return its id. Record the message, or that the user has blocked the bot."""
        try:
            message_id = await chat.send(await self.make(chat, session_token, seen), needed=True)
        except TelegramForbiddenError:
            language = known_language(chat.user.language_code)
            await self._prompts.record_prompt(session_token, chat.bot_id, chat.user_id, None, language)
            raise
        await self.record(chat, session_token, message_id)
        if seen.outcome == "phone":
            await chat.send(phone_keyboard(chat.texts, seen), needed=True)
        return message_id

    async def record(self, chat: PrivateChat, session_token: str, message_id: int | None) -> None:
        """Record the message that now shows a session, if one does."""
        if message_id is not None:
            language = known_language(chat.user.language_code)
            await self._prompts.record_prompt(session_token, chat.bot_id, chat.user_id, message_id, language)
