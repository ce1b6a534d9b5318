"""Webhook events, their deliveries and attempts."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from taproof.contract.delivery import DeliveryState, EventType
from taproof.contract.project import TurnOffReason
from taproof.core.accounts import AuditEntry
from taproof.core.deliveries import NOBODY, Attempt, Delivery, DeliveryCounts, DeliveryRecord, Event, PassedOver
from taproof.core.page_cursor import PageCursor
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.rights import require_role
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import attempt_values, recorded_values

ENDED_AT_ONCE: Final = 200
"""The maximum number of due deliveries that end in the transaction that removes their webhook. Ending 100,000 at once
would block all other writers for seconds."""
RECORD_EVENT: Final = """
INSERT INTO webhook_events (session_id, id, type, encrypted_body, created_at, state, due_at, leased_until, attempts,
  project_id)
SELECT $1, $2, $3, $4, $5, 'due', $5, 0, 0, p.id FROM projects p
WHERE p.id = $6 AND p.webhook_url <> '' AND p.webhook_events LIKE '%' || $3 || '%'"""
FIND_DUE: Final = """
SELECT e.id FROM webhook_events e JOIN projects p ON p.id = e.project_id
WHERE e.state = 'due' AND e.due_at <= $1 AND e.leased_until <= $1
  AND e.project_id NOT IN (SELECT value FROM json_each($2)) AND p.webhook_url <> ''
  AND e.project_id NOT IN (
    SELECT o.id FROM projects o WHERE o.developer_id IN (SELECT value FROM json_each($3))
      AND o.id NOT IN (SELECT value FROM json_each($4)))
ORDER BY e.due_at LIMIT $5"""
# A lease also moves `due_at`, so that the search for due events need not skip leased events.
CLAIM_DELIVERY: Final = """
UPDATE webhook_events SET interrupted = interrupted + CASE WHEN leased_until > 0 THEN 1 ELSE 0 END,
  due_at = $1, leased_until = $1
WHERE id = $2 AND state = 'due' AND due_at <= $3 AND leased_until <= $3
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = webhook_events.project_id AND p.webhook_url <> '')
RETURNING id, type, project_id, encrypted_body, created_at, attempts, schedule_start,
  (SELECT p.developer_id FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT p.webhook_url FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT p.encrypted_webhook_secret FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT p.encrypted_next_webhook_secret FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT p.next_webhook_secret_at FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT w.failing_since FROM webhook_endpoints w WHERE w.project_id = webhook_events.project_id)"""
READ_OLDEST_DUE: Final = """
SELECT due_at FROM webhook_events WHERE state = 'due' AND due_at <= $1 AND leased_until <= $1 ORDER BY due_at LIMIT 1"""
COUNT_WAITING: Final = """
SELECT COUNT(*), COALESCE(SUM(CASE WHEN due_at <= $1 AND leased_until <= $1 THEN 1 ELSE 0 END), 0)
FROM webhook_events WHERE state = 'due'"""
# The projects come first, because the index that finds failed events begins with the project.
COUNT_DEAD_LETTERS: Final = """
SELECT COUNT(*) FROM projects p CROSS JOIN webhook_events e WHERE e.project_id = p.id AND e.state = 'failed'"""
RELEASE_DELIVERY: Final = """
UPDATE webhook_events SET due_at = $1, leased_until = 0 WHERE id = $2 AND state = 'due' AND leased_until = $3"""
FINISH_ATTEMPT: Final = """
UPDATE webhook_events SET state = $1, due_at = $2, finished_at = $3, leased_until = 0, attempts = attempts + 1
WHERE id = $4 AND state = 'due' AND leased_until = $5
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = webhook_events.project_id AND p.webhook_url <> '')
RETURNING project_id"""
ADD_ATTEMPT: Final = """
INSERT INTO webhook_attempts (event_id, number, started_at, duration, status, error, encrypted_answer)
VALUES ($1, $2, $3, $4, $5, $6, $7)"""
ERASE_ATTEMPTS: Final = "DELETE FROM webhook_attempts WHERE event_id = $1 AND number <= $2"
ENDPOINT_WORKS: Final = "DELETE FROM webhook_endpoints WHERE project_id = $1 AND off_at IS NULL"
ENDPOINT_FAILS: Final = """
INSERT INTO webhook_endpoints (project_id, failing_since) VALUES ($1, $2) ON CONFLICT (project_id) DO NOTHING"""
FORGET_ENDPOINT: Final = "DELETE FROM webhook_endpoints WHERE project_id = $1"
EMPTY_WEBHOOK_URL: Final = """
UPDATE projects SET webhook_url = '' WHERE id = $1 AND webhook_url = $2 AND webhook_url <> ''
  AND (CAST($3 AS BIGINT) IS NULL
    OR EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.project_id = $1 AND w.failing_since <= $3))
