"""Send due webhook events: claim them in batches, post each one in its turn, and record the outcome.

`scheduler.py` chooses the next event, and `http_client.py` posts it. If this loop is killed at any point, its leases
lapse and the events are sent again, so no event is lost (contract.md, Webhooks).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

import structlog

from taproof.core.deliveries import AttemptOutcome, Delivery, PassedOver
from taproof.core.errors import DecryptionFailed, StoreUnavailable
from taproof.service.loop import repeat_until
from taproof.service.webhooks import SignedRequest, WebhookResponse, Webhooks
from taproof.webhooks.scheduler import LIMITS, Limits, Scheduler, Turn

_BATCH: Final = 100
_BREATH: Final = 0.02
"""The shortest time between two claims in seconds, so that events recorded in quick succession are claimed together."""
_SHORT_BREATH: Final = 0.002
EVERY: Final = 0.5
"""The longest time between two claims in seconds. Polling finds retries and the events of other processes."""
_REST: Final = 10
"""The pause after a claim that found no more due events, as a multiple of the claim's duration. Each claim has to skip
the same events again, and on SQLite the rest of the service waits for the claim."""
_RELEASE_EVERY: Final = 3.0
_DECISIONS: Final = frozenset({"auth.confirmed", "auth.cancelled"})
RECORD_RETRIES: Final = (0.2, 1.0, 3.0)
"""Seconds between attempts to record an outcome. The event was already sent, so sending it again is the last resort."""

_log = structlog.get_logger(__name__)


class WebhookWatch(Protocol):
    """Reports the state of deliveries to the operator."""

    def count_attempt(self, outcome: AttemptOutcome) -> None:
        """Count an attempt with a recorded outcome."""

    def observe_delivery(self, seconds: float) -> None:
        """Report how long after its decision an event was delivered at the first attempt."""

    def show_oldest_due(self, seconds: float) -> None:
        """Report for how long the oldest due event has been waiting."""


class WebhookSender:
    """Posts due events. A slow or failing receiver delays only its own events.

    Args:
        webhooks: claims, signs and finishes deliveries.
        post: sends one request and never raises.
        recorded: set when this process makes an event due, so that it is claimed immediately; cleared here.
        watch: counts every attempt.
        every: the longest time between two claims in seconds.
        record_retries: seconds between attempts to record an outcome.
    """

    def __init__(
        self,
        webhooks: Webhooks,
        post: Callable[[SignedRequest], Awaitable[WebhookResponse]],
        recorded: asyncio.Event,
        watch: WebhookWatch,
        *,
        every: float = EVERY,
        record_retries: Sequence[float] = RECORD_RETRIES,
        limits: Limits = LIMITS,
    ) -> None:
        self._webhooks = webhooks
        self._post = post
        self._recorded = recorded
        self._watch = watch
        self._every = every
        self._record_retries = record_retries
        self._limits = limits
        self._scheduler = Scheduler(lambda: asyncio.get_running_loop().time(), limits)
        self._under_way: set[asyncio.Task[None]] = set()
        self._more = asyncio.Event()
        """Set if there can be something to claim before the pause ends, or if the process is stopping."""
        self._passed_over: set[str] = set()
        """Projects with possible due events that the last claim skipped."""
        self._stopping = False

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Send until `stopping` is set, then finish the current posts, which takes at most one post timeout."""
        waiting = [asyncio.create_task(self._wait_for_recorded()), asyncio.create_task(self._wait_for_stop(stopping))]
        try:
            await asyncio.gather(
                repeat_until(stopping, "webhooks", self._claim_and_rest),
                repeat_until(stopping, "webhooks_age", self._release_late_events),
            )
            self._stopping = True
            self._release(self._scheduler.take_all())
            await self.finish_posts()
        finally:
            for task in waiting:
                task.cancel()

    async def finish_posts(self) -> None:
        """Wait until all work is done: posts, recording of outcomes, and releases of events."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _wait_for_recorded(self) -> None:
        while True:
            await self._recorded.wait()
            self._recorded.clear()
            self._more.set()

    async def _wait_for_stop(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        self._stopping = True
        self._more.set()

    async def _claim_and_rest(self) -> float:
        self._more.clear()
        crowded = set(self._scheduler.crowded_developers())
        time = asyncio.get_running_loop().time
        began = time()
        claimed, kept = await self.claim_due()
        ended = time()
        if claimed and not kept and self._scheduler.crowded_developers() <= crowded:
            return self._every  # So many endpoints are hanging that the queue has no room for their events.
        # Released events were claimed before other endpoints' events, which should not wait for a full pause.
        breath = _BREATH if kept == claimed else _SHORT_BREATH
        if claimed == _BATCH or self._stopping:
            return breath
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._every):
                await self._more.wait()
        return max(breath, min(self._every, _REST * (ended - began)) - (time() - ended))

    async def _release_late_events(self) -> float:
        """Release events that have waited too long, and report the age of the oldest due event."""
        self._release(self._scheduler.take_late(lambda each: not self._webhooks.has_time(each)))
        self._watch.show_oldest_due(await self._webhooks.oldest_due_age())
        return _RELEASE_EVERY

    async def claim_due(self) -> tuple[int, int]:
        """Claim one batch and start to send it. Return the number of claimed events, and how many of them were kept."""
        if self._scheduler.waiting >= self._limits.waiting:
            return 0, 0
        full = self._scheduler.full_projects()
        crowded, spared = self._scheduler.crowded_developers(), self._scheduler.spared_projects()
        claimed = await self._webhooks.claim_deliveries(_BATCH, PassedOver(*map(sorted, (full, crowded, spared))))
        refused = [each for each in claimed if not self._scheduler.add(each)]
        self._begin()
        self._release(refused)
        self._passed_over = full | {each.event.project_id for each in refused if self._scheduler.is_full(each)}
        if full - self._scheduler.full_projects():
            self._more.set()  # Places for the skipped projects became free during the claim.
        return len(claimed), len(claimed) - len(refused)

    def _begin(self) -> None:
        """Start sending every event whose turn it is. Release events with too little time left for a post."""
        late: list[Delivery] = []
        while not self._stopping and (turn := self._scheduler.take()) is not None:
            if turn.post and not self._webhooks.has_time(turn.delivery):
                self._scheduler.finish(turn, delivered=None)
                late.append(turn.delivery)
            else:
                self._start(self._send(turn))
        self._release(late)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("webhooks.bug", error=type(error).__name__)

    def _release(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            self._start(self._give_back(deliveries))

    async def _give_back(self, deliveries: Sequence[Delivery]) -> None:
        try:
            await self._webhooks.release_deliveries(deliveries)
        except StoreUnavailable as error:
            _log.warning("webhooks.not_released", deliveries=len(deliveries), cause=str(error.__cause__))

    async def _send(self, turn: Turn) -> None:
        delivered: bool | None = None
        try:
            if not turn.post:
                answer = WebhookResponse(0, error="circuit_open")
            else:
                answer = await self._post(self._webhooks.sign_delivery(turn.delivery))
                delivered = answer.delivered
        except DecryptionFailed:
            answer = WebhookResponse(0, error="not_signed")
        finally:
            self._scheduler.finish(turn, delivered=delivered)
            # Only after the write of the outcome has begun: if the process is killed first, the event is sent twice.
            asyncio.get_running_loop().call_soon(self._begin)
            if turn.delivery.event.project_id in self._passed_over and not self._scheduler.is_full(turn.delivery):
                self._more.set()
        await self._record_outcome(turn.delivery, answer)

    async def _record_outcome(self, delivery: Delivery, answer: WebhookResponse) -> None:
        event = delivery.event
        for pause in (*self._record_retries, None):
            try:
                outcome = await self._webhooks.finish_attempt(delivery, answer)
            except StoreUnavailable as error:
                if pause is None:
                    # The lease lapses and the event is sent again, as "at least once" delivery allows.
                    _log.warning("webhooks.outcome_not_stored", event_id=event.id, cause=str(error.__cause__))
                    return
                await asyncio.sleep(pause)
            else:
                break
        self._watch.count_attempt(outcome)
        # Only decisions: an auth.expired event is dated back to the end of its session.
        if outcome == "delivered" and delivery.attempt == 1 and event.type in _DECISIONS:
            self._watch.observe_delivery(self._webhooks.seconds_since(event))
        if outcome == "turned_off":
            reason = "gone" if answer.status == 410 else "failing"
            _log.warning("webhooks.turned_off", project_id=event.project_id, reason=reason)
        # A log entry costs as much as the delivery, and the stored row of a successful attempt has the same data.
        log = _log.debug if outcome == "delivered" else _log.warning
        log(
            "webhooks.attempt",
            event_id=event.id,
            project_id=event.project_id,
            attempt=delivery.attempt,
            outcome=outcome,
            reason=answer.error or str(answer.status),
            duration=answer.duration,
        )
