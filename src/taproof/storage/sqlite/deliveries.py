"""Webhook events on SQLite: leases, attempts, and lists of deliveries."""

import heapq
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import get_args

import apsw

from taproof.contract.delivery import ATTEMPTS_SHOWN, DeliveryState, EventType
from taproof.core.deliveries import NOBODY, Attempt, Delivery, DeliveryRecord, PassedOver
from taproof.core.page_cursor import PageCursor
from taproof.storage.queries import deliveries as queries
from taproof.storage.rows import attempt_values, delivery_from, finish_values, page_start, with_attempts
from taproof.storage.sqlite.database import Read, SqliteDatabase
from taproof.storage.sqlite.group_commit import rows


class SqliteDeliveries(queries.DeliveryQueries):
    """See `storage.queries.deliveries.DeliveryQueries`."""

    _database: SqliteDatabase

    async def claim_deliveries(
        self, now: int, leased_until: int, limit: int, passed_over: PassedOver = NOBODY
    ) -> list[Delivery]:
        # Search for due events outside the transaction, because the transaction blocks other writers.
        due = self._database.rows(queries.FIND_DUE, (now, *(json.dumps(list(each)) for each in passed_over), limit))
        if not due:
            return []

        def write(connection: apsw.Connection) -> list[Delivery]:
            found = [rows(connection, queries.CLAIM_DELIVERY, (leased_until, event_id, now)) for (event_id,) in due]
            return [delivery_from(row, leased_until) for claimed in found for row in claimed]

        return await self._database.writer.run(write)

    async def release_deliveries(self, deliveries: Sequence[Delivery], now: int) -> None:
        def write(connection: apsw.Connection) -> None:
            for each in deliveries:
                connection.execute(queries.RELEASE_DELIVERY, (now, each.event.id, each.leased_until))

        if deliveries:
            await self._database.writer.run(write)

    async def finish_attempt(
        self, delivery: Delivery, attempt: Attempt, state: DeliveryState, due_at: int, *, reached: bool = True
    ) -> bool:
        def write(connection: apsw.Connection) -> bool:
            finished = rows(connection, queries.FINISH_ATTEMPT, finish_values(delivery, attempt, state, due_at))
            for (project_id,) in finished:
                connection.execute(queries.ADD_ATTEMPT, attempt_values(delivery.event.id, attempt))
                if attempt.number > ATTEMPTS_SHOWN:
                    connection.execute(queries.ERASE_ATTEMPTS, (delivery.event.id, attempt.number - ATTEMPTS_SHOWN))
                if state == "delivered":
                    connection.execute(queries.ENDPOINT_WORKS, (project_id,))
                elif reached:
                    connection.execute(queries.ENDPOINT_FAILS, (project_id, attempt.started_at))
            return bool(finished)

        return await self._database.writer.run(write)

    async def list_deliveries(
        self,
        project_id: str,
        event_type: EventType | None,
        state: DeliveryState | None,
        before: PageCursor | None,
        limit: int,
    ) -> list[DeliveryRecord]:
        start = page_start(before)
        states = [state] if state else get_args(DeliveryState)
        types = [event_type] if event_type else get_args(EventType)

        def look(read: Read) -> list[DeliveryRecord]:
            # The index begins with project, state and type. Each pair of state and type needs one short index scan, and
            # the results are merged.
            walks = [_walk(read, project_id, *pair, start) for pair in itertools.product(states, types)]
            newest_first = heapq.merge(*walks, key=lambda each: (each.created_at, each.event_id), reverse=True)
            return [_with_attempts(read, each) for each in itertools.islice(newest_first, limit)]

        return await self._database.in_snapshot(look)

    async def read_delivery(self, developer_id: str, event_id: str) -> DeliveryRecord | None:
        found = self._database.rows(queries.READ_DELIVERY, (developer_id, event_id))
        return _with_attempts(self._database.rows, DeliveryRecord(*found[0])) if found else None

    async def find_deliveries(self, project_id: str, created_at: int, session_id: str) -> list[DeliveryRecord]:
        def look(read: Read) -> list[DeliveryRecord]:
            return [
                _with_attempts(read, DeliveryRecord(*row))
                for state, event_type in itertools.product(get_args(DeliveryState), get_args(EventType))
                for row in read(queries.FIND_DELIVERIES, (project_id, state, event_type, created_at, session_id))
            ]

        # One snapshot covers all states, so an event that is finished meanwhile is seen exactly once.
        return await self._database.in_snapshot(look)


def _walk(read: Read, project_id: str, state: str, event_type: str, below: PageCursor) -> Iterator[DeliveryRecord]:
    """Yield a project's events in one state and of one type, newest first, in growing batches."""
    for limit in itertools.chain((1, 8, 64), itertools.repeat(200)):
        found = read(queries.LIST_DELIVERIES, (project_id, state, event_type, *below, limit))
        for row in found:
            record = DeliveryRecord(*row)
            yield record
        if len(found) < limit:
            return
        below = PageCursor(record.created_at, record.event_id)


def _with_attempts(read: Read, record: DeliveryRecord) -> DeliveryRecord:
    return with_attempts(record, read(queries.READ_ATTEMPTS, (record.event_id, ATTEMPTS_SHOWN)))
