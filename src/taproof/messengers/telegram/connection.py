"""The connection to the Bot API: messages to the operator when it fails, and waits between attempts."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from taproof.messengers.telegram.bot_api import (
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)

LONGEST_DELAY: Final = 30
LONGEST_SILENCE: Final = 3600
"""Maximum time, in seconds, that the Bot API can make a call wait, other than a reply."""

_log = structlog.get_logger(__name__)


class BotTokenRefusedError(Exception):
    """The Bot API does not accept this token. The message says what to check."""


def is_logged_out(trouble: TelegramAPIError) -> bool:
    """Return whether the bot was logged out of this server (core.telegram.org/bots/api#logout)."""
    return isinstance(trouble, TelegramBadRequest) and "logged out" in trouble.message.lower()


def advice_for(trouble: TelegramAPIError) -> str:
    """Return what the operator can do about a failure."""
    if isinstance(trouble, TelegramUnauthorizedError):
        return "The Bot API does not recognise this bot token. Check TAPROOF_BOT_TOKEN; @BotFather shows the right one."
    if isinstance(trouble, TelegramConflictError):
        return "Another program receives this bot's updates. Stop it."
    if isinstance(trouble, TelegramRetryAfter):
        return f"The Bot API accepts no calls for {_flood_wait(trouble)} s."
    if isinstance(trouble, TelegramNetworkError):
        return "Check the network and TAPROOF_BOT_API_URL. Still trying."
    if is_logged_out(trouble):
        return "The bot was moved to another Bot API server. Set TAPROOF_BOT_API_URL to that one, or wait 10 minutes."
    return "The Bot API refuses the call. Still trying."


def _flood_wait(trouble: TelegramRetryAfter) -> int:
    return min(max(trouble.retry_after, 1), LONGEST_SILENCE)


class Reconnection:
    """Waits between attempts to reach the Bot API. Logs a failure once, and logs when the Bot API answers again.

    `show` is called with 1 at each failure, and with 0 when the Bot API answers. `longest_delay` is in seconds.
    """

    def __init__(self, show: Callable[[int], None], longest_delay: float = LONGEST_DELAY) -> None:
        self._show = show
        self._longest_delay = longest_delay
        self._failures = 0
        self._logged = ""

    async def wait(self, trouble: TelegramAPIError) -> None:
        """Wait before the next attempt: as long as the Bot API requests, up to an hour, or 1 s growing to 30 s."""
        self._show(1)
        delay = min(2**self._failures, self._longest_delay)
        self._failures = min(self._failures + 1, 10)
        if isinstance(trouble, TelegramUnauthorizedError):
            delay = self._longest_delay
            self._log_once("bot_token_refused", trouble)
        elif isinstance(trouble, TelegramConflictError):
            self._log_once("bot_conflict", trouble)
        elif isinstance(trouble, TelegramRetryAfter):
            delay = _flood_wait(trouble)
            self._log_once("bot_flood_wait", trouble)
        elif isinstance(trouble, TelegramNetworkError):
            self._log_once("bot_api_unreachable", trouble)
        elif is_logged_out(trouble):
            self._log_once("bot_logged_out", trouble)
        else:
            self._log_once("bot_api_error", trouble)
        await asyncio.sleep(delay)

    def succeeded(self) -> None:
        """Record that the Bot API answered."""
        self._show(0)
        if self._logged:
            _log.info("bot_api_reached")
        self._failures = 0
        self._logged = ""

    def _log_once(self, event: str, trouble: TelegramAPIError) -> None:
        if self._logged != event:
            _log.error(event, reason=trouble.message, advice=advice_for(trouble))
        self._logged = event
