"""Watches a bot's account: its username, which its links contain, and whether the messenger accepts its token.

The service's own bot and project bots are watched in the same way. An operator can rename a bot or revoke its token in
@BotFather at any time, and the messenger reports neither.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import structlog

from taproof.core.errors import StoreUnavailable
from taproof.core.service_bot import ServiceBot
from taproof.core.stacks import describe_stack
from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError, TelegramRetryAfter, TelegramUnauthorizedError
from taproof.messengers.telegram.connection import LONGEST_SILENCE, advice_for
from taproof.messengers.telegram.types import BotFullInfo
from taproof.service.bots import Bots

REFUSALS: Final = 3
"""The number of refusals in a row before the token of the service's own bot counts as refused."""

_log = structlog.get_logger(__name__)


class WatchTimes(NamedTuple):
    """The intervals for watching an account, in seconds."""

    account: float = 60.0
    """The interval between two reads of a bot's account. Links with an old username do not work in the meantime."""
    first_retry: float = 0.5
    retry: float = 5.0
    """The longest wait before the account of the service's own bot is read again after a failure."""


WATCH_TIMES: Final = WatchTimes()


async def watch_account(
    bot: Bot,
    learned: Callable[[BotFullInfo], Awaitable[None]],
    failed: Callable[[TelegramAPIError], Awaitable[None]],
    longest_retry: float | None = None,
    times: WatchTimes = WATCH_TIMES,
) -> None:
    """Read a bot's account every minute until cancelled, and call `learned` with it.

    After a failure, call `failed` and wait 0.5 s, growing to `longest_retry` or a minute; longer if the messenger
    demands it.
    """
    longest_retry = longest_retry or times.account
    retry = times.first_retry
    while True:
        seconds = times.account
        try:
            try:
                await learned(await bot.get_me())
                retry = times.first_retry
            except TelegramAPIError as trouble:
                seconds, retry = min(retry, longest_retry), min(2 * retry, longest_retry)
                if isinstance(trouble, TelegramRetryAfter):
                    seconds = min(max(trouble.retry_after, seconds), LONGEST_SILENCE)
                await failed(trouble)
        except StoreUnavailable:
            seconds = times.retry
        except Exception as error:  # noqa: BLE001 — the bot still works with what is known.
            _log.error("bot_watch_failed", error=type(error).__name__, stack=describe_stack(error))
        await asyncio.sleep(seconds)


class ServiceBotWatch:
    """Watches the service's own bot, and records its account in `bots` for processes without its token.

    `know` is called with the account whenever it was read, and when the token is refused. `is_known` returns whether
    links can be created.
    """

    def __init__(
        self,
        bot: Bot,
        token: str,
        bots: Bots,
        know: Callable[[ServiceBot], None],
        is_known: Callable[[], bool],
        *,
        times: WatchTimes = WATCH_TIMES,
    ) -> None:
        self._bot = bot
        self._token_hash = hashlib.sha256(token.encode()).hexdigest()[:16]
        self._bots = bots
        self._know = know
        self._is_known = is_known
        self._times = times
        self._refusals = 0
        self._logged = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        await watch_account(self._bot, self._learned, self._failed, self._times.retry, self._times)

    async def _learned(self, me: BotFullInfo) -> None:
        if not me.username:
            await self._failed(TelegramUnauthorizedError("The token belongs to an account that is not a bot."))
            return
        self._refusals, self._logged = 0, ""
        account = ServiceBot(self._bot.id, me.username, self._token_hash, bool(me.can_manage_bots))
        self._know(account)
        await self._bots.record_service_bot(account)

    async def _failed(self, trouble: TelegramAPIError) -> None:
        self._refusals = self._refusals + 1 if isinstance(trouble, TelegramUnauthorizedError) else 0
        if not self._is_known() and self._logged != trouble.message:
            self._logged = trouble.message
            advice = f"{advice_for(trouble)} No sign-in can start yet."
            _log.error("bot_username_unknown", reason=trouble.message, advice=advice)
        if self._refusals >= REFUSALS:  # Later refusals too: the store may have been unavailable at the first.
            self._know(ServiceBot(self._bot.id, "", self._token_hash, is_refused=True))
            await self._bots.record_refusal(self._token_hash)
