"""Webhook events, their deliveries and attempts, as frozen values. Times are as in `sessions.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from taproof.contract.delivery import DeliveryState, EventType
from taproof.contract.project import ProjectEvent
from taproof.core.errors import InvalidRequest
from taproof.core.projects import EncryptedWebhookSecrets


def read_events(names: Sequence[str]) -> tuple[ProjectEvent, ...]:
    """Return the events that a project chooses, in one order and without duplicates.

    Raises:
        InvalidRequest: there is none, or one is unknown; the sentence names its position in the list.
    """
    known = get_args(ProjectEvent)
    for place, name in enumerate(names, 1):
        if name not in known:
            raise InvalidRequest(
                f"webhook_events: number {place} of the list is unknown. The events are {', '.join(known)}."
            )
    if not names:
        raise InvalidRequest('webhook_events must name at least one event. To receive none, set webhook_url to "".')
    return tuple(each for each in known if each in names)


@dataclass(frozen=True, slots=True)
class Event:
    """A webhook event, recorded in the same transaction as the change of a session that causes it.

    `encrypted_body` is the exact body to send, which contains the session token. The store otherwise has only its hash.
    """

    id: str
    type: EventType
    project_id: str
    encrypted_body: bytes
    created_at: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A claimed event with the data needed to send it. The claim is a lease that ends at `leased_until`.

    `attempt` is the number of this attempt, from 1. `stage` is the position in the retry schedule: the number of
    attempts since the event was recorded or last resent. `endpoint_fails`: an attempt to this endpoint has failed, in
    any process, and none has succeeded since.
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
        """True for the first attempt after a developer resent the event."""
        return self.stage == 0 and self.attempt > 1


class PassedOver(NamedTuple):
    """The due events not to claim: those of `projects`, and those of `developers` except in `spared` projects."""

    projects: Sequence[str] = ()
    developers: Sequence[str] = ()
    spared: Sequence[str] = ()


NOBODY: Final = PassedOver()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver an event. `started_at` and `duration` are in ms.

    `status` is the receiver's HTTP status, and `error` a code from `contract/delivery.py`; one of them is None.
    `encrypted_answer` is the beginning of the response's body, encrypted because a receiver may return the session
    token that it received.
    """

    number: int
    started_at: int
    duration: int
    status: int | None
    error: str | None
    encrypted_answer: bytes | None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """An event's delivery, as its developer sees it.

    While `state` is "due", the next attempt is at `due_at`. A worker holds the event's lease until `leased_until`; 0
    means that none does. `interrupted` counts attempts whose worker ended before it recorded the outcome. `session_id`
    is None for a test.
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


AttemptOutcome = Literal["delivered", "retried", "dead", "turned_off", "skipped", "lost"]
"""The outcome of an attempt. "turned_off": it was the event's last attempt, and the project's webhook was turned off.
"skipped": nothing was sent, because the endpoint is failing. "lost": this worker no longer holds the lease."""


class DeliveryCounts(NamedTuple):
    """The queue of webhooks: events that wait for an attempt, those of them that are due now, and dead letters."""

    waiting: int
    due: int
    dead_letters: int
