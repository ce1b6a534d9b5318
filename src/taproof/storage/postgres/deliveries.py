"""Webhook events on PostgreSQL: leases, attempts, and lists of deliveries."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, get_args

import asyncpg

from taproof.contract.delivery import ATTEMPTS_SHOWN, DeliveryState, EventType
from taproof.core.deliveries import NOBODY, Attempt, Delivery, DeliveryRecord, PassedOver
from taproof.core.page_cursor import PageCursor
from taproof.storage.batcher import Batcher
from taproof.storage.postgres.database import PostgresDatabase, storable
from taproof.storage.queries import deliveries as queries
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import Row, attempt_values, columns, delivery_from, finish_values, page_start, with_attempts

_WRITES: Final = 256
"""The maximum number of events in one statement. It bounds how long the statement holds its locks."""
CLAIM_DELIVERIES: Final = """
WITH due AS MATERIALIZED (
  SELECT e.id, e.due_at, p.developer_id, p.webhook_url, p.encrypted_webhook_secret, p.encrypted_next_webhook_secret,
    p.next_webhook_secret_at,
    (SELECT w.failing_since FROM webhook_endpoints w WHERE w.project_id = e.project_id) AS failing_since
  FROM webhook_events e JOIN projects p ON p.id = e.project_id
  WHERE e.state = 'due' AND e.due_at <= $2 AND e.leased_until <= $2 AND e.project_id <> ALL ($4::TEXT[])
    AND p.webhook_url <> ''
    AND e.project_id NOT IN (
      SELECT o.id FROM projects o WHERE o.developer_id = ANY ($5::TEXT[]) AND o.id <> ALL ($6::TEXT[]))
  ORDER BY e.due_at LIMIT $3 FOR UPDATE OF e SKIP LOCKED
), claimed AS (
  UPDATE webhook_events e SET interrupted = e.interrupted + CASE WHEN e.leased_until > 0 THEN 1 ELSE 0 END,
    due_at = $1, leased_until = $1
  FROM due WHERE e.id = due.id
  RETURNING e.id, e.type, e.project_id, e.encrypted_body, e.created_at, e.attempts, e.schedule_start
)
SELECT c.*, due.developer_id, due.webhook_url, due.encrypted_webhook_secret, due.encrypted_next_webhook_secret,
  due.next_webhook_secret_at, due.failing_since
