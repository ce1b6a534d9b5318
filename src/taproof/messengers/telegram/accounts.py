"""Asks the messenger whose a bot token is, for developers who give projects their own bots."""

from typing import Final

from taproof.core.errors import BotTokenRefused, MessengerUnavailable
from taproof.messengers.telegram.bot_api import (
    Bot,
    BotApiClient,
    TelegramAPIError,
    TelegramNotFound,
    TelegramUnauthorizedError,
)
from taproof.service.bots import BotAccount

ASK_SECONDS: Final = 10


class Accounts:
    """Asks the Bot API. Close it at the end.

    Args:
        api: what the calls go through.
    """

    def __init__(self, api: BotApiClient) -> None:
        self._api = api

    async def fetch_account(self, token: str) -> BotAccount:
        """Return the bot that has this token.

        Raises:
            BotTokenRefused: no bot has it.
            MessengerUnavailable: there is no usable answer just now.
        """
        try:
            me = await Bot(self._api, token).get_me(seconds=ASK_SECONDS)
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
        await self._api.close()