RETURNING id"""
TURN_OFF_ENDPOINT: Final = """
INSERT INTO webhook_endpoints (project_id, off_at, off_reason, off_url) VALUES ($1, $2, $3, $4)
ON CONFLICT (project_id) DO UPDATE SET off_at = excluded.off_at, off_reason = excluded.off_reason,
  off_url = excluded.off_url"""
# If the project has a webhook again, its new events must not end.
END_DELIVERIES: Final = """
UPDATE webhook_events SET state = 'ended', finished_at = $1, leased_until = 0 WHERE id IN
  (SELECT id FROM webhook_events WHERE project_id = $2 AND state = 'due'
    AND NOT EXISTS (SELECT 1 FROM projects p WHERE p.id = $2 AND p.webhook_url <> '') LIMIT $3)
RETURNING id"""
REMEMBER_ENDED_WEBHOOK: Final = """
INSERT INTO ended_webhooks (project_id, ended_at) VALUES ($1, $2) ON CONFLICT (project_id) DO NOTHING"""
NEXT_ENDED_WEBHOOK: Final = "SELECT project_id, ended_at FROM ended_webhooks ORDER BY project_id LIMIT 1"
FIND_ENDED_WEBHOOK: Final = """
SELECT e.project_id, e.ended_at FROM ended_webhooks e JOIN projects p ON p.id = e.project_id
WHERE p.id = $1"""
IS_FAILING: Final = "SELECT 1 FROM webhook_endpoints WHERE project_id = $1 AND failing_since <= $2"
FORGET_ENDED_WEBHOOK: Final = "DELETE FROM ended_webhooks WHERE project_id = $1"
RECORD_DELIVERY: Final = """
INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, finished_at,
  project_id)
SELECT $1, $2, $3, $4, $5, $4, 0, 1, $6, p.id FROM projects p WHERE p.id = $7 RETURNING id"""
DELIVERY_COLUMNS: Final = """e.id, e.project_id, e.type, e.created_at, e.state, e.due_at, e.leased_until, e.finished_at,
  e.interrupted, e.session_id"""
_DELIVERY: Final = f"SELECT {DELIVERY_COLUMNS} FROM webhook_events e"
LIST_DELIVERIES: Final = f"""{_DELIVERY}
WHERE e.project_id = $1 AND e.state = $2 AND e.type = $3 AND (e.created_at, e.id) < ($4, $5)
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = $1)
ORDER BY e.created_at DESC, e.id DESC LIMIT $6"""
READ_DELIVERY: Final = f"""{_DELIVERY}
JOIN project_members m ON m.project_id = e.project_id WHERE m.developer_id = $1 AND e.id = $2"""
FIND_DELIVERIES: Final = f"""{_DELIVERY}
WHERE e.project_id = $1 AND e.state = $2 AND e.type = $3 AND e.created_at = $4 AND e.session_id = $5
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = $1)
ORDER BY e.id"""
READ_ATTEMPTS: Final = """
SELECT number, started_at, duration, status, error, encrypted_answer FROM webhook_attempts
WHERE event_id = $1 ORDER BY number DESC LIMIT $2"""
READ_EVENT_BODY: Final = "SELECT encrypted_body FROM webhook_events WHERE id = $1 AND LENGTH(encrypted_body) > 0"
FIND_PROJECT_OF_DELIVERY: Final = "SELECT project_id FROM webhook_events WHERE id = $1"
FIND_RESENDABLE: Final = """
SELECT e.id FROM webhook_events e JOIN projects p ON p.id = e.project_id
WHERE e.id = $1 AND p.webhook_url <> '' AND LENGTH(e.encrypted_body) > 0"""
RESEND_DELIVERY: Final = """
UPDATE webhook_events SET state = 'due', due_at = $1, leased_until = 0, finished_at = NULL, schedule_start = attempts,
  interrupted = interrupted + CASE WHEN state = 'due' AND leased_until > 0 THEN 1 ELSE 0 END
