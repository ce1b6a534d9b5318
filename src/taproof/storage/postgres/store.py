"""The store for many nodes: PostgreSQL, where calls of one kind that come together are one statement."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

import asyncpg

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
from taproof.storage.postgres import sql
from taproof.storage.postgres.batcher import Batcher
from taproof.storage.postgres.bots import PostgresBots
from taproof.storage.postgres.encrypted_values import PostgresEncryptedValues
from taproof.storage.postgres.erasure import PostgresErasure
from taproof.storage.postgres.listing import find_session, list_sessions
from taproof.storage.postgres.notify import listen
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.plans import PostgresPlans
from taproof.storage.postgres.pool import PostgresPool, migrate_postgres, storable
from taproof.storage.postgres.projects import PostgresProjects
from taproof.storage.postgres.sessions import Cancellation, Confirmation, Opening, PostgresSessions
from taproof.storage.postgres.users import PostgresUsers
from taproof.storage.protocol import UpdateClaim
from taproof.storage.queries import sessions as session_queries
from taproof.storage.rows import columns, consumed_from, session_from

__all__ = ["PostgresStorage", "migrate_postgres"]
_UPDATES: Final = 256


class _Claim(NamedTuple):
    """A call of `claim_update`."""

    bot_id: int
    update_id: int
    now: int
    stale_before: int


class PostgresStorage(
    PostgresUsers, PostgresProjects, PostgresEncryptedValues, PostgresBots, PostgresPlans, PostgresErasure
):
    """Storage in one PostgreSQL database. See `storage.protocol.Storage` for what each method promises."""

    def __init__(self, pool: PostgresPool, clock: Clock | None, *, pgbouncer: bool) -> None:
        """Use `open`."""
        super().__init__(pool)
        self._pgbouncer = pgbouncer
        self._partitions = Partitions(pool)
        self._sessions = PostgresSessions(pool, self._partitions, clock)
        self._claims = Batcher[_Claim, UpdateClaim](self._claim_updates, limit=_UPDATES, key=lambda claim: claim[:2])
        self._finished = Batcher[tuple[int, int], None](self._finish_updates, limit=_UPDATES)

    @classmethod
    async def open(cls, dsn: str, now: int, clock: Clock | None = None, *, pgbouncer: bool = False) -> Self:
        """Connect to a database and bring its schema up to date where needed.

        Args:
            dsn: `postgresql://user:password@host:port/database`.
            now: when its schema is brought up to date, in ms.
            clock: read again when a decision's turn to be written comes; without it a decision counts as of the `now`
                that it was made with.
            pgbouncer: the address is that of a PgBouncer in transaction mode. Nothing is prepared by name then, and
                decisions are not heard from other nodes (LISTEN needs a connection of its own).

        Raises:
            PostgresTooOld: the server is older than 14.
            StoreUnavailable: the database cannot be reached; the sentence says what to check.
            MigrationChanged: it was made by a release with another history.
        """
        await migrate_postgres(dsn, now)
        return cls(await PostgresPool.open(dsn, pgbouncer=pgbouncer), clock, pgbouncer=pgbouncer)

    async def close(self) -> None:
        await self._sessions.close()
        for each in (self._claims, self._secrets, self._sign_in_projects, self._keys):
            await each.close()
        await self._finished.close()
        await self._attempts.close()
        await self._pool.close()

    async def ping(self) -> None:
        await self._pool.fetch("SELECT 1")

    # ---- what the installation remembers about itself

    async def read_mark(self, name: str) -> bytes | None:
        found = await self._pool.find(session_queries.READ_MARK, name)
        return found[0][0] if found else None

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        async def claim(connection: asyncpg.Connection) -> bytes:
            # Two statements and no transaction: the second sees what another node kept while the first waited for it.
            await connection.execute(session_queries.CLAIM_MARK, name, value)
            kept: bytes = await connection.fetchval(session_queries.READ_MARK, name)
            return kept

        return await self._pool.run(claim)

    # ---- several processes on one store

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        return bool(await self._pool.fetch(session_queries.HOLD_LEASE, name, holder, until, now))

    async def release_lease(self, name: str, holder: str) -> None:
        await self._pool.fetch(session_queries.RELEASE_LEASE, name, holder)

    async def watch_decisions(self, wake: Callable[[SessionKey], None], needed: asyncio.Event) -> None:
        """Listen on a connection of its own. Through PgBouncer nothing is heard: it only waits to be cancelled."""
        if self._pgbouncer:
            await asyncio.Event().wait()
        await listen(self._pool.connect, wake, needed)

    # ---- the life of a session

    async def create_session(self, session: NewSession, *, public: bool) -> bool:
        return await self._sessions.create.run((session, public))

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        return await self._sessions.poll.run(key)

    async def read_session(self, key: SessionKey) -> Session | None:
        found = await self._pool.fetch(session_queries.READ_SESSION, *key)
        return session_from(found[0]) if found else None

    async def open_session(self, key: SessionKey, opener_id: str, now: int) -> bool:
        return await self._sessions.open.run(Opening(key, opener_id, now))

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, encrypted_phone: bytes | None = None
    ) -> bool:
        return await self._sessions.confirm.run(Confirmation(key, identity, now, event, encrypted_phone))

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> bool:
        return await self._sessions.cancel.run(Cancellation(key, opener_id, now, event))

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        return await self._sessions.consume.run((key, now))

    async def reread_session(self, key: SessionKey, since: int) -> ConsumedSession | None:
        found = await self._pool.fetch(session_queries.REREAD_SESSION, *key, since)
        return consumed_from(found[0]) if found else None

    async def report_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Status | None:
        return await self._sessions.report(key, opener_id, now, event)

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        await self._partitions.prepare(set(range(first_day, last_day + 1)))

    async def expire_sessions(self, now: int, limit: int) -> int:
        return await self._sessions.expire(now, limit)

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
        return await list_sessions(
            self._pool, project_ids, status, before, limit, now, since=since, messenger_id=messenger_id
        )

    async def find_session(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        return await find_session(self._pool, project_ids, created_at, session_id, now)

    # ---- retention

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        return await self._partitions.drop(before_day, limit)

    async def purge_events(self, finished_before: int, limit: int) -> int:
        return len(await self._pool.fetch(sql.PURGE_EVENTS, finished_before, limit))

    async def purge_user_days(self, before_day: int, limit: int) -> int:
        return len(await self._pool.fetch(sql.PURGE_USER_DAYS, before_day, limit))

    # ---- analytics

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        rows = await self._pool.fetch(sql.READ_DAILY_COUNTS, storable(project_ids), first_day)
        return [DailyCounts(*row) for row in rows]

    async def read_daily_totals(self, developer_id: str, first_day: int) -> list[DailyCounts]:
        found = await self._pool.find(session_queries.READ_DAILY_TOTALS, developer_id, first_day)
        return [DailyCounts("", *row) for row in found]

    async def read_daily_users(self, developer_id: str, first_day: int) -> list[DailyUsers]:
        return [
            DailyUsers(*row) for row in await self._pool.find(session_queries.READ_DAILY_USERS, developer_id, first_day)
        ]

    # ---- bot updates

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        return await self._claims.run(_Claim(bot_id, update_id, now, stale_before))

    async def _claim_updates(self, items: list[_Claim]) -> list[UpdateClaim]:
        values = columns(items)
        claimed = {row[:] for row in await self._pool.fetch(sql.CLAIM_UPDATES, *values)}
        if len(claimed) == len(items):
            return ["claimed"] * len(items)
        done = {row[:] for row in await self._pool.fetch(sql.DONE_UPDATES, *values[:2])}
        return ["claimed" if item[:2] in claimed else "done" if item[:2] in done else "in_progress" for item in items]

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        await self._finished.run((bot_id, update_id))

    async def _finish_updates(self, items: list[tuple[int, int]]) -> list[None]:
        await self._pool.fetch(sql.FINISH_UPDATES, *columns(items))
        return [None] * len(items)

    async def release_update(self, bot_id: int, update_id: int) -> None:
        await self._pool.fetch(session_queries.RELEASE_UPDATE, bot_id, update_id)

    async def purge_updates(self, claimed_before: int, limit: int) -> int:
        return len(await self._pool.fetch(sql.PURGE_UPDATES, claimed_before, limit))
