"""What is swept: expiry written down, deleted projects erased, old bot updates forgotten. Bounded at every step."""

from typing import Final

from taproof.core.clock import DAY, Clock
from taproof.storage.protocol import Storage

BATCH: Final = 500
_UPDATES_KEPT: Final = 2 * DAY
"""Telegram keeps an undelivered update for at most 24 hours, so an older one cannot come again."""


class Housekeeping:
    """Sweeps in small batches, each a transaction of its own, so that no poll waits for it."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    async def sweep(self) -> bool:
        """Do one batch of everything; True when a batch was full, so that there may be more to do at once."""
        now = self._clock()
        expired = await self._storage.expire_sessions(now, BATCH)
        erased = await self._storage.purge_deleted_projects(BATCH)
        forgotten = await self._storage.purge_updates(now - _UPDATES_KEPT, BATCH)
        return expired >= BATCH or erased > 0 or forgotten >= BATCH
