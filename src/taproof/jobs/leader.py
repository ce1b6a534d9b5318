"""Elect one process for work that must not run twice. The leader holds a lease.

| seconds | |
|---|---|
| 2 | between two renewals of the lease |
| 5 | without a renewal: the holder's work is cancelled and ends within one second |
| 8 | without a renewal: the lease lapses; other processes try to take it every second |

So another process takes over within ten seconds, even if the holder was killed. A holder that is cut off from the store
stops two seconds before the lease lapses, so the clocks of two nodes can differ by at most two seconds.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

import structlog

from taproof.core.clock import SECOND, Clock
from taproof.core.errors import StoreUnavailable
from taproof.core.leases import LEASE_SECONDS, LOSE_SECONDS, RENEW_SECONDS

GRACE_SECONDS: Final = 1.0
"""Seconds that the work can take to end after the lease is lost."""
TRY_SECONDS: Final = 1.0
FINISH_SECONDS: Final = 15.0
"""Seconds that the work can take to end when the process stops; the lease is released after that."""

_log = structlog.get_logger(__name__)

Work = Callable[[int], Coroutine[Any, Any, None]]
"""The leader's work. Its argument is the time in ms since which no other process has been doing it.

It runs until it is cancelled. The first cancellation lets it finish its current item; the second ends it immediately.
"""


class Leases(Protocol):
    """The part of the store that stores leases."""

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        """Take or renew the lease `name` for `holder`; return False while another holder's lease has not lapsed."""

    async def release_lease(self, name: str, holder: str) -> None:
        """Release a lease, so that another process can take it immediately."""


class LeaderElection:
    """Runs `work` while this process holds the lease `name`.

    `holder` is the name of this process, unique across all nodes. The nodes' clocks must agree within two seconds.
    `show` is called with 1 when this process starts to lead, and with 0 when it stops.
    """

    def __init__(
        self, leases: Leases, clock: Clock, holder: str, name: str, work: Work, *, show: Callable[[int], None]
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._holder = holder
        self._name = name
        self._work = work
        self._show = show
        self._deadline = 0.0
        """The event loop time until which this process can rely on the lease."""
        self._asking = asyncio.Lock()

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Work whenever the lease is free to take, until `stopping` is set. Raise the work's errors."""
        while not stopping.is_set():
            if await self._hold(asyncio.get_running_loop().time() + LOSE_SECONDS):
                _log.info("lease_taken", lease=self._name)
                self._show(1)
                try:
                    await self._do_work(stopping)
                finally:
                    self._show(0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), TRY_SECONDS)

    async def _hold(self, answer_by: float) -> bool | None:
        """Take or renew the lease. Return False if another process holds it, and None if the store did not answer."""
        asked, now = asyncio.get_running_loop().time(), self._clock()
        try:
            async with self._asking, asyncio.timeout_at(answer_by):
                until = now + int(LEASE_SECONDS * SECOND)
                held = await self._leases.hold_lease(self._name, self._holder, now, until)
        except (StoreUnavailable, TimeoutError):
            return None
        if held:
            # Counted from before the call, because the store can have granted the lease at any time since then.
            self._deadline = asked + LOSE_SECONDS
        return held

    async def _do_work(self, stopping: asyncio.Event) -> None:
        """Work until `stopping` is set or the lease is lost. Work that ends by itself is an error."""
        working = asyncio.create_task(self._work(self._clock()))
        losing = asyncio.create_task(self._until_lost())
        stop_asked = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([working, losing, stop_asked], return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            if not losing.done():
                # While the lease is held, let the work finish its current item.
                await asyncio.wait([working, losing], timeout=FINISH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if losing.done():
                _log.warning("lease_lost", lease=self._name, advice="Its work stops until the lease is held again.")
            await asyncio.wait([working], timeout=GRACE_SECONDS)
            working.cancel()
            await asyncio.wait([working], timeout=GRACE_SECONDS)
            if working.done() and not losing.done():
                # Wait for a renewal in progress: it could take the lease again after the release.
                async with self._asking:
                    losing.cancel()
                await self._give_up()
        finally:
            for task in (working, losing, stop_asked):
                task.cancel()
        for task in (working, losing):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _until_lost(self) -> None:
        """Renew the lease until renewals have failed for too long or another process holds the lease."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(RENEW_SECONDS, max(0.0, self._deadline - loop.time())))
            # Check this first: a process that was suspended must not continue during a renewal.
            if loop.time() >= self._deadline or await self._hold(self._deadline) is False:
                return

    async def _give_up(self) -> None:
        try:
            # A busy store can take seconds, and waiting for the lease to lapse takes longer.
            async with asyncio.timeout(LOSE_SECONDS):
                await self._leases.release_lease(self._name, self._holder)
        except (StoreUnavailable, TimeoutError):
            return  # The lease lapses by itself.
        _log.info("lease_given_up", lease=self._name)
