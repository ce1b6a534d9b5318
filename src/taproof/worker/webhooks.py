"""Posts due webhook events: any 2xx within ten seconds counts, redirects are never followed (contract.md, Webhooks)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import structlog

from taproof.core.errors import SealBroken, StoreUnavailable
from taproof.core.model import Delivery
from taproof.service.webhooks import SEND_TIMEOUT, Webhooks
from taproof.storage.protocol import DeliveryOutcome
from taproof.worker.repeat import repeat_until

_AT_ONCE: Final = 50
_BREATH: Final = 0.02
_EVERY: Final = 0.5

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_client() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield the HTTP client for deliveries: no proxy from the environment, no cookies, ten seconds in all."""
    timeout = aiohttp.ClientTimeout(total=SEND_TIMEOUT)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=jar, trust_env=False) as client:
        yield client


class WebhookSender:
    """Claims due deliveries and posts up to `_AT_ONCE` at the same time; a slow receiver holds only its own place."""

    def __init__(self, webhooks: Webhooks, client: aiohttp.ClientSession) -> None:
        self._webhooks = webhooks
        self._client = client
        self._posts: set[asyncio.Task[None]] = set()

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Send until `stopping` is set; the posts under way are finished, which takes ten seconds at most."""

        async def start() -> float:
            return _BREATH if await self.start_due() else _EVERY

        await repeat_until(stopping, "webhooks", start)
        await self.finish_posts()

    async def finish_posts(self) -> None:
        """Wait for the posts under way."""
        if self._posts:
            await asyncio.wait(self._posts)

    async def start_due(self) -> int:
        """Begin to post what is due, as far as there are places; return how many were begun."""
        places = _AT_ONCE - len(self._posts)
        deliveries = await self._webhooks.claim_deliveries(places) if places else []
        for delivery in deliveries:
            post = asyncio.create_task(self._send(delivery))
            self._posts.add(post)
            post.add_done_callback(self._finished)
        return len(deliveries)

    def _finished(self, post: asyncio.Task[None]) -> None:
        self._posts.discard(post)
        if not post.cancelled() and (error := post.exception()) is not None:
            _log.error("webhooks.bug", error=type(error).__name__)

    async def _send(self, delivery: Delivery) -> None:
        outcome: DeliveryOutcome = "failed"
        try:
            request = self._webhooks.sign_delivery(delivery)
            post = self._client.post(request.url, data=request.body, headers=request.headers, allow_redirects=False)
            # The answer's body is not read: a hostile receiver could send one without end.
            async with post as response:
                reason = str(response.status)
                if 200 <= response.status < 300:
                    outcome = "delivered"
        except TimeoutError:
            reason = "timeout"
        except (aiohttp.ClientError, SealBroken, ValueError, OSError) as error:
            reason = type(error).__name__
        log = _log.info if outcome == "delivered" else _log.warning
        log(
            "webhooks.attempt",
            event_id=delivery.event.id,
            project_id=delivery.event.project_id,
            outcome=outcome,
            reason=reason,
        )
        try:
            await self._webhooks.finish_delivery(delivery, outcome)
        except StoreUnavailable as error:
            # The lease lapses by itself and the event is sent again: at least once, as promised.
            _log.warning("webhooks.outcome_not_stored", event_id=delivery.event.id, cause=str(error.__cause__))
