"""Post logout tokens to the clients of the OpenID provider, with the safety of webhooks (`http_client.py`).

If this loop is killed at any point, its leases lapse and the clients are told again, which does no harm.
"""

import asyncio
from collections import Counter
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
"""The maximum number of concurrent posts to one client. The others wait until their leases lapse, so that a client that
hangs delays only itself."""
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

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Send until `stopping` is set, then finish the current posts, which takes at most one post timeout."""
        await repeat_until(stopping, "logouts", self._claim_and_rest)
        await self.finish_posts()

    async def finish_posts(self) -> None:
        """Wait until all posts are done and recorded."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _claim_and_rest(self) -> float:
        return 0.0 if await self.claim_due() == _BATCH else _EVERY

    async def claim_due(self) -> int:
        """Claim one batch and start to send it; return the number of claimed logouts."""
        room = min(_BATCH, _AT_ONCE - len(self._under_way))
        claimed = await self._logouts.claim_logouts(room) if room > 0 else []
        for logout in claimed:
            if self._of_client[logout.client_id] < _AT_ONCE_FOR_CLIENT:
                self._of_client[logout.client_id] += 1
                task = asyncio.create_task(self._send(logout))
                self._under_way.add(task)
                task.add_done_callback(self._ended)
        return len(claimed)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("logouts.bug", error=type(error).__name__)

    async def _send(self, logout: Logout) -> None:
        try:
            await self._tell(logout)
        except StoreUnavailable as error:
            # The lease lapses, and the client is notified again.
            _log.warning("logouts.store_unavailable", cause=str(error.__cause__))
        finally:
            self._of_client[logout.client_id] -= 1
            if not self._of_client[logout.client_id]:
                del self._of_client[logout.client_id]

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
