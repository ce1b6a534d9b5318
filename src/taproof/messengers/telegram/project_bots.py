"""Runs project bots, hundreds of them in one process, in the same way as the service's own bot.

Each bot has its own task. The bots share only the connection pool, the dispatcher and the store, so one slow bot does
not delay the others. The list of bots is read from the store every two seconds, so any node can change it. A bot whose
token the messenger refuses is marked broken and does not run until it has a new token.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import structlog

from taproof.core.errors import DecryptionFailed, StoreUnavailable
from taproof.core.project_bots import ProjectBot
from taproof.core.stacks import describe_stack
from taproof.messengers.telegram.account_watch import WATCH_TIMES, WatchTimes, watch_account
from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError, TelegramNetworkError, TelegramUnauthorizedError
from taproof.messengers.telegram.bot_settings import check_settings
from taproof.messengers.telegram.commands import announce_commands
from taproof.messengers.telegram.connection import LONGEST_DELAY, BotTokenRefusedError, Reconnection
from taproof.messengers.telegram.types import BotFullInfo
from taproof.service.bots import Bots

START_SECONDS: Final = 0.02
"""The interval between the starts of two bots. Each start opens one or two connections, which must not delay the
service's own bot."""
PACE_SECONDS: Final = 0.01
"""The interval between the starts of two updates of one bot. A hundred updates a second take at most a third of a
processor, so a flooded bot delays others by milliseconds."""
REFUSALS: Final = 2
"""The number of refusals in a row before a token counts as refused."""

ReceiveUpdates = Callable[[Bot, Reconnection], Coroutine[Any, Any, None]]
"""Receives the updates of a bot until cancelled, or until the `Reconnection` raises an error."""

_log = structlog.get_logger(__name__)


class ProjectBotTimes(NamedTuple):
    """How long the parts of `ProjectBots` wait, in seconds."""

    look: float = 2.0
    """The interval between reads of the list of bots."""
    refused: float = 2.0
    longest_delay: float = LONGEST_DELAY
    watch: WatchTimes = WATCH_TIMES


_TIMES: Final = ProjectBotTimes()


class ProjectBotReconnection(Reconnection):
    """Waits like `Reconnection`, but raises BotTokenRefusedError after two refusals in a row.

    It neither logs nor shows that the messenger is unreachable: the service's own bot does so once, instead of hundreds
    of bots.
    """

    def __init__(self, times: ProjectBotTimes = _TIMES) -> None:
        super().__init__(lambda _failing: None, times.longest_delay)
        self._refused_seconds = times.refused
        self._refusals = 0

    async def wait(self, trouble: TelegramAPIError) -> None:
        """Wait before the next attempt.

        Raises:
            BotTokenRefusedError: the token was refused twice in a row.
        """
        if not isinstance(trouble, TelegramUnauthorizedError):
            await super().wait(trouble)
            return
        self._refusals += 1
        if self._refusals >= REFUSALS:
            raise BotTokenRefusedError("The Bot API does not recognise this bot token.")
        await asyncio.sleep(self._refused_seconds)

    def succeeded(self) -> None:
        """Record that the Bot API answered."""
        self._refusals = 0
        super().succeeded()

    def _log_once(self, event: str, trouble: TelegramAPIError) -> None:
        if not isinstance(trouble, TelegramNetworkError):
            super()._log_once(event, trouble)


@dataclass(slots=True)
class _Running:
    """A running bot, as last read from the store."""

    known: ProjectBot
    token: str
    task: asyncio.Task[None]


