"""The developer's view of webhook deliveries: every attempt, sending again, and a test (contract.md, Webhooks)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from taproof.core.accounts import Actor, Developer
from taproof.core.clock import Clock, iso8601
from taproof.core.deliveries import Attempt, DeliveryRecord, DeliveryState, Event, EventType
from taproof.core.encryption import Encryptor, event_body_associated_data
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed, DeliveryNotFound, ProjectNotFound, SignInReported, WebhookNotSet
from taproof.core.identifiers import is_event_id, new_event_id, session_created_at
from taproof.core.model import PageCursor, Project, Session
from taproof.service.audit import audit_entry
from taproof.service.paging import read_cursor, write_cursor
from taproof.service.projects import read_owned_project
from taproof.service.webhooks import SignedRequest, WebhookResponse, Webhooks, answer_associated_data
from taproof.storage.protocol import Storage

TESTS_LIMIT: Final = 16
"""Tests that are under way in a process at most; each may take as long as a receiver may."""
TESTS_OF_ONE_LIMIT: Final = 4
"""Of these, so many of one developer: whose receivers hang does not hold up the tests of the others."""

PAGE_ATTEMPTS: Final = 400
"""Attempts of all deliveries of a page: each answer takes the event loop ten microseconds to open and to write out, and
200 deliveries may have 10,000 of them."""
_READ_AT_ONCE: Final = 50
"""Deliveries that the store is asked for at a time."""


@dataclass(frozen=True, slots=True)
class SeenDelivery:
    """What a developer sees of a delivery.

    `sending`: a worker has it in hand. `answers`: the beginning of the receiver's answer to each attempt; None when
    there was none, or it cannot be opened.
    """

    record: DeliveryRecord
    sending: bool
    answers: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """One page; `next_cursor` asks for the one after it and is None on the last."""

    deliveries: list[SeenDelivery]
    next_cursor: str | None


class Deliveries:
    """Shows a developer the deliveries of their projects, and sends.

    Args:
        storage: the store.
        encryptor: encrypts the bodies of tests, and opens answers.
        clock: returns the time in ms.
        entropy: returns random bytes.
        webhooks: signs tests.
        post: sends one request, and returns whatever comes of it.
        recorded: called when an event has become due, so that it leaves at once.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        clock: Clock,
        entropy: Entropy,
        webhooks: Webhooks,
        *,
        post: Callable[[SignedRequest], Awaitable[WebhookResponse]],
        recorded: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._entropy = entropy
        self._webhooks = webhooks
        self._post = post
        self._recorded = recorded
        self._tests = asyncio.Semaphore(TESTS_LIMIT)
        self._tests_by_developer: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def list_deliveries(
        self,
        developer: Developer,
        project_id: str,
        *,
        event_type: EventType | None,
        state: DeliveryState | None,
        limit: int,
        cursor: str | None,
    ) -> DeliveryPage:
        """Return a page of at most `limit` deliveries of one project; of fewer when they have many attempts.

        Raises:
            InvalidRequest: a malformed project id or cursor.
            ProjectNotFound: none of this developer's.
        """
        before = None if cursor is None else read_cursor(cursor, "evt")
        await read_owned_project(self._storage, developer, project_id)
        page: list[DeliveryRecord] = []
        attempts, more = 0, True
        while more and len(page) < limit and attempts < PAGE_ATTEMPTS:
            wanted = min(_READ_AT_ONCE, limit - len(page))
            found = await self._storage.deliveries.list_deliveries(project_id, event_type, state, before, wanted + 1)
            more = len(found) > wanted
            for record in found[:wanted]:
                if page and attempts + len(record.attempts) > PAGE_ATTEMPTS:
                    attempts, more = PAGE_ATTEMPTS, True
                    break
                page.append(record)
                attempts += len(record.attempts)
                before = PageCursor(record.created_at, record.event_id)
        next_cursor = write_cursor(*before) if more and before is not None else None
        seen = []
        for record in page:
            seen.append(self._seen(record))
            await asyncio.sleep(0)  # Opening 50 answers takes its time: others have their turn in between.
        return DeliveryPage(seen, next_cursor)

    async def read_delivery(self, developer: Developer, event_id: str) -> SeenDelivery:
        """Return one delivery.

        Raises:
            DeliveryNotFound: none of this developer's.
        """
        _require_event_id(event_id)
        record = await self._storage.deliveries.read_delivery(developer.id, event_id)
        if record is None:
            raise DeliveryNotFound
        return self._seen(record)

    async def find_deliveries(self, developer: Developer, session: Session) -> list[SeenDelivery]:
        """Return the deliveries of the event that a session's decision caused; none while it is not decided.

        Raises:
            ProjectNotFound: the session is of none of this developer's projects.
        """
        await read_owned_project(self._storage, developer, session.project_id)
        # The event is as old as the decision to the millisecond: one transaction wrote down both.
        decided_at = session.confirmed_at if session.confirmed_at is not None else session.cancelled_at
        if decided_at is None:
            return []
        found = await self._storage.deliveries.find_deliveries(session.project_id, decided_at, session.id)
        return [self._seen(record) for record in found]

    async def resend_delivery(self, actor: Actor, event_id: str) -> SeenDelivery:
        """Make an event due at once, whatever became of it, with all of its retries ahead.

        One that a worker is sending just now is left to that worker.

        Raises:
            DeliveryNotFound: none of this developer's.
            SignInReported: its user has said that it was not them.
            WebhookNotSet: its project has no webhook URL.
        """
        _require_event_id(event_id)
        developer_id, now = actor.developer.id, self._clock()
        entry = audit_entry(actor, "delivery.resent", now, self._entropy, subject=event_id)
        made_due = await self._storage.deliveries.resend_delivery(developer_id, event_id, now, entry=entry)
        record = await self._storage.deliveries.read_delivery(developer_id, event_id)
        if record is None:
            raise DeliveryNotFound
        if not made_due:
            raise SignInReported if await self._is_reported(record) else WebhookNotSet
        self._recorded()
        return self._seen(record)

    async def _is_reported(self, record: DeliveryRecord) -> bool:
        created_at = session_created_at(record.session_id or "")
        if record.type != "auth.confirmed" or record.session_id is None or created_at is None:
            return False
        project_ids, session_id = [record.project_id], record.session_id
        session = await self._storage.sessions.find_session(project_ids, created_at, session_id, self._clock())
        return session is not None and session.reported_at is not None

    async def send_test(self, actor: Actor, project_id: str) -> SeenDelivery:
        """Send an event of type webhook.test at once, once, whatever is known of the endpoint, and record it.

        Raises:
            InsufficientScope: the acting credential may only read.
            InvalidRequest, ProjectNotFound: as for `Projects.read_project`.
            WebhookNotSet: the project has no webhook URL.
        """
        actor.grant.require("write")
        developer = actor.developer
        of_one = self._tests_by_developer.setdefault(developer.id, asyncio.Semaphore(TESTS_OF_ONE_LIMIT))
        async with of_one, self._tests:
            # Read when it is its turn: the URL may be removed while it waits.
            project = await read_owned_project(self._storage, developer, project_id)
            if project.webhook_url == "":
                raise WebhookNotSet
            event = self._test_event(project.id)
            answer = await self._send(event, project)
        attempt = self._webhooks.attempt(event.id, 1, answer)
        state: DeliveryState = "delivered" if answer.delivered else "failed"
        await self._storage.deliveries.record_delivery(event, attempt, state)
        record = await self._storage.deliveries.read_delivery(developer.id, event.id)
        if record is None:
            raise ProjectNotFound
        return self._seen(record)

    def _test_event(self, project_id: str) -> Event:
        now = self._clock()
        event_id = new_event_id(now, self._entropy)
        body = {"id": event_id, "event": "webhook.test", "project_id": project_id, "created_at": iso8601(now)}
        encrypted = self._encryptor.encrypt(json.dumps(body), event_body_associated_data(event_id), self._entropy)
        return Event(event_id, "webhook.test", project_id, encrypted, now)

    async def _send(self, event: Event, project: Project) -> WebhookResponse:
        try:
            request = self._webhooks.sign_event(event, project.webhook_url, project.webhook_secrets)
        except DecryptionFailed:
            return WebhookResponse(0, error="not_signed")
        return await self._post(request)

    def _seen(self, record: DeliveryRecord) -> SeenDelivery:
        sending = record.state == "due" and record.leased_until > self._clock()
        return SeenDelivery(record, sending, tuple(self._answer(record.event_id, each) for each in record.attempts))

    def _answer(self, event_id: str, attempt: Attempt) -> str | None:
        if attempt.encrypted_answer is None:
            return None
        try:
            return self._encryptor.decrypt(attempt.encrypted_answer, answer_associated_data(event_id, attempt.number))
        except DecryptionFailed:
            return None


def _require_event_id(event_id: str) -> None:
    # Any id that was not given out is unknown; one with a NUL or a lone surrogate must not reach the store.
    if not is_event_id(event_id):
        raise DeliveryNotFound
