"""What is swept: expiry written down, deliveries ended, and all erased that is kept no longer. Each step is bounded."""

from typing import Final

from taproof.core.clock import DAY, Clock, day_number
from taproof.core.session_state import SESSION_LIFETIME
from taproof.service.console.sessions import IDLE_LIFETIME
from taproof.storage.protocol import Storage

BATCH: Final = 100
"""Rows of one write: on SQLite it holds the event loop for 1 to 2 ms, and 500 would for 5 to 12
(docs/reference/retention-and-limits.md)."""
_UPDATES_KEPT: Final = 2 * DAY
"""Telegram keeps an undelivered update for at most 24 hours, so an older one cannot come again."""
_USER_DAYS_KEPT: Final = 91
"""Days, at least: the widest window of analytics is 90, and its distinct users are counted by these rows."""
_USAGE_KEPT: Final = 31
"""Days, at least, that what deleted projects had confirmed is kept: it counts in its own month, and none is longer."""
_DAYS_AHEAD: Final = 3
"""Room for new sessions is made so early that a store or a process that is away for a weekend is no trouble."""


class Housekeeping:
    """Sweeps in small batches, each a transaction of its own, so that no poll waits for it.

    Args:
        storage: the store.
        clock: the time.
        retention_days: sessions and finished webhook events are kept for so many days. The counts that analytics
            and projects show outlive them.
        audit_days: entries of the audit log are kept for so many days, and to the end of the UTC day.
    """

    def __init__(self, storage: Storage, clock: Clock, retention_days: int, *, audit_days: int = 365) -> None:
        self._storage = storage
        self._clock = clock
        self._retention_days = retention_days
        self._audit_days = audit_days
        self._prepared: int | None = None

    async def sweep(self) -> bool:
        """Do one batch of everything; True when a batch was full, so that there may be more to do at once."""
        now = self._clock()
        today = day_number(now)
        expired = await self._storage.sessions.expire_sessions(now, BATCH)
        full = [
            expired >= BATCH,
            await self._storage.projects.purge_deleted_projects(BATCH) > 0,
            await self._storage.deliveries.end_deliveries(BATCH) > 0,
            await self._storage.deliveries.purge_events(now - self._retention_days * DAY, BATCH) >= BATCH,
            await self._storage.counts.purge_user_days(today - max(self._retention_days, _USER_DAYS_KEPT), BATCH)
            >= BATCH,
            await self._storage.bots.purge_updates(now - _UPDATES_KEPT, BATCH) >= BATCH,
            await self._storage.audit.purge_audit_entries((today - self._audit_days) * DAY, now, BATCH) >= BATCH,
            await self._storage.credentials.purge_console_access(now, now - IDLE_LIFETIME, BATCH) >= BATCH,
            # One that is gone no longer keeps a contact from an earlier one, so that must be over by then.
            await self._storage.users.purge_phone_requests(now - SESSION_LIFETIME, BATCH) >= BATCH,
            await self._storage.plans.purge_removed_usage(today - _USAGE_KEPT, BATCH) >= BATCH,
        ]
        # Not before all expiry is counted: after a long stop there may be pending sessions that are old enough to go.
        if expired < BATCH:
            full.append(await self._storage.sessions.purge_sessions(today - self._retention_days, BATCH) >= BATCH)
        # Last, since it may have to wait for the database's own upkeep, and there is room for days.
        if self._prepared != today:
            await self._storage.sessions.prepare_days(today, today + _DAYS_AHEAD)
            self._prepared = today
        return any(full)
