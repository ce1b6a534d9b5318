"""Sends due webhook events: claims them in batches, posts each when its turn has come, writes down how that ended.

Whose turn it is, `scheduler.py` says; how a post is made, `http_client.py`. Killed at any point, this loop leaves
leases behind that lapse: an event is sent again, never lost (contract.md, Webhooks).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

import structlog

from taproof.core.deliveries import Delivery, PassedOver
from taproof.core.errors import DecryptionFailed, StoreUnavailable
from taproof.service.loop import repeat_until
from taproof.service.webhooks import AttemptOutcome, SignedRequest, WebhookResponse, Webhooks
from taproof.webhooks.scheduler import WAITING, Scheduler, Turn

_BATCH: Final = 100
_BREATH: Final = 0.02
"""Seconds between two claims at least: events that are recorded in quick succession are claimed together."""
_SHORT_BREATH: Final = 0.002
_EVERY: Final = 0.5
"""Seconds between two claims at most: events that another process recorded, and retries, are found by looking."""
_REST: Final = 10
"""How many times as long as a claim took the sender rests, when it has worked off what was due: what it must pass over
takes time each time anew, which on SQLite all the rest of the service waits for."""
_LOOK_ROUND: Final = 3.0
_WRITE_AGAIN: Final = (0.2, 1.0, 3.0)
"""Seconds between attempts to write down an outcome. The answer is there, so sending again is the last resort."""

_log = structlog.get_logger(__name__)


class WebhookWatch(Protocol):
    """Who watches the deliveries, for the operator."""

    def count_attempt(self, outcome: AttemptOutcome) -> None:
        """Count an attempt whose outcome was written down."""

    def show_oldest_due(self, seconds: float) -> None:
        """Show for how long the oldest due event has been waiting."""


class WebhookSender:
    """Posts due events; a receiver that is slow or fails takes up its own places only.

    Args:
        webhooks: claims, signs and finishes deliveries.
        post: makes one request; raises nothing.
        recorded: set by whoever makes an event due in this process, so that it is claimed at once; cleared here.
        watch: is told of every attempt.
    """

    def __init__(
        self,
        webhooks: Webhooks,
        post: Callable[[SignedRequest], Awaitable[WebhookResponse]],
        recorded: asyncio.Event,
        watch: WebhookWatch,
    ) -> None:
        self._webhooks = webhooks
        self._post = post
        self._recorded = recorded
        self._watch = watch
        self._scheduler = Scheduler(lambda: asyncio.get_running_loop().time())
        self._under_way: set[asyncio.Task[None]] = set()
        self._more = asyncio.Event()
        """There may be something to claim before the pause is over, or the process stops."""
        self._passed_over: set[str] = set()
        """Projects that may have due events which the last claim did not bring."""
        self._stopping = False

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Send until `stopping` is set. Posts under way are finished, which takes as long as a post may take."""
        hearing = [asyncio.create_task(self._hear_recorded()), asyncio.create_task(self._hear_stopping(stopping))]
        try:
            await asyncio.gather(
                repeat_until(stopping, "webhooks", self._claim_and_rest),
                repeat_until(stopping, "webhooks_age", self._look_round),
            )
            self._stopping = True
            self._release(self._scheduler.take_all())
            await self.finish_posts()
        finally:
            for task in hearing:
                task.cancel()

    async def finish_posts(self) -> None:
        """Wait until nothing is under way: no post, no outcome to be written down, nothing to be given back."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _hear_recorded(self) -> None:
        while True:
            await self._recorded.wait()
            self._recorded.clear()
            self._more.set()

    async def _hear_stopping(self, stopping: asyncio.Event) -> None:
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
            return _EVERY  # So many endpoints hang that nothing more can even wait.
        # What was given back stood before the events of others: those are not kept waiting for a breath each time.
        breath = _BREATH if kept == claimed else _SHORT_BREATH
        if claimed == _BATCH or self._stopping:
            return breath
        await self._until_more()
        return max(breath, min(_EVERY, _REST * (ended - began)) - (time() - ended))

    async def _until_more(self) -> None:
        try:
            async with asyncio.timeout(_EVERY):
                await self._more.wait()
        except TimeoutError:
            return

    async def _look_round(self) -> float:
        """Give back what has waited for too long, and show how far behind the sending is."""
        self._release(self._scheduler.take_late(lambda each: not self._webhooks.has_time(each)))
        self._watch.show_oldest_due(await self._webhooks.oldest_due_age())
        return _LOOK_ROUND

    async def claim_due(self) -> tuple[int, int]:
        """Claim one batch and begin to send it; return how many were claimed, and how many of them were kept."""
        if self._scheduler.waiting >= WAITING:
            return 0, 0
        full = self._scheduler.full_projects()
        crowded, spared = self._scheduler.crowded_developers(), self._scheduler.spared_projects()
        claimed = await self._webhooks.claim_deliveries(_BATCH, PassedOver(*map(sorted, (full, crowded, spared))))
        refused = [each for each in claimed if not self._scheduler.add(each)]
        self._begin()
        self._release(refused)
        self._passed_over = full | {each.event.project_id for each in refused if self._scheduler.is_full(each)}
        if full - self._scheduler.full_projects():
            self._more.set()  # Places of theirs came free while the claim was under way.
        return len(claimed), len(claimed) - len(refused)

    def _begin(self) -> None:
        """Begin with every event whose turn has come. What has no time left for a post is given back."""
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
            elif (request := self._signed(turn.delivery)) is None:
                answer = WebhookResponse(0, error="not_signed")
            else:
                answer = await self._post(request)
                delivered = answer.delivered
        finally:
            self._scheduler.finish(turn, delivered=delivered)
            # Not before the outcome is on its way to the store: killed in between, the event would be sent twice.
            asyncio.get_running_loop().call_soon(self._begin)
            if turn.delivery.event.project_id in self._passed_over and not self._scheduler.is_full(turn.delivery):
                self._more.set()
        await self._write_down(turn.delivery, answer)

    def _signed(self, delivery: Delivery) -> SignedRequest | None:
        try:
            return self._webhooks.sign_delivery(delivery)
        except DecryptionFailed:
            return None

    async def _write_down(self, delivery: Delivery, answer: WebhookResponse) -> None:
        event = delivery.event
        for pause in (*_WRITE_AGAIN, None):
            try:
                outcome = await self._webhooks.finish_attempt(delivery, answer)
            except StoreUnavailable as error:
                if pause is None:
                    # The lease lapses by itself and the event is sent again: at least once, as promised.
                    _log.warning("webhooks.outcome_not_stored", event_id=event.id, cause=str(error.__cause__))
                    return
                await asyncio.sleep(pause)
            else:
                break
        self._watch.count_attempt(outcome)
        if outcome == "turned_off":
            reason = "gone" if answer.status == 410 else "failing"
            _log.warning("webhooks.turned_off", project_id=event.project_id, reason=reason)
        # A line costs as much as the delivery itself, and of one that went well the attempt's row tells the same.
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
