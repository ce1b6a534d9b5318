"""Asks the messenger whose a bot token is, for a developer who gives a project its own bot."""

import ssl
from typing import Final

from aiogram.exceptions import TelegramAPIError, TelegramNotFound, TelegramUnauthorizedError

from taproof.bot.connection import bot_on, open_session
from taproof.core.errors import BotTokenRefused, MessengerUnavailable
from taproof.service.bots import BotAccount

ASK_SECONDS: Final = 10


async def fetch_account(token: str, api_url: str, *, tls: ssl.SSLContext | None = None) -> BotAccount:
    """Return the bot that has this token.

    Raises:
        BotTokenRefused: no bot has it.
        MessengerUnavailable: there is no usable answer just now.
    """
    session = open_session(api_url, tls=tls)
    try:
        me = await bot_on(session, token).get_me(request_timeout=ASK_SECONDS)
    except (TelegramUnauthorizedError, TelegramNotFound):
        raise BotTokenRefused from None
    except TelegramAPIError:
        raise MessengerUnavailable(
            "The messenger cannot be asked about this bot just now, so nothing was changed. Try again in a moment."
        ) from None
    finally:
        await session.close()
    if not me.is_bot or not me.username:
        raise BotTokenRefused
    return BotAccount(me.id, me.username)
