"""Record expiry, end deliveries, and erase data after its retention period. Each step is bounded."""

from typing import Final

from taproof.core.clock import DAY, Clock, day_number
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.oidc.grants import LOGOUTS_KEPT
from taproof.core.oidc.model import HINTS_ACCEPTED_FOR, KEPT_AFTER
from taproof.core.session_state import SESSION_LIFETIME
from taproof.service.console.sessions import IDLE_LIFETIME
from taproof.service.sessions.events import SessionEvents
from taproof.storage.protocol import Storage

BATCH: Final = 100
"""The number of rows in one write. On SQLite, a write blocks the event loop for 1 to 2 ms; with 500 rows, for 5 to
12 ms. With an auth.expired event for each session, 100 rows take 5 to 7 ms (docs/how-to/gdpr.md)."""
_UPDATES_KEPT: Final = 2 * DAY
"""The time (ms) for which updates are kept. Telegram keeps an undelivered update for at most 24 hours, so it never
delivers an older one again."""
_USER_DAYS_KEPT: Final = 91
"""The minimum number of days for which users' days are kept. Analytics uses them to count distinct users in up to 90
days."""
_USAGE_KEPT: Final = 31
"""The minimum number of days for which confirmed sign-ins of deleted projects are kept. They count towards their month,
which has up to 31 days."""
_DAYS_AHEAD: Final = 3
"""The number of days for which the store is prepared in advance: enough for an outage over a weekend."""


class Housekeeping:
    """Does its tasks in small batches, each in its own transaction, so that polls need not wait.

    Args:
        encryptor: encrypts the bodies of auth.expired events.
        retention_days: the number of days for which sessions and finished webhook events are kept. The counts shown in
            analytics and projects are kept longer.
        audit_days: the number of days for which audit log entries are kept, to the end of the UTC day.
        batch: the number of rows in one write.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        clock: Clock,
        entropy: Entropy,
        retention_days: int,
        *,
        audit_days: int = 365,
        batch: int = BATCH,
    ) -> None:
        self._storage = storage
        self._events = SessionEvents(encryptor, entropy)
        self._clock = clock
        self._retention_days = retention_days
        self._audit_days = audit_days
        self._batch = batch
        self._prepared: int | None = None

    async def sweep(self) -> bool:
        """Do one batch of each task; return True if a batch was full, so that more work may remain."""
        now, batch = self._clock(), self._batch
        today = day_number(now)
        expired = await self._storage.sessions.expire_sessions(now, batch, self._events.expired)
        full = [
            expired >= batch,
            await self._storage.projects.purge_deleted_projects(batch) > 0,
            await self._storage.deliveries.end_deliveries(batch) > 0,
            await self._storage.deliveries.purge_events(now - self._retention_days * DAY, batch) >= batch,
            await self._storage.counts.purge_user_days(today - max(self._retention_days, _USER_DAYS_KEPT), batch)
            >= batch,
            await self._storage.bots.purge_updates(now - _UPDATES_KEPT, batch) >= batch,
            await self._storage.audit.purge_audit_entries((today - self._audit_days) * DAY, now, batch) >= batch,
            await self._storage.credentials.purge_console_access(now, now - IDLE_LIFETIME, batch) >= batch,
            # A contact answers only the latest request. When that request is purged, no earlier session may be pending.
            await self._storage.users.purge_phone_requests(now - SESSION_LIFETIME, batch) >= batch,
            await self._storage.prompts.purge_prompts(now, batch) >= batch,
            await self._storage.signing_keys.purge_signing_keys(now - HINTS_ACCEPTED_FOR, batch) >= batch,
            await self._storage.authorizations.purge_authorizations(now - KEPT_AFTER, batch) >= batch,
            await self._storage.authorizations.purge_pushed_requests(now, batch) >= batch,
            await self._storage.grants.purge_grants(now, batch) >= batch,
            await self._storage.logouts.purge_logouts(now - LOGOUTS_KEPT, batch) >= batch,
            await self._storage.plans.purge_removed_usage(today - _USAGE_KEPT, batch) >= batch,
        ]
        # Purge only after all expired sessions are counted: after a long downtime, pending sessions may be old enough
        # to be purged.
        if expired < batch:
            full.append(await self._storage.sessions.purge_sessions(today - self._retention_days, batch) >= batch)
        # Prepare last: this may wait for the database's own maintenance, and the next days are already prepared.
        if self._prepared != today:
            await self._storage.sessions.prepare_days(today, today + _DAYS_AHEAD)
            self._prepared = today
        return any(full)
