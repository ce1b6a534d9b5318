"""Webhook events, their deliveries and attempts, as frozen values. Times are as in `model.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from taproof.core.model import EncryptedWebhookSecrets

EventType = Literal["auth.confirmed", "auth.cancelled", "webhook.test"]

DeliveryState = Literal["due", "delivered", "failed", "ended"]
"""What became of an event: still to be sent, taken by the receiver, given up after the last retry (dead letter), or
ended because its webhook was removed or turned off."""


@dataclass(frozen=True, slots=True)
class Event:
    """A webhook event to be recorded in the transaction of the decision that causes it.

    `encrypted_body` is the exact body that will be sent, encrypted: it holds the session token, of which nothing
    but a hash may lie in the store.
    """

    id: str
    type: EventType
    project_id: str
    encrypted_body: bytes
    created_at: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A claimed event with what is needed to send it. The claim is a lease that ends at `leased_until`.

    `attempt` is the number that this attempt has, from 1; `stage` how many attempts were made before it since the
    event was recorded or last resent: where the schedule of retries stands. `endpoint_fails` is what every process
    knows of the endpoint: nothing has succeeded there since an attempt failed.
    """

    event: Event
    developer_id: str
    webhook_url: str
    webhook_secrets: EncryptedWebhookSecrets
    attempt: int
    stage: int
    leased_until: int
    endpoint_fails: bool

    @property
    def is_resent(self) -> bool:
        """Whether this is the first attempt since a developer asked for the event to be sent again."""
        return self.stage == 0 and self.attempt > 1


class PassedOver(NamedTuple):
    """Whose due events are not claimed: those of `projects`, and of `developers` those of all projects but `spared`."""

    projects: Sequence[str] = ()
    developers: Sequence[str] = ()
    spared: Sequence[str] = ()


NOBODY: Final = PassedOver()
ATTEMPTS_SHOWN: Final = 50
"""The latest attempts of a delivery that are kept: a schedule has nine, but an event may be sent again at will."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver an event.

    `started_at` and `duration` in ms; `status` is the receiver's HTTP status, None when there was no answer; `error` a
    code of `core/attempt_errors.py`, None when there was one. `encrypted_answer` is the beginning of the answer's body,
    encrypted since a receiver may send back what it was sent.
    """

    number: int
    started_at: int
    duration: int
    status: int | None
    error: str | None
    encrypted_answer: bytes | None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """What a developer may see of an event's delivery.

    `due_at`: when the next attempt is made, while `state` is "due"; `leased_until`: until when a worker holds it, 0
    when none does. `interrupted` attempts were begun by a worker that ended before it could write down their outcome.
    `session_id`: the session whose decision the event tells of; None for a test, and for events of older releases.
    """

    event_id: str
    project_id: str
    type: EventType
    created_at: int
    state: DeliveryState
    due_at: int
    leased_until: int
    finished_at: int | None
    interrupted: int
    session_id: str | None = None
    attempts: tuple[Attempt, ...] = ()
