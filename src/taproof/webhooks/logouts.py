"""Post logout tokens to the clients of the OpenID provider, with the safety of webhooks (`http_client.py`).

If this loop is killed at any point, its leases lapse and the clients are told again, which does no harm.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog

from taproof.core.errors import DecryptionFailed, StoreUnavailable
from taproof.core.oidc.grants import Logout, LogoutOutcome
from taproof.service.loop import repeat_until
from taproof.service.oidc.logouts import Logouts
from taproof.service.webhooks import SignedRequest, WebhookResponse

_AT_ONCE: Final = 50
_AT_ONCE_FOR_CLIENT: Final = 10
"""The maximum number of concurrent posts to one client. The others wait, so that a client that hangs delays only
itself."""
_BATCH: Final = 20
_EVERY: Final = 0.5
"""Seconds between two claims."""

_log = structlog.get_logger(__name__)


class LogoutWatch(Protocol):
    """Reports attempts to the operator."""

    def count_logout(self, outcome: LogoutOutcome) -> None:
        """Count an attempt with a recorded outcome."""


class LogoutSender:
    """Posts due logout tokens.

    Args:
        logouts: claims, signs and finishes logouts.
        post: sends one request and never raises.
        watch: counts every attempt.
    """

    def __init__(
        self, logouts: Logouts, post: Callable[[SignedRequest], Awaitable[WebhookResponse]], watch: LogoutWatch
    ) -> None:
        self._logouts = logouts
        self._post = post
        self._watch = watch
        self._under_way: set[asyncio.Task[None]] = set()
        self._of_client: Counter[str] = Counter()
        self._of_developer: Counter[str] = Counter()
        self._waiting: dict[str, deque[Logout]] = {}
        """The claimed logouts for which their client or developer has no place, by client: at most a batch of each."""
        self._more = asyncio.Event()
        """Set if a client may have room again."""

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Send until `stopping` is set, then finish the current posts, which takes at most one post timeout."""
        await repeat_until(stopping, "logouts", self._claim_and_rest)
        self._waiting.clear()  # Their leases lapse.
        await self.finish_posts()

    async def finish_posts(self) -> None:
        """Wait until all posts are done and recorded."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _claim_and_rest(self) -> float:
        self._more.clear()
        if await self.claim_due() == _BATCH:
            return 0.0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_EVERY):
                await self._more.wait()
        return 0.0

    async def claim_due(self) -> int:
        """Claim one batch and start to send it; return the number of claimed logouts.

        Clients that have no place, or whose claimed logouts wait, are passed over.
        """
        for client_id, waiting in list(self._waiting.items()):
            if not self._logouts.has_time(waiting[0]):
                del self._waiting[client_id]  # Their leases lapse, and they are claimed again.
        full = {client_id for client_id, number in self._of_client.items() if number >= _AT_ONCE_FOR_CLIENT}
        room = min(_BATCH, self._free)
        claimed = await self._logouts.claim_logouts(room, full | self._waiting.keys()) if room > 0 else []
        for logout in claimed:
            self._waiting.setdefault(logout.client_id, deque()).append(logout)
        self._start()
        return len(claimed)

    @property
    def _free(self) -> int:
        return _AT_ONCE - len(self._under_way)

    def _start(self) -> None:
        """Start the posts for which there are places, one of each client in turn.

        A developer may use at most as many places as are free, so those with many clients that hang leave room.
        """
        begun = True
        while begun:
            begun = False
            for client_id, waiting in list(self._waiting.items()):
                of_developer = self._of_developer[waiting[0].developer_id]
                if self._of_client[client_id] < _AT_ONCE_FOR_CLIENT and of_developer < self._free:
                    begun = True
                    self._begin(waiting.popleft())
                    if not waiting:
                        del self._waiting[client_id]

    def _begin(self, logout: Logout) -> None:
        self._of_client[logout.client_id] += 1
        self._of_developer[logout.developer_id] += 1
        task = asyncio.create_task(self._send(logout))
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._start()
        self._more.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("logouts.bug", error=type(error).__name__)

    async def _send(self, logout: Logout) -> None:
        try:
            if self._logouts.has_time(logout):
                await self._tell(logout)
        except StoreUnavailable as error:
            # The lease lapses, and the client is notified again.
            _log.warning("logouts.store_unavailable", cause=str(error.__cause__))
        finally:
            self._of_client -= Counter([logout.client_id])
            self._of_developer -= Counter([logout.developer_id])

    async def _tell(self, logout: Logout) -> None:
        try:
            request = await self._logouts.sign_logout(logout)
            if request is None:
                return
            answer = await self._post(request)
        except DecryptionFailed:
            answer = WebhookResponse(0, error="not_signed")
        outcome = await self._logouts.finish_attempt(logout, answer)
        self._watch.count_logout(outcome)
        log = _log.debug if outcome == "delivered" else _log.warning
        log(
            "logouts.attempt",
            client_id=logout.client_id,
            project_id=logout.project_id,
            attempt=logout.attempt,
            outcome=outcome,
            reason=answer.error or str(answer.status),
            duration=answer.duration,
        )
