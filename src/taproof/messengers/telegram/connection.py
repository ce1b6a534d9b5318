"""The connection to the Bot API: messages to the operator when it fails, and waits between attempts."""

import asyncio
from collections.abc import Callable
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
"""Maximum time, in seconds, that the Bot API can make a call wait, other than a reply."""

_log = structlog.get_logger(__name__)


class BotTokenRefusedError(Exception):
    """The Bot API does not accept this token. The message says what to check."""


class BotApiUnreachableError(Exception):
    """The Bot API returned no usable answer. The message says why."""


async def fetch_username(bot: Bot) -> str:
    """Return the bot's username, which is part of its links: `https://t.me/<username>`. Ask the Bot API once.

    Raises:
        BotTokenRefusedError: no bot has this token.
        BotApiUnreachableError: the Bot API returned no usable answer.
    """
    try:
        me = await bot.get_me()
    except (TelegramUnauthorizedError, TelegramNotFound):
        raise BotTokenRefusedError(
            "The Bot API does not recognise this bot token. Check TAPROOF_BOT_TOKEN; @BotFather shows the right one.",
        ) from None
    except TelegramAPIError as trouble:
        raise BotApiUnreachableError(
            f"The Bot API cannot be reached ({trouble.message}). Check the network and TAPROOF_BOT_API_URL.",
        ) from None
    if not me.username:
        raise BotTokenRefusedError("TAPROOF_BOT_TOKEN belongs to an account that is not a bot.")
    return me.username


class Reconnection:
    """Waits between attempts to reach the Bot API. Logs a failure once, and logs when the Bot API answers again.

    `show` is called with 1 at each failure, and with 0 when the Bot API answers.
    """

    def __init__(self, show: Callable[[int], None] = lambda _failing: None) -> None:
        self._show = show
        self._failures = 0
        self._logged = ""

    async def wait(self, trouble: TelegramAPIError) -> None:
        """Wait before the next attempt: as long as the Bot API requests, up to an hour, or 1 s growing to 30 s."""
        self._show(1)
        delay = min(2**self._failures, LONGEST_DELAY)
        self._failures = min(self._failures + 1, 10)
        if isinstance(trouble, TelegramUnauthorizedError | TelegramNotFound):
            delay = LONGEST_DELAY
            self._log_once(
                "bot_token_refused", trouble, "Check TAPROOF_BOT_TOKEN: the Bot API does not recognise this token."
            )
        elif isinstance(trouble, TelegramConflictError):
            self._log_once("bot_conflict", trouble, "Another program receives this bot's updates. Stop it.")
        elif isinstance(trouble, TelegramRetryAfter):
            delay = min(max(trouble.retry_after, 1), LONGEST_SILENCE)
            self._log_once("bot_flood_wait", trouble, f"The Bot API accepts no calls for {delay} s.")
        elif isinstance(trouble, TelegramNetworkError):
            self._log_once("bot_api_unreachable", trouble, "Check the network and TAPROOF_BOT_API_URL. Still trying.")
        else:
            self._log_once("bot_api_error", trouble, "The Bot API refuses the call. Still trying.")
        await asyncio.sleep(delay)

    def succeeded(self) -> None:
        """Record that the Bot API answered."""
        self._show(0)
        if self._logged:
            _log.info("bot_api_reached")
        self._failures = 0
        self._logged = ""

    def _log_once(self, event: str, trouble: TelegramAPIError, advice: str) -> None:
        if self._logged != event:
            _log.error(event, reason=trouble.message, advice=advice)
        self._logged = event
