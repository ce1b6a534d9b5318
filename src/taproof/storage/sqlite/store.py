"""The store on one machine: a SQLite file in WAL mode, read directly on the event loop, written by one group commit."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import apsw

from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.model import (
    ConsumedSession,
    DailyCounts,
    DailyUsers,
    MessengerIdentity,
    NewSession,
    PageCursor,
    PolledSession,
    Session,
    SessionKey,
    Status,
)
from taproof.storage.protocol import UpdateClaim
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import sessions as session_queries
from taproof.storage.rows import consumed_from, event_values, identity_values, new_session_values, session_from
from taproof.storage.sqlite import listing, notify, user_counts
from taproof.storage.sqlite.bots import SqliteBots
from taproof.storage.sqlite.connection import migrate_file, open_connections
from taproof.storage.sqlite.encrypted_values import SqliteEncryptedValues
from taproof.storage.sqlite.erasure import SqliteErasure
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.plans import SqlitePlans
from taproof.storage.sqlite.projects import SqliteProjects
from taproof.storage.sqlite.users import SqliteUsers


class SqliteStorage(SqliteUsers, SqliteProjects, SqliteEncryptedValues, SqliteBots, SqlitePlans, SqliteErasure):
    """Storage in one SQLite file. See `storage.protocol.Storage` for what each method promises."""

    @classmethod
    def open(cls, path: Path, now: int, clock: Clock | None = None) -> Self:
        """Open the file, making it (mode 0600) and bringing its schema up to date where needed.

        Args:
            path: the file.
            now: when its schema is brought up to date, in ms.
            clock: read again when a decision's turn to be written comes, which may be seconds later while another
                process holds the lock; without it a decision counts as of the `now` that it was made with.

        Raises:
            SqliteTooOld: the linked SQLite is not sound.
            StoreUnavailable: the file cannot be opened or written; the sentence says why.
            MigrationChanged: it was made by a release with another history.
        """
        migrate_file(path, now)
        return cls(*open_connections(path), clock)

    async def close(self) -> None:
        await self._writer.close()
        self._close_readers()

    async def ping(self) -> None:
        self._read("SELECT 1", ())

    # ---- what the installation remembers about itself

    async def read_mark(self, name: str) -> bytes | None:
        found = self._read(session_queries.READ_MARK, (name,))
        return found[0][0] if found else None

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        def write(connection: apsw.Connection) -> bytes:
            connection.execute(session_queries.CLAIM_MARK, (name, value))
            kept: bytes = rows(connection, session_queries.READ_MARK, (name,))[0][0]
            return kept

        kept: bytes = await self._writer.run(write)
        return kept

    # ---- several processes on one store

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        return bool(await self._write(session_queries.HOLD_LEASE, (name, holder, until, now)))

    async def release_lease(self, name: str, holder: str) -> None:
        await self._write(session_queries.RELEASE_LEASE, (name, holder))

    async def watch_decisions(self, wake: Callable[[SessionKey], None], needed: asyncio.Event) -> None:
        await notify.watch(self._read, wake, needed)

    # ---- the life of a session

    async def create_session(self, session: NewSession, *, public: bool) -> bool:
        values = new_session_values(session, public=public)

        def write(connection: apsw.Connection) -> bool:
            if not rows(connection, session_queries.CREATE_SESSION, values):
                return False
            self._counters.add("requested", session.project_id, session.key.day)
            return True

        return bool(await self._writer.run(write))

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        found = self._read(session_queries.POLL_SESSION, key)
        return PolledSession(*found[0]) if found else None

    async def read_session(self, key: SessionKey) -> Session | None:
        found = self._read(session_queries.READ_SESSION, key)
        return session_from(found[0]) if found else None

    async def open_session(self, key: SessionKey, opener_id: str, now: int) -> bool:
        def write(connection: apsw.Connection) -> bool:
            found = rows(connection, session_queries.OPEN_SESSION, (now, opener_id, *key, self._at_least(now)))
            for (project_id,) in found:
                self._counters.add("opened", project_id, key.day)
            return bool(found)

        return bool(await self._writer.run(write))

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, encrypted_phone: bytes | None = None
    ) -> bool:
        values = (now, *identity_values(identity), encrypted_phone, *key)

        def write(connection: apsw.Connection) -> bool:
            found = rows(connection, session_queries.CONFIRM_SESSION, (*values, self._at_least(now)))
            for project_id, developer_id, session_id in found:
                self._counters.add("confirmed", project_id, key.day)
                notify.record(connection, key)
                user_counts.count_user(connection, developer_id, project_id, identity.messenger_id, key.day)
                connection.execute(delivery_queries.RECORD_EVENT, (session_id, *event_values(event)))
            return bool(found)

        return bool(await self._writer.run(write))

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> bool:
        def write(connection: apsw.Connection) -> bool:
            found = rows(connection, session_queries.CANCEL_SESSION, (now, *key, opener_id, self._at_least(now)))
            for project_id, session_id in found:
                self._counters.add("cancelled", project_id, key.day)
                notify.record(connection, key)
                connection.execute(delivery_queries.RECORD_EVENT, (session_id, *event_values(event)))
            return bool(found)

        return bool(await self._writer.run(write))

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        def write(connection: apsw.Connection) -> ConsumedSession | None:
            found = rows(connection, session_queries.CONSUME_SESSION, (now, *key))
            if not found:
                return None
            consumed = consumed_from(found[0])
            self._counters.add("used", consumed.project_id, key.day)
            return consumed

        consumed: ConsumedSession | None = await self._writer.run(write)
        return consumed

    async def reread_session(self, key: SessionKey, since: int) -> ConsumedSession | None:
        found = self._read(session_queries.REREAD_SESSION, (*key, since))
        return consumed_from(found[0]) if found else None

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        """Do nothing: one table holds the sessions of all days."""

    async def expire_sessions(self, now: int, limit: int) -> int:
        if not self._read(session_queries.ANY_OVERDUE_SESSION, (now,)):
            return 0

        def write(connection: apsw.Connection) -> int:
            found = rows(connection, session_queries.EXPIRE_SESSIONS, (now, limit))
            for project_id, day in set(found):
                connection.execute(session_queries.COUNT_EXPIRED, (found.count((project_id, day)), project_id, day))
            return len(found)

        return int(await self._writer.run(write))

    async def list_sessions(
        self,
        project_ids: Sequence[str],
        status: Status | None,
        before: PageCursor | None,
        limit: int,
        now: int,
        *,
        since: int = 0,
        messenger_id: str | None = None,
    ) -> list[Session]:
        return await self._look_up(
            lambda read: listing.list_sessions(
                read, project_ids, status, before, limit, now, since=since, messenger_id=messenger_id
            )
        )

    async def find_session(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        return await self._look_up(lambda read: listing.find_session(read, project_ids, created_at, session_id, now))

    # ---- retention

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        return await self._purge(session_queries.ANY_SESSION_BEFORE, session_queries.PURGE_SESSIONS, before_day, limit)

    async def purge_events(self, finished_before: int, limit: int) -> int:
        return await self._purge(session_queries.ANY_EVENT_BEFORE, session_queries.PURGE_EVENTS, finished_before, limit)

    async def purge_user_days(self, before_day: int, limit: int) -> int:
        return await self._purge(
            session_queries.ANY_USER_DAY_BEFORE, session_queries.PURGE_USER_DAYS, before_day, limit
        )

    async def _purge(self, is_any: str, purge: str, before: int, limit: int) -> int:
        """Erase in one bounded write, which is not begun when there is nothing: a write waits for the disk."""
        if not self._read(is_any, (before,)):
            return 0
        return len(await self._write(purge, (before, limit)))

    # ---- analytics

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        return [
            DailyCounts(*row)
            for project_id in project_ids
            for row in self._read(session_queries.READ_DAILY_COUNTS, (project_id, first_day))
        ]

    async def read_daily_totals(self, developer_id: str, first_day: int) -> list[DailyCounts]:
        found = await self._look_up(lambda read: read(session_queries.READ_DAILY_TOTALS, (developer_id, first_day)))
        return [DailyCounts("", *row) for row in found]

    async def read_daily_users(self, developer_id: str, first_day: int) -> list[DailyUsers]:
        return [DailyUsers(*row) for row in self._read(session_queries.READ_DAILY_USERS, (developer_id, first_day))]

    # ---- bot updates

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        def write(connection: apsw.Connection) -> UpdateClaim:
            if rows(connection, session_queries.CLAIM_UPDATE, (bot_id, update_id, now, stale_before)):
                return "claimed"
            done = rows(connection, session_queries.READ_UPDATE, (bot_id, update_id))[0][0]
            return "done" if done else "in_progress"

        claim: UpdateClaim = await self._writer.run(write)
        return claim

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        await self._write(session_queries.FINISH_UPDATE, (bot_id, update_id))

    async def release_update(self, bot_id: int, update_id: int) -> None:
        await self._write(session_queries.RELEASE_UPDATE, (bot_id, update_id))

    async def purge_updates(self, claimed_before: int, limit: int) -> int:
        return await self._purge(session_queries.ANY_OLD_UPDATE, session_queries.PURGE_UPDATES, claimed_before, limit)
