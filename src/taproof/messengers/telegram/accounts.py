"""Looks up a token's bot account, for developers who set up a project bot."""

from typing import Final

from taproof.core.errors import BotTokenRefused, MessengerUnavailable
from taproof.messengers.telegram.bot_api import Bot, BotApiClient, TelegramAPIError, TelegramUnauthorizedError
from taproof.service.bots import BotAccount

ASK_SECONDS: Final = 10


async def fetch_account(api: BotApiClient, token: str) -> BotAccount:
    """Return the account of the bot that has this token.

    Raises:
        BotTokenRefused: no bot has this token.
        MessengerUnavailable: the Bot API returned no usable answer.
    """
    try:
        me = await Bot(api, token).get_me(seconds=ASK_SECONDS)
    except TelegramUnauthorizedError:
        raise BotTokenRefused from None
    except TelegramAPIError:
        raise MessengerUnavailable(
            "The messenger cannot be reached to check this bot, so nothing was changed. Try again in a moment."
        ) from None
    if not me.is_bot or not me.username:
        raise BotTokenRefused
    return BotAccount(me.id, me.username)
