"""Conformance: a developer sees every delivery with its attempts, and can resend it."""

import asyncio
from typing import get_args

import pytest
from tests.storage.seed import Seed, present

from taproof.contract.delivery import DeliveryState, EventType
from taproof.core.clock import SECOND
from taproof.core.deliveries import DeliveryRecord, Event
from taproof.core.page_cursor import PageCursor
from taproof.core.projects import Project, ProjectChanges
from taproof.storage.protocol import Storage

LEASE = 30 * SECOND
URL = "https://example.com/"
TYPES = get_args(EventType)
STATES = get_args(DeliveryState)


async def all_pages(
    storage: Storage, project: Project, event_type: EventType | None, state: DeliveryState | None, limit: int
) -> list[DeliveryRecord]:
    found: list[DeliveryRecord] = []
    before: PageCursor | None = None
    while page := await storage.deliveries.list_deliveries(project.id, event_type, state, before, limit):
        assert len(page) <= limit
        found += page
        before = PageCursor(page[-1].created_at, page[-1].event_id)
    return found


async def with_deliveries(seed: Seed) -> Project:
    """Return a project with five events of every type in every state, many of them of the same time."""
    project = await seed.project(webhook_url=URL)
    for number in range(5):
        for event_type in TYPES:
            for state in STATES:
                event = seed.event(project, event_type, seed.now - number // 2)
                assert await seed.storage.deliveries.record_delivery(
                    project.developer_id, event, seed.attempt(1, 200 + number), state
                )
    return project


async def test_record_delivery_keeps_event_and_attempt(storage: Storage, seed: Seed) -> None:
    """A test's delivery is finished: nothing is due, and the endpoint's state does not change."""
    project = await seed.project(webhook_url=URL)
    states: tuple[DeliveryState, ...] = ("delivered", "failed")
    for state in states:
        event, attempt = seed.event(project, "webhook.test"), seed.attempt(1, None)
        assert await storage.deliveries.record_delivery(project.developer_id, event, attempt, state)
        assert await storage.deliveries.read_delivery(project.developer_id, event.id) == DeliveryRecord(
            event_id=event.id,
            project_id=project.id,
            type="webhook.test",
            created_at=event.created_at,
            state=state,
            due_at=event.created_at,
            leased_until=0,
            finished_at=attempt.started_at + attempt.duration,
            interrupted=0,
            attempts=(attempt,),
        )
    assert await storage.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10) == []
    assert await storage.projects.read_project(project.id) == project


async def test_record_delivery_needs_the_project_and_a_member_who_may_send(storage: Storage, seed: Seed) -> None:
    """Refuse the result of a test whose sender was removed or project deleted while the receiver answered."""
    project, other = await seed.project(webhook_url=URL), await seed.project()
    event = seed.event(project, "webhook.test")
    record = storage.deliveries.record_delivery
    assert not await record(other.developer_id, event, seed.attempt(), "delivered")
    assert await storage.deliveries.read_delivery(project.developer_id, event.id) is None
    await seed.delete(project)
    assert not await record(project.developer_id, event, seed.attempt(), "failed")
    same_id = Event(event.id, "webhook.test", other.id, b"encrypted", seed.now)
    assert await record(other.developer_id, same_id, seed.attempt(), "failed")


