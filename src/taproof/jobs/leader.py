"""One process at a time: work that would be done twice, or get in its own way, is done by the holder of a lease.

| seconds | |
|---|---|
| 2 | the holder renews its lease so often |
| 5 | after so long without a renewal its work is cancelled, and after one more it has ended, come what may |
| 8 | after so long the lease is over; others try to take it every second |

So another takes over within ten seconds, however the holder died, and a holder that is alive but cut off from the store
has stopped two seconds before: the clocks of two nodes may differ by no more than that.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from taproof.core.clock import SECOND, Clock
from taproof.core.errors import StoreUnavailable
from taproof.storage.protocol import Storage

LEASE_SECONDS: Final = 8.0
RENEW_SECONDS: Final = 2.0
LOSE_SECONDS: Final = 5.0
GRACE_SECONDS: Final = 1.0
"""How long work may take to end when the lease was lost."""
TRY_SECONDS: Final = 1.0
FINISH_SECONDS: Final = 15.0
"""How long work may take to end when the process stops, which gives the lease up only then."""

_log = structlog.get_logger(__name__)

Work = Callable[[int], Coroutine[Any, Any, None]]
"""Called with the time, in ms, since which nobody else does this work. It goes on until it is cancelled.

Cancelled once, it finishes what it has in hand; cancelled again, it ends at once.
"""


class LeaderElection:
    """Does `work` for as long as this process holds the lease `name`.

    Args:
        storage: where leases are kept.
        clock: returns the time in ms; nodes must agree within two seconds.
        holder: names this process, and no other one of any node.
        name: what only one process may do.
        work: what is done.
    """

    def __init__(self, storage: Storage, clock: Clock, holder: str, name: str, work: Work) -> None:
        self._storage = storage
        self._clock = clock
        self._holder = holder
        self._name = name
        self._work = work
        self._deadline = 0.0
        """Until when, by the loop's clock, this process may take the lease for its own."""
        self._asking = asyncio.Lock()

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Take the lease whenever it is free, until `stopping` is set; raises what the work raises."""
        while not stopping.is_set():
            if await self._hold(asyncio.get_running_loop().time() + LOSE_SECONDS):
                _log.info("lease_taken", lease=self._name)
                await self._do_work(stopping)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), TRY_SECONDS)

    async def _hold(self, answer_by: float) -> bool | None:
        """Take or renew the lease; False when it is another's, None when that cannot be known."""
        asked, now = asyncio.get_running_loop().time(), self._clock()
        try:
            async with self._asking, asyncio.timeout_at(answer_by):
                until = now + int(LEASE_SECONDS * SECOND)
                held = await self._storage.leases.hold_lease(self._name, self._holder, now, until)
        except (StoreUnavailable, TimeoutError):
            return None
        if held:
            # Counted from before the question, since nobody knows when in between the store answered it.
            self._deadline = asked + LOSE_SECONDS
        return held

    async def _do_work(self, stopping: asyncio.Event) -> None:
        """Work until told to stop, until the lease is lost, or until the work ends by itself, which it should not."""
        working = asyncio.create_task(self._work(self._clock()))
        losing = asyncio.create_task(self._until_lost())
        told = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([working, losing, told], return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            if not losing.done():
                # As long as the lease is held, what is in hand may be finished.
                await asyncio.wait([working, losing], timeout=FINISH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if losing.done():
                _log.warning("lease_lost", lease=self._name, advice="Its work rests until the lease is held again.")
            await asyncio.wait([working], timeout=GRACE_SECONDS)
            working.cancel()
            await asyncio.wait([working], timeout=GRACE_SECONDS)
            if working.done() and not losing.done():
                # Not in the middle of a renewal, which would take the lease back after it was given up.
                async with self._asking:
                    losing.cancel()
                await self._give_up()
        finally:
            for task in (working, losing, told):
                task.cancel()
        for task in (working, losing):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _until_lost(self) -> None:
        """Renew the lease, until that failed for too long or another holds it."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(RENEW_SECONDS, max(0.0, self._deadline - loop.time())))
            # Asked first: a process that stood still for a while must not go on for as long as a renewal takes.
            if loop.time() >= self._deadline or await self._hold(self._deadline) is False:
                return

    async def _give_up(self) -> None:
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self._storage.leases.release_lease(self._name, self._holder)
        except (StoreUnavailable, TimeoutError):
            return  # It lapses by itself.
        _log.info("lease_given_up", lease=self._name)
