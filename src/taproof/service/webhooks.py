"""Claim, decrypt and sign the events for projects' webhook URLs; `webhooks/sender.py` posts them.

Source: contract.md, Webhooks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from taproof.contract.audit import AuditAction
from taproof.contract.delivery import AttemptError, DeliveryState
from taproof.contract.project import TurnOffReason
from taproof.core.clock import DAY, SECOND, Clock
from taproof.core.deliveries import NOBODY, Attempt, AttemptOutcome, Delivery, Event, PassedOver
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.projects import EncryptedWebhookSecrets
from taproof.core.proof import signing_secrets
from taproof.core.retry_after import retry_after_delay
from taproof.core.retry_schedule import RETRY_DELAYS, next_attempt_at
from taproof.core.signature import signature_headers
from taproof.service.audit import service_entry
from taproof.storage.protocol import Storage

SEND_TIMEOUT: Final = 10
"""The time limit of one attempt in seconds: connect, send and read (contract.md, Webhooks)."""
LEASE: Final = (SEND_TIMEOUT + 20) * SECOND
"""The duration (ms) of a worker's lease on an event: its own attempt, and one that it may have to wait for."""
_CLOCKS_APART: Final = SECOND
"""The largest difference (ms) allowed between nodes' clocks (docs/how-to/processes-and-nodes.md)."""
ANSWER_KEPT: Final = 1024
"""The number of bytes of a response's body that are stored for the developer."""
# The lookbehind lets a match start only where a run of these characters starts. The possessive "+" after "{43,}" does
# not backtrack. Each run is thus scanned once. tests/test_patterns.py checks this for every pattern.
_LIKE_A_TOKEN: Final = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43,}+")
"""Text to mask in responses, because a receiver may echo the session token that it received."""
_LIKE_HALF_A_TOKEN: Final = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{20,}+\Z")
"""Text to mask at the end of a truncated response."""
FAILING_LIMIT: Final = 5 * DAY
"""The time (ms) of uninterrupted failures after which a webhook is turned off, as soon as an event is given up."""


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The exact bytes and headers to post."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """The result of a post: the receiver's status and the beginning of its body, or the reason for no response.

    `duration` is in ms and includes the DNS lookup. `retry_after` has the values of the header Retry-After, if the
    status is one of `RETRY_AFTER_STATUSES`.
    """

    duration: int
    status: int | None = None
    error: AttemptError | None = None
    body: bytes = b""
    retry_after: tuple[str, ...] = ()

    @property
    def delivered(self) -> bool:
        """True if the receiver accepted the event with any 2xx status (contract.md, Webhooks)."""
        return self.status is not None and 200 <= self.status < 300


def request_headers(user_agent: str) -> dict[str, str]:
    """Return the headers of every event beside its signatures. Firewalls refuse requests without `Accept`.

    Responses are not decompressed, because a few bytes could expand to gigabytes.
    """
    headers = {"Accept": "*/*", "Accept-Encoding": "identity", "Content-Type": "application/json"}
    return headers | {"User-Agent": user_agent}


class Webhooks:
    """Claims due deliveries, signs them, and records the outcome of each attempt.

    Args:
        encryptor: decrypts event bodies and webhook secrets, and encrypts responses.
        user_agent: sent as `User-Agent`.
        retry_delays: the delays between attempts, in ms.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        clock: Clock,
        entropy: Entropy,
        user_agent: str,
        *,
        retry_delays: Sequence[int] = RETRY_DELAYS,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._entropy = entropy
        self._user_agent = user_agent
        self._retry_delays = retry_delays

    async def claim_deliveries(self, limit: int, passed_over: PassedOver = NOBODY) -> list[Delivery]:
        """Lease at most `limit` due events."""
        now = self._clock()
        return await self._storage.deliveries.claim_deliveries(now, now + LEASE, limit, passed_over)

    def has_time(self, delivery: Delivery) -> bool:
        """Return whether an attempt that begins now ends before the lease expires, even by another node's clock."""
        return self._clock() + SEND_TIMEOUT * SECOND + _CLOCKS_APART < delivery.leased_until

    async def release_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Release the leases of events that were not sent."""
        await self._storage.deliveries.release_deliveries(deliveries, self._clock())

    async def oldest_due_age(self) -> float:
        """Return for how many seconds the oldest due event has been waiting; 0 if none is due."""
        now = self._clock()
        since = await self._storage.deliveries.read_oldest_due(now)
        return 0.0 if since is None else (now - since) / SECOND

    def seconds_since(self, event: Event) -> float:
        """Return the seconds since the decision of an event; 0 if the clock of the node that stored it is ahead."""
        return max(0, self._clock() - event.created_at) / SECOND

    def sign_delivery(self, delivery: Delivery) -> SignedRequest:
        """Return the signed request of a delivery: see `sign_event`."""
        return self.sign_event(delivery.event, delivery.webhook_url, delivery.webhook_secrets)

    def sign_event(
        self, event: Event, webhook_url: str, webhook_secrets: EncryptedWebhookSecrets, *, at: int | None = None
    ) -> SignedRequest:
        """Decrypt an event's body and sign exactly those bytes, with the time `at` (ms) or now.

        Only a body that decrypts under the event's own id is signed, so write access to the store is not enough to
        forge one. During a rotation, `webhook-signature` contains the signatures of both secrets, and
        `X-Service-Signature` only that of the secret that signs proofs.

        Raises:
            DecryptionFailed: the stored body or secret was altered.
        """
        now = self._clock() if at is None else at
        body = self._encryptor.decrypt(event.encrypted_body, associated_data_of("event_body", event.id)).encode()
        associated_data = associated_data_of("webhook_secret", event.project_id)
        secrets = [
            self._encryptor.decrypt(each, associated_data)
            for each in signing_secrets(webhook_secrets, now)
            if each is not None
        ]
        headers = request_headers(self._user_agent) | signature_headers(event.id, body, secrets, now)
        return SignedRequest(webhook_url, headers, body)

    def new_attempt(self, event_id: str, number: int, answer: WebhookResponse) -> Attempt:
        """Return the attempt that has just ended with `answer`, as it will be stored."""
        encrypted = None
        if answer.body:
            bound = answer_associated_data(event_id, number)
            encrypted = self._encryptor.encrypt(_kept_answer(answer.body), bound, self._entropy)
        return Attempt(number, self._clock() - answer.duration, answer.duration, answer.status, answer.error, encrypted)

    async def finish_attempt(self, delivery: Delivery, answer: WebhookResponse) -> AttemptOutcome:
        """Record the outcome of an attempt and the event's next state, and turn the webhook off if needed.

        A 410 turns the webhook off; so does an event that is given up after five days in which every attempt failed. If
        the process is killed between the two writes, the next 410 or the next such event turns it off.
        """
        event = delivery.event
        attempt = self.new_attempt(event.id, delivery.attempt, answer)
        now = attempt.started_at + attempt.duration
        gone = answer.status == 410
        retry_at = None
        if not answer.delivered and not gone:
            asked = retry_after_delay(answer.retry_after, now)
            retry_at = next_attempt_at(delivery.stage, now, self._entropy, self._retry_delays, asked=asked)
        state: DeliveryState = "delivered" if answer.delivered else "failed" if retry_at is None else "due"
        # If nothing was sent, the attempt does not show whether the endpoint works.
        reached = answer.error not in {"circuit_open", "not_signed"}
        if not await self._storage.deliveries.finish_attempt(
            delivery, attempt, state, retry_at or now, reached=reached
        ):
            return "lost"
        if state == "delivered":
            return "delivered"
        if state == "due":
            return "skipped" if answer.error == "circuit_open" else "retried"
        reason: TurnOffReason = "gone" if gone else "failing"
        before = None if gone else now - FAILING_LIMIT
        project_id, url = event.project_id, delivery.webhook_url
        details = {"reason": reason, "host": urlsplit(url).hostname}
        action: AuditAction = "webhook.turned_off"
        entry = service_entry(delivery.developer_id, action, now, self._entropy, subject=project_id, details=details)
        is_off = await self._storage.deliveries.turn_off_webhook(project_id, url, reason, now, before, entry=entry)
        return "turned_off" if is_off else "dead"


def _kept_answer(body: bytes) -> str:
    """Return the beginning of a response's body as it will be stored, without anything that may be a session token."""
    text = body[:ANSWER_KEPT].decode(errors="replace")
    if len(body) >= ANSWER_KEPT:
        text = _LIKE_HALF_A_TOKEN.sub("…", text)
    return _LIKE_A_TOKEN.sub("…", text)


def answer_associated_data(event_id: str, number: int) -> str:
    """Return the associated data for the encrypted beginning of an attempt's response."""
    return f"webhook_answer:{event_id}:{number}"