async def test_record_delivery_counts_as_the_first_attempt(storage: Storage, seed: Seed) -> None:
    """A resend continues after it, with the same body."""
    project = await seed.project(webhook_url=URL)
    event = seed.event(project, "webhook.test")
    assert await storage.deliveries.record_delivery(project.developer_id, event, seed.attempt(), "failed")
    assert await storage.deliveries.resend_delivery(project.developer_id, event.id, seed.now)
    (delivery,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert (delivery.event, delivery.attempt, delivery.stage) == (event, 2, 0)


async def test_list_deliveries_is_newest_first_and_filtered(storage: Storage, seed: Seed) -> None:
    """Filters by type and state combine, and pages, also within one time, have each delivery once with its attempts."""
    project = await with_deliveries(seed)
    await with_deliveries(seed)
    everything = await storage.deliveries.list_deliveries(project.id, None, None, None, 1_000)
    assert len(everything) == 5 * len(TYPES) * len(STATES)
    assert everything == sorted(everything, key=lambda each: (each.created_at, each.event_id), reverse=True)
    assert {each.project_id for each in everything} == {project.id}
    assert all(len(each.attempts) == 1 for each in everything)
    for event_type in (None, *TYPES):
        for state in (None, *STATES):
            wanted = [each for each in everything if event_type in {None, each.type} and state in {None, each.state}]
            for limit in (1_000, 7):
                assert await all_pages(storage, project, event_type, state, limit) == wanted
    assert await all_pages(storage, project, None, None, 1) == everything


async def test_list_deliveries_starts_strictly_after_the_cursor(storage: Storage, seed: Seed) -> None:
    """The cursor may point at a delivery, between two, at another project's, before the first or after the last."""
    project = await with_deliveries(seed)
    everything = await storage.deliveries.list_deliveries(project.id, None, None, None, 1_000)
    for cursor in (
        PageCursor(everything[7].created_at, everything[7].event_id),
        PageCursor(seed.now - 1, ""),
        PageCursor(seed.now - 1, "~"),
        PageCursor(seed.now - 1, "evt_\0"),
        PageCursor(0, ""),
        PageCursor(2**62, "~"),
    ):
        wanted = [each for each in everything if (each.created_at, each.event_id) < cursor]
        assert await storage.deliveries.list_deliveries(project.id, None, None, cursor, 1_000) == wanted


async def test_list_deliveries_has_all_attempts_in_their_order(storage: Storage, seed: Seed) -> None:
    """More than nine attempts are in numeric order, 10 after 9; an event without attempts has none."""
    project = await seed.project(webhook_url=URL)
    tried = await seed.claimed(project)
    attempts = []
    for number in range(1, 13):
        attempts.append(seed.attempt(number, None if number % 2 else 500, seed.now + number))
        assert await storage.deliveries.finish_attempt(tried, attempts[-1], "due", seed.now)
        (tried,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 1)
    untried = await seed.due_event(project, seed.now - 1)
    found = await storage.deliveries.list_deliveries(project.id, "auth.cancelled", "due", None, 10)
    assert [(each.event_id, each.attempts) for each in found] == [
        (tried.event.id, tuple(attempts)),
        (untried.id, ()),
    ]
    assert (found[0].leased_until, found[1].leased_until) == (seed.now + LEASE, 0)


async def test_list_deliveries_of_no_project_is_empty(storage: Storage, seed: Seed) -> None:
    """An unknown or deleted project, and one without events, has no deliveries."""
    project, deleted = await seed.project(webhook_url=URL), await with_deliveries(seed)
    await seed.delete(deleted)
    for project_id in (project.id, deleted.id, "proj_unknown", "proj_\0", ""):
        assert await storage.deliveries.list_deliveries(project_id, None, None, None, 10) == []


async def test_list_deliveries_shows_one_moment(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """While another node finishes deliveries, each is listed once, a finished one with its attempt."""
    project = await seed.project(webhook_url=URL)
    for _ in range(30):
        await seed.due_event(project)
    held = await other_node.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 100)

    async def finish() -> None:
        for delivery in held:
            await other_node.deliveries.finish_attempt(delivery, seed.attempt(1, 200), "delivered", seed.now)

    finishing = asyncio.create_task(finish())
    while not finishing.done():
        page = await storage.deliveries.list_deliveries(project.id, None, None, None, 100)
        assert {each.event_id for each in page} == {each.event.id for each in held}
        assert len(page) == 30
        assert [len(each.attempts) for each in page] == [int(each.state == "delivered") for each in page]
        await asyncio.sleep(0)
    await finishing


async def test_read_event_body_as_it_was_recorded(storage: Storage, seed: Seed) -> None:
    """The body is as it was recorded; None if there is no such event."""
    event = await seed.due_event(await seed.project(webhook_url=URL))
    assert await storage.deliveries.read_event_body(event.id) == event.encrypted_body
    assert await storage.deliveries.read_event_body("evt_unknown") is None


async def test_read_delivery_is_for_its_developer(storage: Storage, seed: Seed) -> None:
    """Another developer's delivery, an unknown one, and one of a deleted project are not found."""
    project, other = await seed.project(webhook_url=URL), await seed.project(webhook_url=URL)
    event = await seed.due_event(project)
    record = present(await storage.deliveries.read_delivery(project.developer_id, event.id))
    assert (record.state, record.due_at, record.finished_at, record.attempts) == ("due", seed.now, None, ())
    for developer_id, event_id in (
        (other.developer_id, event.id),
        (project.developer_id, "evt_unknown"),
        (project.developer_id, f"{event.id}\0"),
        ("", event.id),
    ):
        assert await storage.deliveries.read_delivery(developer_id, event_id) is None
    await seed.delete(project)
    assert await storage.deliveries.read_delivery(project.developer_id, event.id) is None
    assert not await storage.deliveries.resend_delivery(project.developer_id, event.id, seed.now)


@pytest.mark.parametrize("state", STATES)
async def test_resend_delivery_begins_the_schedule_anew(storage: Storage, seed: Seed, state: DeliveryState) -> None:
    """In any state, the event is due immediately, its attempts are kept and counted on, and its retries start again."""
    project = await seed.project(webhook_url=URL)
    delivery = await seed.claimed(project)
    if state == "ended":
        assert await seed.attempted(delivery, "due", due_at=seed.now + LEASE)
        for url in ("", URL):
            await seed.update(project, webhook_url=url)
    else:
        assert await seed.attempted(delivery, state, due_at=seed.now + LEASE)
    at = seed.now + 5
    assert await storage.deliveries.resend_delivery(project.developer_id, delivery.event.id, at)
    record = present(await storage.deliveries.read_delivery(project.developer_id, delivery.event.id))
    assert (record.state, record.due_at, record.finished_at, len(record.attempts)) == ("due", at, None, 1)
    assert await storage.deliveries.claim_deliveries(at - 1, at + LEASE, 10) == []
    (again,) = await storage.deliveries.claim_deliveries(at, at + LEASE, 10)
    assert (again.event, again.attempt, again.stage) == (delivery.event, 2, 0)
    assert await seed.attempted(again, "due", at)
    (third,) = await storage.deliveries.claim_deliveries(at, at + LEASE, 10)
    assert (third.attempt, third.stage) == (3, 1)
    record = present(await storage.deliveries.read_delivery(project.developer_id, delivery.event.id))
    assert record.interrupted == 0


async def test_resend_delivery_leaves_alone_what_is_in_flight(storage: Storage, seed: Seed) -> None:
    """If a worker is sending the event, its outcome counts, and the event is not sent twice."""
    project = await seed.project(webhook_url=URL)
    delivery = await seed.claimed(project)
    assert await storage.deliveries.resend_delivery(project.developer_id, delivery.event.id, seed.now + LEASE - 1)
    assert await storage.deliveries.claim_deliveries(seed.now + LEASE - 1, seed.now + 2 * LEASE, 10) == []
    assert await seed.attempted(delivery, "delivered")
    record = present(await storage.deliveries.read_delivery(project.developer_id, delivery.event.id))
    assert (record.state, record.interrupted) == ("delivered", 0)


async def test_resend_delivery_against_a_removal_leaves_nothing_due(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """If another node removes the URL at the same time, nothing stays due without a URL, whichever is first."""
    for _ in range(6):
        project = await seed.project(webhook_url=URL)
        for _ in range(4):
            await seed.due_event(project)
        held = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
        assert all([await seed.attempted(each, "failed") for each in held])
        changes = ProjectChanges(webhook_url="")
        await asyncio.gather(
            *(storage.deliveries.resend_delivery(project.developer_id, each.event.id, seed.now) for each in held),
            other_node.projects.update_project(project.developer_id, project.id, changes, seed.now),
        )
        states = {each.state for each in await storage.deliveries.list_deliveries(project.id, None, None, None, 10)}
        assert states <= {"failed", "ended"}