WHERE id = $2 AND (state <> 'due' OR leased_until <= $1) AND LENGTH(encrypted_body) > 0 RETURNING id"""
PURGE_EVENTS: Final = Purge("webhook_events", "id", "state <> 'due' AND finished_at < $1")


class _NotFailing(Exception):
    """Rolls back the transaction of `turn_off_webhook`."""


class DeliveryStorage(Protocol):
    """The methods of `store.deliveries` that each database implements."""

    async def claim_deliveries(
        self, now: int, leased_until: int, limit: int, passed_over: PassedOver = NOBODY
    ) -> list[Delivery]:
        """Lease at most `limit` events that are due at `now`, not leased and not `passed_over`; longest due first."""

    async def release_deliveries(self, deliveries: Sequence[Delivery], now: int) -> None:
        """Release the leases of events that were not sent, so that the events are due again. Skip lost leases."""

    async def finish_attempt(
        self, delivery: Delivery, attempt: Attempt, state: DeliveryState, due_at: int, *, reached: bool = True
    ) -> bool:
        """Record an attempt and the event's new state: "due" again at `due_at`, or a final state.

        With "delivered", the endpoint no longer counts as failing. With any other state, it counts as failing from this
        attempt on, unless it was already failing. If `reached` is False, no request was made, and the endpoint's state
        does not change. Only the event's latest `ATTEMPTS_SHOWN` attempts are kept.

        Return False if another worker has taken over the lease, or if the webhook was removed meanwhile.
        """

    async def list_deliveries(
        self,
        project_id: str,
        event_type: EventType | None,
        state: DeliveryState | None,
        before: PageCursor | None,
        limit: int,
    ) -> list[DeliveryRecord]:
        """Return deliveries of a project with their attempts, newest event first, strictly after `before`."""

    async def read_delivery(self, developer_id: str, event_id: str) -> DeliveryRecord | None:
        """Return one delivery with its attempts; None if it belongs to none of this developer's projects."""

    async def find_deliveries(self, project_id: str, created_at: int, session_id: str) -> list[DeliveryRecord]:
        """Return the deliveries, with their attempts, of the events of a session that was decided at `created_at`."""


