"""Asks the messenger whose a bot token is, for developers who give projects their own bots."""

import ssl
from typing import Final

from aiogram.exceptions import TelegramAPIError, TelegramNotFound, TelegramUnauthorizedError

from taproof.core.errors import BotTokenRefused, MessengerUnavailable
from taproof.messengers.telegram.connection import bot_on, open_session
from taproof.service.bots import BotAccount

ASK_SECONDS: Final = 10


class Accounts:
    """Asks over one connection, as many as there are who want to know. Close it at the end.

    Making one takes long, as all certificate authorities are read: it is not done for each question.

    Args:
        api_url: the Bot API's address.
        tls: what to trust instead of the public certificate authorities.
    """

    def __init__(self, api_url: str, *, tls: ssl.SSLContext | None = None) -> None:
        self._session = open_session(api_url, tls=tls)

    async def fetch_account(self, token: str) -> BotAccount:
        """Return the bot that has this token.

        Raises:
            BotTokenRefused: no bot has it.
            MessengerUnavailable: there is no usable answer just now.
        """
        try:
            me = await bot_on(self._session, token).get_me(request_timeout=ASK_SECONDS)
        except (TelegramUnauthorizedError, TelegramNotFound):
            raise BotTokenRefused from None
        except TelegramAPIError:
            raise MessengerUnavailable(
                "The messenger cannot be asked about this bot just now, so nothing was changed. Try again in a moment."
            ) from None
        if not me.is_bot or not me.username:
            raise BotTokenRefused
        return BotAccount(me.id, me.username)

    async def close(self) -> None:
        """Disconnect."""
        await self._session.close()
