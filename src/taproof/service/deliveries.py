"""Show developers their webhook deliveries, resend them, and send tests (contract.md, Webhooks)."""

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from taproof.contract.delivery import DeliveryState, EventType
from taproof.core.accounts import Actor, Developer
from taproof.core.clock import Clock
from taproof.core.deliveries import Attempt, DeliveryRecord, Event
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed, DeliveryNotFound, ProjectNotFound, SignInReported, WebhookNotSet
from taproof.core.example_events import example_fields
from taproof.core.identifiers import is_event_id, session_created_at
from taproof.core.page_cursor import PageCursor
from taproof.core.projects import Project
from taproof.core.roles import permits
from taproof.core.sessions import Session
from taproof.core.signature import SIGNATURES
from taproof.service.audit import audit_entry
from taproof.service.paging import read_cursor, write_cursor
from taproof.service.project_access import read_project_for, reading_project
from taproof.service.sessions.events import new_event
from taproof.service.webhooks import SignedRequest, WebhookResponse, Webhooks, answer_associated_data
from taproof.storage.protocol import Storage

TESTS_OF_ONE_LIMIT: Final = 4
"""The maximum number of a developer's tests in progress in one process. Each can take as long as a receiver is allowed
to take. Developers have no limit together, so that nobody's hanging receivers delay somebody else's tests."""

PAGE_ATTEMPTS: Final = 400
"""The maximum number of attempts on a page of deliveries. Decrypting and writing one response takes ten microseconds of
the event loop, and 200 deliveries may have 10,000 attempts."""
READ_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class SeenDelivery:
    """A delivery as its developer sees it.

    `sending`: a worker is sending it now. `answers`: the beginning of the receiver's response to each attempt;
    None if there was no response or it cannot be decrypted.
    """

    record: DeliveryRecord
    sending: bool
    answers: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """One page of deliveries. `next_cursor` requests the next page; None on the last page."""

    deliveries: list[SeenDelivery]
    next_cursor: str | None


