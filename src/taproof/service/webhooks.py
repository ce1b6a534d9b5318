"""What is sent to a project's webhook URL: claimed, opened and signed here, posted by `worker/webhooks.py`.

This version sends each event once. The schedule of retries belongs in `finish_delivery`, where an attempt's outcome
is written down.
"""

from dataclasses import dataclass
from typing import Final

from taproof.core.clock import SECOND, Clock
from taproof.core.model import Delivery
from taproof.core.sealing import Sealer
from taproof.core.signature import signature_headers
from taproof.service.signin import event_body_binding, webhook_secret_binding
from taproof.storage.protocol import DeliveryOutcome, Storage

SEND_TIMEOUT: Final = 10
"""Seconds for one attempt in all: connect, send, read (contract.md, Webhooks)."""
_LEASE: Final = (SEND_TIMEOUT + 20) * SECOND


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The exact bytes and headers to post."""

    url: str
    headers: dict[str, str]
    body: bytes


class Webhooks:
    """Hands out due deliveries and writes down how they ended."""

    def __init__(self, storage: Storage, sealer: Sealer, clock: Clock, user_agent: str) -> None:
        self._storage = storage
        self._sealer = sealer
        self._clock = clock
        self._user_agent = user_agent

    async def claim_deliveries(self, limit: int) -> list[Delivery]:
        """Lease at most `limit` due events."""
        now = self._clock()
        return await self._storage.claim_deliveries(now, now + _LEASE, limit)

    def sign_delivery(self, delivery: Delivery) -> SignedRequest:
        """Open the event's body and sign exactly those bytes.

        Raises:
            SealBroken: the stored body or secret was altered.
        """
        event = delivery.event
        body = self._sealer.unseal(event.sealed_body, event_body_binding(event.id)).encode()
        secret = self._sealer.unseal(delivery.sealed_webhook_secret, webhook_secret_binding(event.project_id))
        headers = {"Content-Type": "application/json", "User-Agent": self._user_agent}
        headers |= signature_headers(event.id, body, secret, self._clock())
        return SignedRequest(delivery.webhook_url, headers, body)

    async def finish_delivery(self, delivery: Delivery, outcome: DeliveryOutcome) -> None:
        """Write down how the attempt ended."""
        await self._storage.finish_delivery(delivery, outcome, self._clock())