FROM claimed c JOIN due ON due.id = c.id ORDER BY due.due_at"""
_HELD: Final = """
  SELECT a.* FROM (SELECT * FROM asked ORDER BY id COLLATE "C") AS a CROSS JOIN LATERAL (
    SELECT FROM webhook_events e
    WHERE e.id = a.id AND e.state || '' = 'due' AND e.leased_until = a.leased_until
      AND EXISTS (SELECT FROM projects p WHERE p.id = e.project_id AND p.webhook_url <> '')
    LIMIT 1 FOR UPDATE
  ) AS e"""
"""Locks the requested events whose lease the caller still holds and whose webhook was not removed."""
RELEASE_DELIVERIES: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($1::TEXT[], $2::BIGINT[]) AS a (id, leased_until)
), held AS MATERIALIZED ({_HELD}
)
UPDATE webhook_events e SET due_at = $3, leased_until = 0 FROM held h WHERE e.id = h.id"""
FINISH_ATTEMPTS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::INTEGER[], $7::BIGINT[],
    $8::BIGINT[], $9::INTEGER[], $10::TEXT[], $11::BYTEA[], $12::BOOLEAN[])
    AS a (state, due_at, finished_at, id, leased_until, number, started_at, duration, status, error, encrypted_answer,
      reached)
), held AS MATERIALIZED ({_HELD}
), finished AS (
  UPDATE webhook_events e SET state = h.state, due_at = h.due_at, finished_at = h.finished_at, leased_until = 0,
    attempts = e.attempts + 1
  FROM held h WHERE e.id = h.id RETURNING e.id, e.project_id, h.state, h.started_at, h.reached
), added AS (
  INSERT INTO webhook_attempts (event_id, number, started_at, duration, status, error, encrypted_answer)
  SELECT h.id, h.number, h.started_at, h.duration, h.status, h.error, h.encrypted_answer FROM held h
), endpoints AS MATERIALIZED (
  SELECT f.project_id, bool_or(f.state = 'delivered') AS works, MIN(f.started_at) FILTER (WHERE f.reached) AS failed_at
  FROM finished f GROUP BY f.project_id
), mended AS MATERIALIZED (
  SELECT w.project_id FROM webhook_endpoints w JOIN endpoints n ON n.project_id = w.project_id
  WHERE n.works AND w.off_at IS NULL ORDER BY w.project_id FOR UPDATE OF w
), forgotten AS (
  DELETE FROM webhook_endpoints w USING mended m WHERE w.project_id = m.project_id
), failing AS (
  INSERT INTO webhook_endpoints (project_id, failing_since)
  SELECT n.project_id, n.failed_at FROM endpoints n
  WHERE NOT n.works AND n.failed_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM webhook_endpoints w WHERE w.project_id = n.project_id)
  ORDER BY n.project_id ON CONFLICT (project_id) DO NOTHING
)
SELECT id FROM finished"""
_DELIVERY: Final = f"SELECT {queries.DELIVERY_COLUMNS} FROM webhook_events e"
LIST_DELIVERIES: Final = f"""
SELECT d.* FROM projects p CROSS JOIN unnest($2::TEXT[]) AS s (state) CROSS JOIN unnest($3::TEXT[]) AS t (type)
CROSS JOIN LATERAL ({_DELIVERY}
  WHERE e.project_id = p.id AND e.state = s.state AND e.type COLLATE "C" = t.type AND (e.created_at, e.id) < ($4, $5)
  ORDER BY e.created_at DESC, e.id DESC LIMIT $6
) AS d
WHERE p.id = $1 ORDER BY d.created_at DESC, d.id DESC LIMIT $6"""
FIND_DELIVERIES: Final = f"""
SELECT d.* FROM projects p CROSS JOIN unnest($2::TEXT[]) AS s (state) CROSS JOIN unnest($3::TEXT[]) AS t (type)
CROSS JOIN LATERAL ({_DELIVERY}
  WHERE e.project_id = p.id AND e.state = s.state AND e.type COLLATE "C" = t.type AND e.created_at = $4
    AND e.session_id = $5
  ORDER BY e.id -- So that it stays a query of its own: one walk for each state and type.
) AS d
WHERE p.id = $1 ORDER BY d.id"""
READ_ATTEMPTS: Final = """
SELECT a.* FROM unnest($1::TEXT[]) AS e (id) CROSS JOIN LATERAL (
  SELECT x.event_id, x.number, x.started_at, x.duration, x.status, x.error, x.encrypted_answer FROM webhook_attempts x
  WHERE x.event_id = e.id ORDER BY x.number DESC LIMIT $2
) AS a ORDER BY a.event_id, a.number DESC"""


class _Finish(NamedTuple):
    """A `finish_attempt` call."""

    delivery: Delivery
    attempt: Attempt
    state: DeliveryState
    due_at: int
    reached: bool


class PostgresDeliveries(queries.DeliveryQueries):
    """See `storage.queries.deliveries.DeliveryQueries`."""

    _database: PostgresDatabase

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        # Only one of two calls for an event holds the lease, and a single statement cannot order the two calls.
        self._attempts = Batcher[_Finish, bool](self._finish, limit=_WRITES, key=lambda each: each.delivery.event.id)

    async def close(self) -> None:
        """Finish the waiting calls."""
        await self._attempts.close()

    async def claim_deliveries(
        self, now: int, leased_until: int, limit: int, passed_over: PassedOver = NOBODY
    ) -> list[Delivery]:
        if await self.read_oldest_due(now) is None:
            return []
        values = (leased_until, now, limit, *map(storable, passed_over))

        async def claim(transaction: Transaction) -> list[Delivery]:
            await transaction.read_in_order()
            return [delivery_from(row, leased_until) for row in await transaction.fetch(CLAIM_DELIVERIES, *values)]

        return await self._database.in_transaction(claim)

    async def release_deliveries(self, deliveries: Sequence[Delivery], now: int) -> None:
        if deliveries:
            values = columns((each.event.id, each.leased_until) for each in deliveries)
            await self._database.fetch(RELEASE_DELIVERIES, *values, now)

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
            finished = {row[0] for row in await connection.fetch(FINISH_ATTEMPTS, *values)}
            if outdated:
                await connection.executemany(queries.ERASE_ATTEMPTS, [each for each in outdated if each[0] in finished])
            return finished

        finished = await (self._database.transact(finish) if outdated else self._database.run(finish))
        return [each.delivery.event.id in finished for each in items]

    async def list_deliveries(
        self,
        project_id: str,
        event_type: EventType | None,
        state: DeliveryState | None,
        before: PageCursor | None,
        limit: int,
    ) -> list[DeliveryRecord]:
        # The index begins with project, state and type. Each pair of state and type needs one short index scan, and the
        # results are merged.
        states = [state] if state else get_args(DeliveryState)
        types = [event_type] if event_type else get_args(EventType)
        return await self._read(LIST_DELIVERIES, project_id, states, types, *page_start(before), limit)

    async def read_delivery(self, developer_id: str, event_id: str) -> DeliveryRecord | None:
        found = await self._read(queries.READ_DELIVERY, developer_id, event_id)
        return found[0] if found else None

    async def find_deliveries(self, project_id: str, created_at: int, session_id: str) -> list[DeliveryRecord]:
        states, types = get_args(DeliveryState), get_args(EventType)
        return await self._read(FIND_DELIVERIES, project_id, states, types, created_at, session_id)

    async def _read(self, statement: str, *values: Any) -> list[DeliveryRecord]:
        """Return the deliveries that a statement finds, with their attempts, from one snapshot."""

        async def read(transaction: Transaction) -> list[DeliveryRecord]:
            records = [DeliveryRecord(*row) for row in await transaction.fetch(statement, *values)]
            attempts: dict[str, list[Row]] = defaultdict(list)
            event_ids = [each.event_id for each in records]
            for event_id, *attempt in await transaction.fetch(READ_ATTEMPTS, event_ids, ATTEMPTS_SHOWN):
                attempts[event_id].append(attempt)
            return [with_attempts(each, attempts[each.event_id]) for each in records]

        return await self._database.in_lookup(read)