class Deliveries:
    """Shows a developer the deliveries of their projects, resends them, and sends tests.

    Args:
        encryptor: encrypts the bodies of tests, and decrypts responses.
        webhooks: signs tests.
        post: sends one request and returns its result, a response or an error.
        recorded: called when an event has become due, so that it is sent immediately.
        page_attempts: the maximum number of attempts on a page.
        read_at_once: the number of deliveries read from the store at a time.
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
        page_attempts: int = PAGE_ATTEMPTS,
        read_at_once: int = READ_AT_ONCE,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._entropy = entropy
        self._webhooks = webhooks
        self._post = post
        self._recorded = recorded
        self._page_attempts = page_attempts
        self._read_at_once = read_at_once
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
        """Return a page of at most `limit` deliveries of one project; fewer if they have many attempts.

        Raises:
            InvalidRequest: the project id or the cursor is malformed.
            ProjectNotFound: this developer has no such project.
        """
        before = None if cursor is None else read_cursor(cursor, "evt")
        page: list[DeliveryRecord] = []
        attempts, more = 0, True
        async with reading_project(self._storage, developer, project_id):
            while more and len(page) < limit and attempts < self._page_attempts:
                wanted = min(self._read_at_once, limit - len(page))
                filters = (project_id, event_type, state)
                found = await self._storage.deliveries.list_deliveries(*filters, before, wanted + 1)
                more = len(found) > wanted
                for record in found[:wanted]:
                    if page and attempts + len(record.attempts) > self._page_attempts:
                        attempts, more = self._page_attempts, True
                        break
                    page.append(record)
                    attempts += len(record.attempts)
                    before = PageCursor(record.created_at, record.event_id)
        next_cursor = write_cursor(*before) if more and before is not None else None
        seen = []
        for record in page:
            seen.append(self._seen(record))
            await asyncio.sleep(0)  # Let other tasks run: decrypting 50 responses takes time.
        return DeliveryPage(seen, next_cursor)

    async def read_delivery(self, developer: Developer, event_id: str) -> SeenDelivery:
        """Return one delivery, or raise DeliveryNotFound if this developer has no such delivery."""
        _require_event_id(event_id)
        record = await self._storage.deliveries.read_delivery(developer.id, event_id)
        if record is None:
            raise DeliveryNotFound
        return self._seen(record)

    async def rebuild_request(self, project: Project, record: DeliveryRecord, attempt: Attempt) -> SignedRequest | None:
        """Return the request of an attempt as far as it can be rebuilt; None if the event's body was erased or altered.

        Requests are not stored. The URL and the secret are those of now. The session token is masked in the body,
        because it could still collect the proof. So are the signatures for a viewer, who must not use the secret.
        """
        encrypted_body = await self._storage.deliveries.read_event_body(record.event_id)
        if encrypted_body is None:
            return None
        event = Event(record.event_id, record.type, record.project_id, encrypted_body, record.created_at)
        signer = (event, project.webhook_url, project.webhook_secrets)
        try:
            request = self._webhooks.sign_event(*signer, at=attempt.started_at)
        except DecryptionFailed:
            return None
        if not permits(project.role, "secrets"):
            hidden = dict.fromkeys(SIGNATURES & request.headers.keys(), "…")
            request = dataclasses.replace(request, headers={**request.headers, **hidden})
        session_token = json.loads(request.body).get("session_token")
        if session_token is None:
            return request
        return dataclasses.replace(request, body=request.body.replace(session_token.encode(), "…".encode()))

    async def find_deliveries(self, developer: Developer, session: Session) -> list[SeenDelivery]:
        """Return the deliveries of the events that a session caused: its decision or its end, and its report.

        Raises:
            ProjectNotFound: the session does not belong to this developer's projects.
        """
        # An event has exactly the time of its cause, because one transaction wrote both.
        ended_at = session.expires_at if session.status == "expired" else None
        times = dict.fromkeys([session.confirmed_at, session.cancelled_at, ended_at, session.reported_at])
        async with reading_project(self._storage, developer, session.project_id):
            found: list[DeliveryRecord] = []
            for at in filter(None, times):
                found += await self._storage.deliveries.find_deliveries(session.project_id, at, session.id)
        return [self._seen(record) for record in found]

    async def resend_delivery(self, actor: Actor, event_id: str) -> SeenDelivery:
        """Make an event due immediately, whatever its state, and restart its retry schedule.

        An event that a worker is sending now stays with that worker.

        Raises:
            DeliveryNotFound, InsufficientRole: this developer has no such delivery, or may not resend it.
            SignInReported: the user has reported the sign-in as not theirs.
            WebhookNotSet: the event's project has no webhook URL.
        """
        _require_event_id(event_id)
        developer_id, now = actor.developer.id, self._clock()
        record = await self._storage.deliveries.read_delivery(developer_id, event_id)
        if record is None:
            raise DeliveryNotFound
        project_id = record.project_id
        entry = audit_entry(actor, "delivery.resent", now, self._entropy, subject=event_id, project_id=project_id)
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
        session = await self._storage.sessions.read_session_by_id(project_ids, created_at, session_id, self._clock())
        return session is not None and session.reported_at is not None

    async def send_test(self, actor: Actor, project_id: str, event_type: EventType = "webhook.test") -> SeenDelivery:
        """Send a test event immediately and record it, without retries, even if the endpoint is failing.

        An event of another type than webhook.test has made-up fields. It is sent even if the project has not chosen it.

        Raises:
            InsufficientScope, InsufficientRole: the acting credential or the developer's role does not permit it.
            InvalidRequest, ProjectNotFound: as for `Projects.read_project`.
            WebhookNotSet: the project has no webhook URL.
        """
        actor.grant.require("write")
        developer = actor.developer
        of_one = self._tests_by_developer.setdefault(developer.id, asyncio.Semaphore(TESTS_OF_ONE_LIMIT))
        async with of_one:
            # Read the project only now: the URL may have been removed while the test waited.
            project = await read_project_for(self._storage, developer, project_id, "write")
            if project.webhook_url == "":
                raise WebhookNotSet
            now = self._clock()
            fields = example_fields(event_type, now, self._entropy)
            event = new_event(self._encryptor, self._entropy, now, event_type, project.id, **fields)
            answer = await self._send(event, project)
        attempt = self._webhooks.new_attempt(event.id, 1, answer)
        state: DeliveryState = "delivered" if answer.delivered else "failed"
        await self._storage.deliveries.record_delivery(developer.id, event, attempt, state)
        record = await self._storage.deliveries.read_delivery(developer.id, event.id)
        if record is None:
            raise ProjectNotFound
        return self._seen(record)

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
    # An id with a NUL or a lone surrogate must not reach the store.
    if not is_event_id(event_id):
        raise DeliveryNotFound
