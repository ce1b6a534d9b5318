"""Conformance: the due deliveries of a removed webhook end in steps, and none of them is sent."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from taproof.core.clock import SECOND
from taproof.core.deliveries import Event, PassedOver
from taproof.core.projects import Project, ProjectChanges
from taproof.storage.protocol import Storage
from taproof.storage.queries.deliveries import ENDED_AT_ONCE

if TYPE_CHECKING:
    from tests.storage.seed import Seed

LEASE = 30 * SECOND
URL = "https://example.com/"
REST = 30


async def with_many_due(seed: "Seed", count: int = ENDED_AT_ONCE + REST) -> tuple[Project, list[Event]]:
    """Return a project with more due deliveries than one transaction ends."""
    project = await seed.project(webhook_url=URL)
    return project, await asyncio.gather(*(seed.due_event(project) for _ in range(count)))


async def set_url(storage: Storage, project: Project, url: str, now: int) -> Project | None:
    return await storage.projects.update_project(project.developer_id, project.id, ProjectChanges(webhook_url=url), now)


async def ended(storage: Storage, project: Project) -> list[int | None]:
    """Return the times at which the ended deliveries of a project ended."""
    found = await storage.deliveries.list_deliveries(project.id, None, "ended", None, 10_000)
    return [each.finished_at for each in found]


async def test_update_project_ends_the_due_deliveries_that_end_at_once(storage: Storage, seed: "Seed") -> None:
    """All of them have ended when the call returns, and nothing remains to end."""
    project, _ = await with_many_due(seed, ENDED_AT_ONCE)
    await set_url(storage, project, "", seed.now + 7)
    assert await ended(storage, project) == [seed.now + 7] * ENDED_AT_ONCE
    assert await storage.deliveries.end_deliveries(100) == 0
    assert await storage.deliveries.end_deliveries(100) == 0


@pytest.mark.parametrize("way", ["emptied", "turned off"])
async def test_end_deliveries_goes_on_with_what_was_left(
    storage: Storage, other_node: Storage, seed: "Seed", way: str
) -> None:
    """Any node continues in steps. Until then, no worker claims the others, and no outcome is recorded."""
    project, events = await with_many_due(seed)
    kept, _ = await with_many_due(seed, 1)
    in_hand = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, len(events), PassedOver([kept.id]))
    assert await storage.deliveries.end_deliveries(100) == 0
    if way == "emptied":
        await set_url(storage, project, "", seed.now + 7)
    else:
        assert await storage.deliveries.turn_off_webhook(project.id, URL, "gone", seed.now + 7, None)
    assert len(await ended(storage, project)) == ENDED_AT_ONCE
    after = await storage.projects.read_project(project.id)
    finishing = (storage.deliveries.finish_attempt(each, seed.attempt(), "delivered", seed.now) for each in in_hand)
    assert not any(await asyncio.gather(*finishing))
    await storage.deliveries.release_deliveries(in_hand, seed.now)
    assert await storage.projects.read_project(project.id) == after
    claimed = await other_node.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 1_000)
    assert {each.event.project_id for each in claimed} == {kept.id}
    assert [await other_node.deliveries.end_deliveries(limit) for limit in (20, 20)] == [20, REST - 20]
    assert [await store.deliveries.end_deliveries(20) for store in (other_node, storage)] == [0, 0]
    assert await ended(storage, project) == [seed.now + 7] * len(events)
    assert await ended(storage, kept) == []
    records = await storage.deliveries.list_deliveries(project.id, None, None, None, 10_000)
    assert {(each.state, each.leased_until, each.attempts) for each in records} == {("ended", 0, ())}
    assert await storage.deliveries.read_oldest_due(seed.now + LEASE) is None


async def test_update_project_sets_a_webhook_when_all_of_the_old_ones_has_ended(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """No event that was due before is sent to the new URL; later events are."""
    project, events = await with_many_due(seed, 3 * ENDED_AT_ONCE + REST)
    await set_url(storage, project, "", seed.now)
    changes = ProjectChanges(webhook_url="https://example.org/")
    other = await seed.developer()
    assert await storage.projects.update_project(other.id, project.id, changes, seed.now) is None
    assert len(await ended(storage, project)) == ENDED_AT_ONCE
    # The same URL at two nodes at once, while housekeeping goes on too.
    ending = asyncio.create_task(other_node.deliveries.end_deliveries(100))
    setting = (set_url(store, project, "https://example.org/", seed.now) for store in (storage, other_node))
    changed = await asyncio.gather(*setting)
    await ending
    assert [each.webhook_url for each in changed if each] == ["https://example.org/"] * 2
    assert len(await ended(storage, project)) == len(events)
    assert await storage.deliveries.end_deliveries(100) == 0
    new = await seed.due_event(project)
    assert [each.event for each in await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 1_000)] == [
        new
    ]


async def test_update_project_and_end_deliveries_at_the_same_instant_lose_nothing(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """The URL is removed and set again at once on two nodes: all old events end, and no later event does."""
    stores = (storage, other_node)
    for turn in range(4):
        project, events = await with_many_due(seed)
        await asyncio.gather(
            set_url(stores[turn % 2], project, "", seed.now),
            *(store.deliveries.end_deliveries(7) for store in stores),
            set_url(storage, project, "https://example.org/", seed.now + 1),
            set_url(other_node, project, "", seed.now + 1),
        )
        ending = [each.deliveries.end_deliveries(7) for each in stores]
        await asyncio.gather(set_url(other_node, project, URL, seed.now + 2), *ending)
        new = await seed.due_event(project)
        while await storage.deliveries.end_deliveries(100):
            pass
        assert len(await ended(storage, project)) == len(events)
        (delivery,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 1_000)
        assert delivery.event == new
        assert await seed.attempted(delivery, "delivered")


async def test_resend_delivery_after_an_ending_makes_it_due(storage: Storage, seed: "Seed") -> None:
    """Without a webhook, no event can be resent; once there is one again, any ended event can."""
    project, _ = await with_many_due(seed)
    await set_url(storage, project, "", seed.now)
    (left, *_) = await storage.deliveries.list_deliveries(project.id, None, "due", None, 1)
    assert not await storage.deliveries.resend_delivery(project.developer_id, left.event_id, seed.now)
    await set_url(storage, project, URL, seed.now)
    assert await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10) == []
    assert await storage.deliveries.resend_delivery(project.developer_id, left.event_id, seed.now)
    assert await storage.deliveries.end_deliveries(100) == 0
    (delivery,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert delivery.event.id == left.event_id


async def test_end_deliveries_of_a_deleted_project_leaves_nothing(storage: Storage, seed: "Seed") -> None:
    """After the project is deleted, erasing and ending do not disturb each other, and both finish."""
    project, _ = await with_many_due(seed)
    await set_url(storage, project, "", seed.now)
    assert await storage.projects.delete_project(project.developer_id, project.id)
    assert await storage.projects.purge_deleted_projects(10) > 0
    while sum(await asyncio.gather(storage.deliveries.end_deliveries(10), storage.projects.purge_deleted_projects(10))):
        pass
    assert (await storage.deliveries.end_deliveries(10), await storage.projects.purge_deleted_projects(10)) == (0, 0)
    assert await storage.deliveries.read_oldest_due(seed.now + LEASE) is None