class DeliveryQueries(Queries, DeliveryStorage):
    """Webhook events, their deliveries and attempts."""

    async def read_oldest_due(self, now: int) -> int | None:
        """Return the time since which the longest-waiting event is due at `now`; None if no event is due."""
        found = await self._database.read(READ_OLDEST_DUE, now)
        return found[0][0] if found else None

    async def read_event_body(self, event_id: str) -> bytes | None:
        """Return the encrypted body of an event; None if there is no such event or a report erased the body.

        Call it only for an event that `read_delivery` has returned for the developer.
        """
        found = await self._database.read(READ_EVENT_BODY, event_id)
        return found[0][0] if found else None

    async def count_deliveries(self, now: int) -> DeliveryCounts:
        """Return the size of the queue. Events that a worker is sending count as waiting, not as due."""
        ((waiting, due),) = await self._database.look_up(COUNT_WAITING, now)
        ((dead_letters,),) = await self._database.look_up(COUNT_DEAD_LETTERS)
        return DeliveryCounts(waiting, due, dead_letters)

    async def purge_events(self, finished_before: int, limit: int) -> int:
        """Erase at most `limit` webhook events that were finished before `finished_before`. Due events are kept."""
        return await self._database.purge(PURGE_EVENTS, finished_before, limit)

    async def record_delivery(self, developer_id: str, event: Event, attempt: Attempt, state: DeliveryState) -> bool:
        """Store an event that a member sent, with its only attempt; False if they are no member of its project.

        With "delivered", the endpoint no longer counts as failing.
        """

        async def record(transaction: Transaction) -> bool:
            if not await require_role(transaction, developer_id, event.project_id, "write"):
                return False
            if not await transaction.add(RECORD_DELIVERY, *recorded_values(event, attempt, state)):
                return False
            await transaction.add(ADD_ATTEMPT, *attempt_values(event.id, attempt))
            if state == "delivered":
                await transaction.fetch(ENDPOINT_WORKS, event.project_id)
            return True

        return await self._database.in_transaction(record)

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
        """Clear a project's webhook URL and end its due deliveries, as `update_project` does.

        The old URL and `reason` are stored for the developer. Return False if the URL has changed, or if
        `failing_before` is given and the endpoint has not been failing since then.
        """

        async def turn_off(transaction: Transaction) -> bool:
            if not await transaction.fetch(EMPTY_WEBHOOK_URL, project_id, webhook_url, failing_before):
                return False
            await begin_ending(transaction, project_id, now)
            # The lock waits for attempts that are being recorded: one of them may have succeeded.
            if failing_before is not None and not await transaction.lock(IS_FAILING, project_id, failing_before):
                raise _NotFailing
            await transaction.add(TURN_OFF_ENDPOINT, project_id, now, reason, webhook_url)
            await transaction.add_entry(entry)
            return True

        try:
            return await self._database.in_transaction(turn_off)
        except _NotFailing:
            return False

    async def end_deliveries(self, limit: int) -> int:
        """End at most `limit` due deliveries that remained when their webhook was removed; return their number.

        0 means that all of them have ended, or that a later call continues.
        """

        async def end(transaction: Transaction) -> int:
            found = await transaction.lock(NEXT_ENDED_WEBHOOK, mode="FOR UPDATE SKIP LOCKED")
            return await continue_ending(transaction, found, limit)

        # A write waits for the disk, so start one only if there are deliveries to end.
        return await self._database.in_transaction(end) if await self._database.read(NEXT_ENDED_WEBHOOK) else 0

    async def resend_delivery(
        self, developer_id: str, event_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Make an event due immediately, and restart its retry schedule, unless a worker is sending it at `now`.

        Return False if this developer has no such event, its project has no webhook URL, or its body was erased by a
        report.
        """

        async def resend(transaction: Transaction) -> bool:
            for (project_id,) in await transaction.fetch(FIND_PROJECT_OF_DELIVERY, event_id):
                if not await require_role(transaction, developer_id, project_id, "write"):
                    return False
            # The lock delays a concurrent removal of the webhook, which then also ends this event.
            if not await transaction.lock(FIND_RESENDABLE, event_id, mode="FOR SHARE OF p"):
                return False
            if await transaction.fetch(RESEND_DELIVERY, now, event_id):
                await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(resend)


async def begin_ending(transaction: Transaction, project_id: str, now: int) -> None:
    """End the due deliveries of a webhook that was just removed. If there are too many, record that some remain."""
    if await transaction.end_deliveries(project_id, now, ENDED_AT_ONCE) == ENDED_AT_ONCE:
        await transaction.add(REMEMBER_ENDED_WEBHOOK, project_id, now)


async def continue_ending(transaction: Transaction, found: list[Any], limit: int) -> int:
    """Continue to end the deliveries that the found and locked row records, if there is a row."""
    ended = 0
    for project_id, ended_at in found:
        ended = await transaction.end_deliveries(project_id, ended_at, limit)
        if ended < limit:
            await transaction.fetch(FORGET_ENDED_WEBHOOK, project_id)
    return ended
