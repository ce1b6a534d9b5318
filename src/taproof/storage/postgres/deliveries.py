"""Webhook events on PostgreSQL: leases, attempts and what a developer sees of them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.deliveries import (
    ATTEMPTS_SHOWN,
    NOBODY,
    Attempt,
    Delivery,
    DeliveryRecord,
    DeliveryState,
    Event,
    EventType,
    PassedOver,
)
from taproof.core.model import PageCursor, TurnOffReason
from taproof.storage.delivery_protocol import ENDED_AT_ONCE
from taproof.storage.postgres import delivery_sql
from taproof.storage.postgres.batcher import Batcher
from taproof.storage.postgres.developers import PostgresAccounts, add_entry
from taproof.storage.postgres.pool import PostgresPool, storable
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.rows import (
    attempt_values,
    columns,
    delivery_from,
    delivery_record_from,
    finish_values,
    recorded_values,
)

_WRITES: Final = 256
"""Events in one statement at most: bounds how long it holds its locks."""
_FOREVER: Final = 2**62
_NO_SORT: Final = "SET LOCAL enable_sort = off"
"""What is due is then read in the order of an index, as far as it is needed. By the statistics of a quiet hour it
would look cheaper to read all of it and sort."""
_ONE_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class _NotFailing(Exception):
    """Undoes the transaction of `turn_off_webhook`."""


class _Finish(NamedTuple):
    """A call of `finish_attempt`."""

    delivery: Delivery
    attempt: Attempt
    state: DeliveryState
    due_at: int
    reached: bool


class PostgresDeliveries(PostgresAccounts):
    """The part of the store that holds webhook events. See `storage.protocol.Storage`."""

    def __init__(self, pool: PostgresPool) -> None:
        super().__init__(pool)
        # Only one of two calls for one event has its lease, and a single statement could not tell which comes first.
        self._attempts = Batcher[_Finish, bool](self._finish, limit=_WRITES, key=lambda each: each.delivery.event.id)

    async def claim_deliveries(
        self, now: int, leased_until: int, limit: int, passed_over: PassedOver = NOBODY
    ) -> list[Delivery]:
        if await self.read_oldest_due(now) is None:
            return []
        values = (leased_until, now, limit, *map(storable, passed_over))

        async def claim(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            await connection.execute(_NO_SORT)
            rows: list[asyncpg.Record] = await connection.fetch(delivery_sql.CLAIM_DELIVERIES, *values)
            return rows

        return [delivery_from(row, leased_until) for row in await self._pool.transact(claim)]

    async def release_deliveries(self, deliveries: Sequence[Delivery], now: int) -> None:
        if deliveries:
            values = columns((each.event.id, each.leased_until) for each in deliveries)
            await self._pool.fetch(delivery_sql.RELEASE_DELIVERIES, *values, now)

    async def finish_attempt(
        self, delivery: Delivery, attempt: Attempt, state: DeliveryState, due_at: int, *, reached: bool = True
    ) -> bool:
        return await self._attempts.run(_Finish(delivery, attempt, state, due_at, reached))

    async def _finish(self, items: list[_Finish]) -> list[bool]:
        values = columns(
            (*finish_values(*each[:4]), *attempt_values(each.delivery.event.id, each.attempt)[1:], each.reached)
            for each in items
        )
        outdated = [
            (each.delivery.event.id, each.attempt.number - ATTEMPTS_SHOWN)
            for each in items
            if each.attempt.number > ATTEMPTS_SHOWN
        ]

        async def finish(connection: asyncpg.Connection) -> set[str]:
            finished = {row[0] for row in await connection.fetch(delivery_sql.FINISH_ATTEMPTS, *values)}
            if outdated:
                await connection.executemany(
                    delivery_queries.ERASE_ATTEMPTS, [each for each in outdated if each[0] in finished]
                )
            return finished

        finished = await (self._pool.transact(finish) if outdated else self._pool.run(finish))
        return [each.delivery.event.id in finished for each in items]

    async def turn_off_webhook(
        self,
        project_id: str,
        webhook_url: str,
        reason: TurnOffReason,
        now: int,
        failing_before: int | None,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        async def turn_off(connection: asyncpg.Connection) -> bool:
            if not await connection.fetch(delivery_queries.EMPTY_WEBHOOK_URL, project_id, webhook_url, failing_before):
                return False
            await begin_ending(connection, project_id, now)
            # This waits for the attempts that are just being written down: one of them may have succeeded.
            if failing_before is not None and not await connection.fetch(
                delivery_sql.IS_FAILING, project_id, failing_before
            ):
                raise _NotFailing
            await connection.execute(delivery_queries.TURN_OFF_ENDPOINT, project_id, now, reason, webhook_url)
            await add_entry(connection, entry)
            return True

        try:
            return await self._pool.transact(turn_off)
        except _NotFailing:
            return False

    async def end_deliveries(self, limit: int) -> int:
        if not await self._pool.fetch(delivery_queries.NEXT_ENDED_WEBHOOK):
            return 0
        return await self._end_more(delivery_sql.NEXT_ENDED_WEBHOOK, (), limit)

    async def _end_more(self, find: str, values: tuple[str, ...], limit: int) -> int:
        """Go on with the ending that a statement finds and locks, if any."""

        async def end(connection: asyncpg.Connection) -> int:
            ending = await connection.fetchrow(find, *values)
            if ending is None:
                return 0
            project_id, ended_at = ending
            ended = await _end(connection, project_id, ended_at, limit)
            if ended < limit:
                await connection.execute(delivery_queries.FORGET_ENDED_WEBHOOK, project_id)
            return ended

        return await self._pool.transact(end)

    async def read_oldest_due(self, now: int) -> int | None:
        found = await self._pool.fetch(delivery_queries.READ_OLDEST_DUE, now)
        return found[0][0] if found else None

    async def record_delivery(self, event: Event, attempt: Attempt, state: DeliveryState) -> bool:
        async def record(connection: asyncpg.Connection) -> bool:
            if not await connection.fetch(delivery_queries.RECORD_DELIVERY, *recorded_values(event, attempt, state)):
                return False
            await connection.execute(delivery_queries.ADD_ATTEMPT, *attempt_values(event.id, attempt))
            if state == "delivered":
                await connection.execute(delivery_queries.ENDPOINT_WORKS, event.project_id)
            return True

        return await self._pool.transact(record)

    async def list_deliveries(
        self,
        project_id: str,
        event_type: EventType | None,
        state: DeliveryState | None,
        before: PageCursor | None,
        limit: int,
    ) -> list[DeliveryRecord]:
        if "\0" in project_id:
            return []
        # The characters of an id all come after both; PostgreSQL takes no NUL.
        start = before._replace(id=before.id.replace("\0", "\1")) if before else PageCursor(_FOREVER, "")
        # The index leads by project, state and type: each pair is one short walk, and the walks are merged.
        states = [state] if state else get_args(DeliveryState)
        types = [event_type] if event_type else get_args(EventType)

        async def read(connection: asyncpg.Connection) -> list[DeliveryRecord]:
            await connection.execute(_ONE_SNAPSHOT)
            rows = await connection.fetch(delivery_sql.LIST_DELIVERIES, project_id, states, types, *start, limit)
            return await _with_attempts(connection, rows)

        return await self._pool.transact(read)

    async def read_delivery(self, developer_id: str, event_id: str) -> DeliveryRecord | None:
        if "\0" in event_id:
            return None

        async def read(connection: asyncpg.Connection) -> list[DeliveryRecord]:
            await connection.execute(_ONE_SNAPSHOT)
            rows = await connection.fetch(delivery_queries.READ_DELIVERY, developer_id, event_id)
            return await _with_attempts(connection, rows)

        found = await self._pool.transact(read)
        return found[0] if found else None

    async def find_deliveries(self, project_id: str, created_at: int, session_id: str) -> list[DeliveryRecord]:
        if "\0" in project_id + session_id:
            return []
        states, types = get_args(DeliveryState), get_args(EventType)

        async def read(connection: asyncpg.Connection) -> list[DeliveryRecord]:
            await connection.execute(_ONE_SNAPSHOT)
            values = (project_id, states, types, created_at, session_id)
            return await _with_attempts(connection, await connection.fetch(delivery_sql.FIND_DELIVERIES, *values))

        return await self._pool.transact(read)

    async def resend_delivery(
        self, developer_id: str, event_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        if "\0" in event_id:
            return False

        async def resend(connection: asyncpg.Connection) -> bool:
            if not await connection.fetch(delivery_sql.FIND_RESENDABLE, developer_id, event_id):
                return False
            if await connection.fetch(delivery_queries.RESEND_DELIVERY, now, event_id):
                await add_entry(connection, entry)
            return True

        return await self._pool.transact(resend)


async def begin_ending(connection: asyncpg.Connection, project_id: str, now: int) -> None:
    """End the due deliveries of a webhook that was just removed, or make a note of those that are too many for now."""
    if await _end(connection, project_id, now, ENDED_AT_ONCE) == ENDED_AT_ONCE:
        await connection.execute(delivery_queries.REMEMBER_ENDED_WEBHOOK, project_id, now)


async def _end(connection: asyncpg.Connection, project_id: str, ended_at: int, limit: int) -> int:
    """End due deliveries of a project that has no webhook; return how many were found, `limit` at most."""
    await connection.execute(_NO_SORT)
    ended: int = await connection.fetchval(delivery_sql.END_DELIVERIES, ended_at, project_id, limit)
    return ended


async def _with_attempts(connection: asyncpg.Connection, rows: list[asyncpg.Record]) -> list[DeliveryRecord]:
    """Return the records of rows of deliveries, with their attempts."""
    attempts: dict[str, list[asyncpg.Record]] = defaultdict(list)
    event_ids = [row[0] for row in rows]
    for event_id, *attempt in await connection.fetch(delivery_sql.READ_ATTEMPTS, event_ids, ATTEMPTS_SHOWN):
        attempts[event_id].append(attempt)
    return [delivery_record_from(row, attempts[row[0]]) for row in rows]
