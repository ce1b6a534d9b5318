"""Reaching the Bot API: what the operator is told when that fails, and how long to wait before the next attempt."""

import asyncio
from typing import Final

import structlog

from taproof.messengers.telegram.bot_api import (
    Bot,
    TelegramAPIError,
    TelegramConflictError,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)

LONGEST_DELAY: Final = 30
LONGEST_SILENCE: Final = 3600
"""How long a call that is not a reply is put off at most, whatever the Bot API asks for."""

_log = structlog.get_logger(__name__)


class BotTokenRefusedError(Exception):
    """The Bot API does not know this token. The sentence says what to check."""


class BotApiUnreachableError(Exception):
    """The Bot API gave no usable answer. The sentence says why."""


async def fetch_username(bot: Bot) -> str:
    """Ask the Bot API once for the bot's username, which its links are made of: `https://t.me/<username>`.

    Raises:
        BotTokenRefusedError: no bot has this token.
        BotApiUnreachableError: there is no usable answer just now.
    """
    try:
        me = await bot.get_me()
    except (TelegramUnauthorizedError, TelegramNotFound):
        raise BotTokenRefusedError(
            "The Bot API does not know this bot token. Check TAPROOF_BOT_TOKEN; @BotFather shows the right one.",
        ) from None
    except TelegramAPIError as trouble:
        raise BotApiUnreachableError(
            f"The Bot API cannot be asked ({trouble.message}). Check the network and TAPROOF_BOT_API_URL.",
        ) from None
    if not me.username:
        raise BotTokenRefusedError("TAPROOF_BOT_TOKEN belongs to an account that is not a bot.")
    return me.username


class Reconnection:
    """Waits between attempts to reach the Bot API, and says once what is wrong and once that it is over."""

    def __init__(self) -> None:
        self._failures = 0
        self._told = ""

    async def wait(self, trouble: TelegramAPIError) -> None:
        """Wait as long as this trouble calls for: what the Bot API asks for, up to an hour; or 1 to 30 s, growing."""
        delay = min(2**self._failures, LONGEST_DELAY)
        self._failures = min(self._failures + 1, 10)
        if isinstance(trouble, TelegramUnauthorizedError | TelegramNotFound):
            delay = LONGEST_DELAY
            self._tell("bot_token_refused", trouble, "Check TAPROOF_BOT_TOKEN: the Bot API does not know this token.")
        elif isinstance(trouble, TelegramConflictError):
            self._tell("bot_conflict", trouble, "Another program receives this bot's updates. Stop it.")
        elif isinstance(trouble, TelegramRetryAfter):
            delay = min(max(trouble.retry_after, 1), LONGEST_SILENCE)
            self._tell("bot_flood_wait", trouble, f"The Bot API asks for {delay} s of silence.")
        elif isinstance(trouble, TelegramNetworkError):
            self._tell("bot_api_unreachable", trouble, "Check the network and TAPROOF_BOT_API_URL. Still trying.")
        else:
            self._tell("bot_api_error", trouble, "The Bot API refuses the call. Still trying.")
        await asyncio.sleep(delay)

    def succeeded(self) -> None:
        """Note that the Bot API answered."""
        if self._told:
            _log.info("bot_api_reached")
        self._failures = 0
        self._told = ""

    def _tell(self, event: str, trouble: TelegramAPIError, advice: str) -> None:
        if self._told != event:
            _log.error(event, reason=trouble.message, advice=advice)
        self._told = event
