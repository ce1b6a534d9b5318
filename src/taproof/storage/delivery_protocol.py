"""What the service asks of a store about webhook events and their deliveries. See `protocol.py`."""

from collections.abc import Sequence
from typing import Final, Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.deliveries import (
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

ENDED_AT_ONCE: Final = 200
"""Due deliveries that end in the very transaction that removes their webhook: 100,000 would hold up every other writer
for seconds."""


class DeliveryStorage(Protocol):
    """The part of the store that knows webhook events, their deliveries and attempts."""

    async def claim_deliveries(
        self, now: int, leased_until: int, limit: int, passed_over: PassedOver = NOBODY
    ) -> list[Delivery]:
        """Lease at most `limit` events that are due at `now` and that no living lease holds, oldest due first."""

    async def release_deliveries(self, deliveries: Sequence[Delivery], now: int) -> None:
        """Give up leases of events that nothing was sent of: they are due at once. Lost leases are passed over."""

    async def finish_attempt(
        self, delivery: Delivery, attempt: Attempt, state: DeliveryState, due_at: int, *, reached: bool = True
    ) -> bool:
        """Write down an attempt, and what becomes of its event: "due" again at `due_at`, or another state for good.

        One that was delivered ends the time for which the endpoint has been failing; any other begins it, unless
        `reached` is False: then nothing was tried. Of the event's attempts the latest `ATTEMPTS_SHOWN` are kept. False,
        and nothing is changed, when the lease was lost to another worker, or the webhook was removed meanwhile.
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
        """Empty a project's webhook URL, keep it and the reason for its developer to see, and end its due deliveries.

        They end as `update_project` has it. False when the URL is another by now, or when `failing_before` is given and
        the endpoint has not been failing since that time.
        """

    async def end_deliveries(self, limit: int) -> int:
        """End at most `limit` due deliveries that were left when their webhook was removed.

        Return how many. When it is 0 all of them have ended, or a later call goes on with them.
        """

    async def read_oldest_due(self, now: int) -> int | None:
        """Return since when the event has been due that has waited longest at `now`; None when none is due."""

    async def record_delivery(self, event: Event, attempt: Attempt, state: DeliveryState) -> bool:
        """Store an event with the one attempt that was made to send it; False when its project does not exist.

        One that was delivered ends the time for which the endpoint has been failing; any other changes nothing there.
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
        """Return one delivery with its attempts; None when it is of none of this developer's projects."""

    async def find_deliveries(self, project_id: str, created_at: int, session_id: str) -> list[DeliveryRecord]:
        """Return the deliveries of the events of a session, which was decided at `created_at`, with their attempts."""

    async def resend_delivery(
        self, developer_id: str, event_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Make an event due at once, with the schedule of retries from its beginning.

        One that a worker is sending at `now` is left alone. False when this developer has no such event, its project
        has no webhook URL, or its body was erased since the user has said that it was not them.
        """
