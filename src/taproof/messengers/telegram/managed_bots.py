"""Bots that developers have created to be managed by the service's own bot (Bot API 9.6)."""

from functools import partial

from taproof.core.errors import MessengerUnavailable
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.types import ManagedBotUpdated
from taproof.service.bots import BotAccount
from taproof.service.managed_bots import ManagedBots


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
