"""Bots that developers have created to be managed by the service's own bot (Bot API 9.6)."""

import asyncio
from functools import partial
from typing import Final

from taproof.core.errors import MessengerUnavailable
from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError
from taproof.messengers.telegram.types import ManagedBotUpdated
from taproof.service.bots import BotAccount
from taproof.service.managed_bots import ManagedBots

ASK_SECONDS: Final = 5
KNOWN_SECONDS: Final = 60.0
"""The time for which the answer of `Manager` is reused."""


class Manager:
    """The service's own bot, as the manager of other bots.

    `bot` is None until it is known, and on a node that has no bot.
    """

    def __init__(self) -> None:
        self.bot: Bot | None = None
        self._username: str | None = None
        self._asked_at = -KNOWN_SECONDS

    async def find_username(self) -> str | None:
        """Return the bot's username if it may manage bots; None if it may not, or if the Bot API does not answer."""
        now = asyncio.get_running_loop().time()
        if self.bot is not None and now - self._asked_at >= KNOWN_SECONDS:
            self._asked_at = now
            try:
                me = await self.bot.get_me(seconds=ASK_SECONDS)
            except TelegramAPIError:
                self._username = None
            else:
                self._username = me.username if me.can_manage_bots else None
        return self._username


async def adopt_managed_bot(managed_bots: ManagedBots, updated: ManagedBotUpdated, bot: Bot) -> None:
    """Handle the update that a bot was created, or got another token or owner.

    Raises:
        TelegramAPIError: the token could not be fetched.
        TimeoutError: the token could not be checked.
    """
    created = updated.bot
    if not created.is_bot or not created.username or updated.user.is_bot:
        return
    account = BotAccount(created.id, created.username)
    try:
        await managed_bots.adopt_bot(str(updated.user.id), account, partial(bot.get_managed_bot_token, created.id))
    except MessengerUnavailable:
        raise TimeoutError from None  # The update is delivered again.
