"""Long polling: fetches updates, handles them, and acknowledges them by asking for later ones.

See https://core.telegram.org/bots/api#getupdates.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import structlog

from taproof.core.stacks import describe_stack
from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError, TelegramConflictError, TelegramNetworkError
from taproof.messengers.telegram.connection import LONGEST_DELAY, BotTokenRefusedError, Reconnection
from taproof.messengers.telegram.updates import ALLOWED_UPDATES, UpdateIntake

LINE_LIMIT: Final = 5
"""The number of one user's updates that are handled in order. With a higher limit, one user could fill the hundred
updates that the Bot API returns."""

_log = structlog.get_logger(__name__)


class PollTimes(NamedTuple):
    """How long polling waits, in seconds."""

    poll: int = 25
    shortest_poll: int = 5
    """A shorter wait than this is not tried, however soon idle connections are cut."""
    answer: float = 15
    """The extra time for the response to a poll, beyond the requested wait."""
    patience: float = 1
    """Maximum delay of the next poll while updates are in progress. One user's slow update must not delay others."""
    give_up: float = 15 * 60
    """An update that cannot be handled for this long is dropped: its session has expired. The Bot API returns only the
    first hundred unacknowledged updates, so a few such updates would block all others."""
    unanswered: float = 2 * 60
    """The same limit for an update whose decision is stored but whose reply was not sent. In the second half of this
    time, replies no longer wait for the flood limit to end, because that would exceed the rest of the time."""
    longest_delay: float = LONGEST_DELAY
    """Maximum time between two attempts at an update."""
    finish: float = 10
    acknowledge: float = 3


_TIMES: Final = PollTimes()


@dataclass(eq=False, slots=True)
class _Line:
    """One user's updates in order. `hurry` is set once there are enough to delay other users."""

    tasks: list[asyncio.Task[bool]] = field(default_factory=list)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)