class ProjectBots:
    """Runs the bots of all projects.

    `connect` returns the bot with a token, without calling the Bot API. If the messenger refuses `service_bot` too, the
    cause is not a single token. `show` is called with the numbers of running and broken bots.
    """

    def __init__(
        self,
        bots: Bots,
        connect: Callable[[str], Bot],
        receive: ReceiveUpdates,
        service_bot: Bot,
        show: Callable[[int, int], None],
        *,
        times: ProjectBotTimes = _TIMES,
    ) -> None:
        self._bots = bots
        self._connect = connect
        self._receive = receive
        self._service_bot = service_bot
        self._show = show
        self._times = times
        self._running: dict[int, _Running] = {}
        self._ending: dict[int, set[asyncio.Task[Any]]] = {}
        self._unreadable: set[bytes] = set()

    async def run(self, _since: int) -> None:
        """Run the bots until cancelled, then let each finish its updates in progress. Only one process may do this."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(self._times.look)
        finally:
            self._show(0, 0)
            for bot_id in list(self._running):
                self._stop(bot_id)
            tasks = [task for each in self._ending.values() for task in each]
            try:
                if tasks:
                    await asyncio.wait(tasks)
            finally:
                for task in tasks:
                    task.cancel()

    async def _look(self) -> None:
        """Start new bots, and stop those that were removed, are broken, or have another token."""
        try:
            found = await self._bots.list_project_bots()
        except StoreUnavailable:
            return
        wanted = {bot.bot_id: bot for bot in found if bot.broken_at is None}
        for bot_id in self._running.keys() - wanted.keys():
            self._stop(bot_id)
        delay = 0.0
        for bot in wanted.values():
            token = self._token_to_start(bot)
            if token is not None:
                self._start(bot, token, delay)
                delay += START_SECONDS
        self._show(len(self._running), len(found) - len(wanted))

    def _token_to_start(self, bot: ProjectBot) -> str | None:
        """Return the token of a bot that must start; None if it already runs. Stop a bot whose token is unreadable."""
        running = self._running.get(bot.bot_id)
        is_same = running is not None and not running.task.done() and running.known.project_id == bot.project_id
        if running is not None and is_same and running.known.encrypted_token == bot.encrypted_token:
            running.known = bot
            return None
        try:
            token = self._bots.open_token(bot)
        except DecryptionFailed:
            if bot.encrypted_token not in self._unreadable:
                self._unreadable.add(bot.encrypted_token)
                advice = "Restore the master key that encrypted it, or set bot_token again."
                _log.error(
                    "project_bot_unreadable", project_id=bot.project_id, bot_username=bot.username, advice=advice
                )
            self._stop(bot.bot_id)
            return None
        if running is not None and is_same and running.token == token:
            running.known = bot  # The same token, encrypted under another master key.
            return None
        return token

    def _start(self, bot: ProjectBot, token: str, delay: float) -> None:
        self._stop(bot.bot_id)
        before = set(self._ending.get(bot.bot_id, ()))
        task = asyncio.create_task(self._keep(bot, token, before, delay))
        self._running[bot.bot_id] = _Running(bot, token, task)

    def _stop(self, bot_id: int) -> None:
        running = self._running.pop(bot_id, None)
        if running is not None:
            running.task.cancel()
            self._await_end(bot_id, running.task)

    def _await_end(self, bot_id: int, task: asyncio.Task[Any]) -> None:
        """Track `task` until it ends. Until then, this bot does not start again and `run` does not return."""
        self._ending.setdefault(bot_id, set()).add(task)
        task.add_done_callback(lambda ended: self._forget(bot_id, ended))

    def _forget(self, bot_id: int, task: asyncio.Task[Any]) -> None:
        self._ending[bot_id].remove(task)
        if not self._ending[bot_id]:
            del self._ending[bot_id]

    async def _keep(self, bot: ProjectBot, token: str, before: set[asyncio.Task[Any]], delay: float) -> None:
        """Run one bot until it is cancelled or broken. A bug ends it, and the next look starts it again."""
        structlog.contextvars.bind_contextvars(project_id=bot.project_id, bot_username=bot.username)
        try:
            if before:  # Two tasks that receive the same bot's updates would conflict.
                await asyncio.wait(before)
            await asyncio.sleep(delay)
            await self._receive_until_refused(bot.bot_id, self._connect(token))
        except Exception as error:  # noqa: BLE001 — the other bots must keep running.
            _log.error("project_bot_failed", error=type(error).__name__, stack=describe_stack(error))

    async def _receive_until_refused(self, bot_id: int, bot: Bot) -> None:
        learning = asyncio.create_task(self._look_after(bot_id, bot))
        try:
            while True:
                try:
                    await self._receive(bot, ProjectBotReconnection(self._times))
                except BotTokenRefusedError:
                    running = self._running.get(bot_id)
                    if await self._is_refused(bot) and running is not None:
                        marking = asyncio.create_task(self._mark_broken(running.known))
                        self._await_end(bot_id, marking)
                        # The next look cancels this task once the bot is marked; the shield lets it still be logged.
                        if await asyncio.shield(marking):
                            return
        finally:
            learning.cancel()

    async def _is_refused(self, bot: Bot) -> bool:
        """Return whether the messenger refuses this token in particular, and not every token."""
        if not await self._is_refused_once(bot):
            return False
        try:
            await self._service_bot.get_me()
        except TelegramAPIError:
            # The address may be wrong or lead to another server. No developer could fix that.
            _log.warning("project_bot_refused", advice="The service's own bot is refused too. Still trying.")
            await asyncio.sleep(self._times.longest_delay)
            return False
        # The messenger may have refused every token until a moment ago.
        return await self._is_refused_once(bot)

    async def _is_refused_once(self, bot: Bot) -> bool:
        try:
            await bot.get_me()
        except TelegramUnauthorizedError:
            return True
        except TelegramAPIError:
            await asyncio.sleep(self._times.refused)
        return False

    async def _mark_broken(self, bot: ProjectBot) -> bool:
        """Mark a bot broken and log it for the operator. Return False if the store is unavailable."""
        try:
            is_told = await self._bots.mark_broken(bot)
        except StoreUnavailable:
            await asyncio.sleep(self._times.refused)
            return False
        if is_told:
            _log.error(
                "project_bot_broken",
                advice="The messenger does not accept this bot's token any more, so its project starts no sign-ins. "
                "Its developer must set bot_token again: @BotFather shows the new one.",
            )
        return True

    async def _look_after(self, bot_id: int, bot: Bot) -> None:
        """Keep the bot's username up to date. Set its commands once."""
        is_listed = False

        async def learned(me: BotFullInfo) -> None:
            nonlocal is_listed
            running = self._running.get(bot_id)
            if me.username and running is not None and me.username != running.known.username:
                await self._bots.rename_bot(bot_id, me.username)
                _log.info("project_bot_renamed", now=me.username)
            if not is_listed:
                is_listed = True
                await check_settings(bot, me)
                await announce_commands(bot)

        async def failed(_trouble: TelegramAPIError) -> None:
            """Ignore a failure: the task that receives the updates detects and logs the cause."""

        await watch_account(bot, learned, failed, times=self._times.watch)
