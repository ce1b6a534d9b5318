"""The interface of `store.deliveries`."""

from collections.abc import Sequence
from typing import Protocol

from taproof.contract.delivery import DeliveryState, EventType
from taproof.contract.project import TurnOffReason
from taproof.core.accounts import AuditEntry
from taproof.core.deliveries import NOBODY, Attempt, Delivery, DeliveryCounts, DeliveryRecord, Event, PassedOver
from taproof.core.page_cursor import PageCursor


class DeliveryStorage(Protocol):
    """Webhook events, their deliveries and attempts."""

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

    async def end_deliveries(self, limit: int) -> int:
        """End at most `limit` due deliveries that remained when their webhook was removed; return their number.

        0 means that all of them have ended, or that a later call continues.
        """

    async def count_deliveries(self, now: int) -> DeliveryCounts:
        """Return the size of the queue. Events that a worker is sending count as waiting, not as due."""

    async def read_oldest_due(self, now: int) -> int | None:
        """Return the time since which the longest-waiting event is due at `now`; None if no event is due."""

    async def record_delivery(self, developer_id: str, event: Event, attempt: Attempt, state: DeliveryState) -> bool:
        """Store an event that a member sent, with its only attempt; False if they are no member of its project.

        With "delivered", the endpoint no longer counts as failing.
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

    async def read_event_body(self, event_id: str) -> bytes | None:
        """Return the encrypted body of an event; None if there is no such event or a report erased the body.

        Call it only for an event that `read_delivery` has returned for the developer.
        """

    async def find_deliveries(self, project_id: str, created_at: int, session_id: str) -> list[DeliveryRecord]:
        """Return the deliveries, with their attempts, of the events of a session that was decided at `created_at`."""

    async def resend_delivery(
        self, developer_id: str, event_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Make an event due immediately, and restart its retry schedule, unless a worker is sending it at `now`.

        Return False if this developer has no such event, its project has no webhook URL, or its body was erased by a
        report.
        """

    async def purge_events(self, finished_before: int, limit: int) -> int:
        """Erase at most `limit` webhook events that were finished before `finished_before`. Due events are kept."""