class LongPolling:
    """Receives a bot's updates. No other program must receive them.

    Updates of different users are handled concurrently, and those of one user in order unless there are many. An update
    is acknowledged when it and all earlier ones are done. After a crash, the Bot API delivers the others again.

    No other program has received the updates `since` this time in ms. `reconnection` waits when the Bot API returns no
    updates; if it raises BotTokenRefusedError, the loop ends. `pace` is the seconds between the starts of two updates,
    so that a flood of updates leaves time for other bots.
    """

    def __init__(
        self,
        bot: Bot,
        intake: UpdateIntake,
        since: int,
        reconnection: Reconnection,
        *,
        pace: float = 0.0,
        times: PollTimes = _TIMES,
    ) -> None:
        self._bot = bot
        self._intake = intake
        self._since = since
        self._pace = pace
        self._times = times
        self._offset: int | None = None
        self._poll_seconds = times.poll
        self._in_hand: dict[int, asyncio.Task[bool]] = {}
        self._lines: dict[int, _Line] = {}
        self._stopping = asyncio.Event()
        self._reconnection = reconnection
        self._logged = ""

    async def run(self) -> None:
        """Receive updates until cancelled, then finish and acknowledge those in progress."""
        self._stopping.clear()
        try:
            while True:
                await self._poll_safely()
        finally:
            self._stopping.set()
            try:
                await self._finish()
            finally:
                for task in self._in_hand.values():
                    task.cancel()

    async def _poll_safely(self) -> None:
        """Poll once. If a bug makes it fail, log the bug once, without the error's text, and let the loop continue."""
        try:
            await self._poll()
        except BotTokenRefusedError:
            raise
        except Exception as error:  # noqa: BLE001 — an error that ends this loop would end the service's other tasks.
            if self._logged != type(error).__name__:
                self._logged = type(error).__name__
                _log.error("bot_polling_failed", error=self._logged, stack=describe_stack(error))
            await asyncio.sleep(self._times.patience)
        else:
            self._logged = ""

    async def _poll(self) -> None:
        if self._in_hand:
            await asyncio.wait(self._in_hand.values(), timeout=self._times.patience)
            self._settle()
        # While an update is in progress, the server returns it again immediately, so a wait would have no effect.
        seconds = 0 if self._in_hand else self._poll_seconds
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        try:
            updates = await self._bot.get_updates(
                offset=self._offset,
                allowed_updates=ALLOWED_UPDATES,
                timeout=seconds,
                seconds=seconds + self._times.answer,
            )
        except TelegramConflictError as conflict:
            await self._resolve(conflict)
            return
        except TelegramAPIError as trouble:
            shortest = self._times.shortest_poll
            if shortest <= clock() - asked_at < seconds and isinstance(trouble, TelegramNetworkError):
                # A proxy on the way cuts idle connections. Each cut would delay the next update by the wait below.
                self._poll_seconds = max(shortest, seconds // 2)
                _log.info("bot_poll_shortened", seconds=self._poll_seconds, reason=trouble.message)
            await self._reconnection.wait(trouble)
            return
        self._reconnection.succeeded()
        started = 0
        for update in updates:
            if self._start(update):
                started += 1
                if self._pace:
                    await asyncio.sleep(self._pace)
        if not updates and not self._in_hand:
            # Everything is acknowledged. After a quiet week, ids may restart at a lower number, so ask for any update.
            self._offset = None
        elif not started and not self._in_hand:
            await asyncio.sleep(self._times.patience)

    def _start(self, update: dict[str, Any]) -> bool:
        """Start handling an update, unless it is already in progress. Return whether it was started."""
        update_id = update.get("update_id")
        if not isinstance(update_id, int) or update_id in self._in_hand:
            return False
        user = _user_of(update)
        line = _Line() if user is None else self._lines.setdefault(user, _Line())
        crowded = len(line.tasks) >= LINE_LIMIT
        if crowded:
            line.hurry.set()
        before = line.tasks[-1] if line.tasks and not crowded else None
        task = asyncio.create_task(self._handle(update, before, line.hurry))
        self._in_hand[update_id] = task
        if user is not None and not crowded:
            line.tasks.append(task)
            task.add_done_callback(lambda done: self._leave_line(user, done))
        return True

    async def _handle(self, update: dict[str, Any], before: asyncio.Task[bool] | None, hurry: asyncio.Event) -> bool:
        """Handle an update until it is done or given up. Return False if the service stops first."""
        clock = asyncio.get_running_loop().time
        arrived_at = clock()
        if before is not None:
            await asyncio.wait([before])
        times = self._times
        delay = min(1, times.longest_delay)
        while not self._stopping.is_set():
            if clock() - arrived_at > times.unanswered / 2:
                hurry.set()
            handling = await self._intake.handle(update, sole_since=self._since, hurry=hurry, received_at=arrived_at)
            if handling == "done":
                return True
            if clock() - arrived_at > (times.unanswered if handling == "unanswered" else times.give_up):
                _log.error("bot_update_given_up", update_id=update["update_id"])
                self._intake.forget(update["update_id"])
                return True
            try:
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
            except TimeoutError:
                delay = min(2 * delay, times.longest_delay)
        return False

    def _leave_line(self, user: int, task: asyncio.Task[bool]) -> None:
        tasks = self._lines[user].tasks
        tasks.remove(task)
        if not tasks:
            del self._lines[user]

    def _settle(self) -> None:
        """Move the offset past all finished updates, up to the first unfinished one."""
        for update_id in sorted(self._in_hand):
            task = self._in_hand[update_id]
            if not task.done() or task.cancelled():
                return
            error = task.exception()
            if error is not None:
                # The update would fail again in the same way and hold back the offset forever.
                _log.error(
                    "bot_update_given_up", update_id=update_id, error=type(error).__name__, stack=describe_stack(error)
                )
            elif not task.result():
                return
            del self._in_hand[update_id]
            self._offset = update_id + 1

    async def _resolve(self, conflict: TelegramConflictError) -> None:
        """Remove a webhook that is still set, or wait if another program is polling."""
        if "webhook" not in conflict.message.lower():
            await self._reconnection.wait(conflict)
            return
        try:
            await self._bot.delete_webhook()
        except TelegramAPIError as trouble:
            await self._reconnection.wait(trouble)
            return
        _log.warning("bot_webhook_removed", advice="This bot is polled now: its updates no longer go to a webhook.")
        await asyncio.sleep(self._times.patience)

    async def _finish(self) -> None:
        if self._in_hand:
            await asyncio.wait(self._in_hand.values(), timeout=self._times.finish)
            self._settle()
        if self._offset is None:
            return
        try:
            await self._bot.get_updates(
                offset=self._offset, limit=1, allowed_updates=ALLOWED_UPDATES, seconds=self._times.acknowledge
            )
        except TelegramAPIError:
            _log.info("bot_updates_not_acknowledged")


def _user_of(update: dict[str, Any]) -> int | None:
    """Return the id of the user who caused an update, or None. The id is used to keep one user's updates in order."""
    for kind in ALLOWED_UPDATES:
        event = update.get(kind)
        sender = event.get("from") if isinstance(event, dict) else None
        user = sender.get("id") if isinstance(sender, dict) else None
        if isinstance(user, int):
            return user
    return None
