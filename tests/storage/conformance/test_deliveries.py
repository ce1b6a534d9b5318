"""Conformance: webhook events are leased, released, and found when they are due."""

import asyncio

import pytest
from tests.storage.seed import Seed, present

from taproof.core.clock import SECOND
from taproof.core.deliveries import Delivery, Event, PassedOver
from taproof.core.projects import EncryptedWebhookSecrets, Project, ProjectChanges
from taproof.storage.protocol import Storage
from taproof.storage.queries.deliveries import ENDED_AT_ONCE

LEASE = 30 * SECOND
URL = "https://example.com/"


async def test_claim_deliveries_hands_out_all_that_sending_needs(storage: Storage, seed: Seed) -> None:
    """A claim has the event, the URL and the current secrets. Attempts count from one, stages from zero."""
    project = await seed.project(webhook_url=URL)
    event = await seed.due_event(project)
    await seed.update(project, webhook_url="https://example.org/")
    await storage.projects.regenerate_secrets(project.developer_id, project.id, b"n" * 32, "sk_n", b"new seal")
    await storage.projects.rotate_webhook_secret(project.developer_id, project.id, b"next seal", seed.now, seed.now + 5)
    secrets = EncryptedWebhookSecrets(b"new seal", b"next seal", seed.now + 5)
    assert await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10) == [
        Delivery(
            event,
            project.developer_id,
            "https://example.org/",
            secrets,
            1,
            0,
            seed.now + LEASE,
            endpoint_fails=False,
        )
    ]


async def test_claim_deliveries_leases_each_event_to_one_worker(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Concurrent workers on two nodes claim each event exactly once."""
    project = await seed.project(webhook_url=URL)
    events = {(await seed.due_event(project)).id for _ in range(20)}
    claimed: list[str] = []
    while batches := await asyncio.gather(
        *(
            store.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 4)
            for store in (storage, other_node)
            for _ in range(3)
        )
    ):
        assert max(map(len, batches)) <= 4
        claimed += [delivery.event.id for batch in batches for delivery in batch]
        if not any(batches):
            break
    assert sorted(claimed) == sorted(events)


async def test_claim_deliveries_takes_back_a_lapsed_lease(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """After a killed worker's lease expires, the next claim has the same attempt number, and is counted."""
    project = await seed.project(webhook_url=URL)
    event = await seed.due_event(project)
    await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert await other_node.deliveries.claim_deliveries(seed.now + LEASE - 1, seed.now + 2 * LEASE, 10) == []
    for turn in (1, 2):
        (again,) = await other_node.deliveries.claim_deliveries(
            seed.now + turn * LEASE, seed.now + (turn + 1) * LEASE, 10
        )
        assert (again.event, again.attempt, again.stage) == (event, 1, 0)
        record = present(await storage.deliveries.read_delivery(project.developer_id, event.id))
        assert (record.interrupted, record.leased_until) == (turn, again.leased_until)


async def test_claim_deliveries_prefers_what_has_waited_longest(storage: Storage, seed: Seed) -> None:
    """A busy project cannot delay an older event, and a batch is in the order of sending."""
    project = await seed.project(webhook_url=URL)
    ages = (3, 0, 4, 1, 2)
    events = {age: await seed.due_event(project, seed.now - age) for age in ages}
    first = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 1)
    rest = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert [delivery.event for delivery in first + rest] == [events[age] for age in (4, 3, 2, 1, 0)]


async def test_claim_deliveries_passes_over_the_projects_that_it_is_told(storage: Storage, seed: Seed) -> None:
    """Events of a full endpoint take no place in a batch, however long they have waited."""
    full, other, third = [await seed.project(webhook_url=URL) for _ in range(3)]
    for _ in range(5):
        await seed.due_event(full, seed.now - 9)
    of_third = await seed.due_event(third, seed.now - 5)
    of_other = await seed.due_event(other)
    found = await storage.deliveries.claim_deliveries(
        seed.now, seed.now + LEASE, 1, PassedOver([full.id, third.id, "proj_unknown"])
    )
    assert [delivery.event for delivery in found] == [of_other]
    found = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 2, PassedOver([full.id]))
    assert [delivery.event for delivery in found] == [of_third]
    assert len(await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)) == 5


async def test_claim_deliveries_passes_over_the_developers_that_it_is_told(storage: Storage, seed: Seed) -> None:
    """All projects of these developers are left out, except the listed ones."""
    crowd, other = await seed.developer(), await seed.developer()
    hangs, full, spared = [await seed.project(crowd, webhook_url=URL) for _ in range(3)]
    for project in (hangs, full, spared):
        await seed.due_event(project, seed.now - 9)
    of_other = await seed.project(other, webhook_url=URL)
    await seed.due_event(of_other)
    passed_over = PassedOver([full.id], [crowd.id, "dev_unknown"], [full.id, spared.id, "proj_unknown"])
    found = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10, passed_over)
    assert [delivery.event.project_id for delivery in found] == [spared.id, of_other.id]
    assert [delivery.developer_id for delivery in found] == [crowd.id, other.id]
    found = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10, PassedOver(developers=[other.id]))
    assert {delivery.event.project_id for delivery in found} == {hangs.id, full.id}


async def test_claim_deliveries_leaves_what_is_gone(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """If a project is deleted or its URL removed during a claim, the delivery is complete or not returned."""
    for number in range(6):
        project = await seed.project(webhook_url=URL)
        for _ in range(5):
            await seed.due_event(project)
        changes = ProjectChanges(webhook_url="")
        ending: asyncio.Future[object] = asyncio.ensure_future(
            other_node.projects.delete_project(project.developer_id, project.id)
            if number % 2
            else other_node.projects.update_project(project.developer_id, project.id, changes, seed.now)
        )
        claims = [storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 3) for _ in range(2)]
        _, batches = await asyncio.gather(ending, asyncio.gather(*claims))
        assert {delivery.webhook_url for batch in batches for delivery in batch} <= {URL}
        assert {delivery.webhook_secrets for batch in batches for delivery in batch} <= {project.webhook_secrets}
        assert await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10) == []


async def test_release_deliveries_makes_events_due_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A released event counts no attempt, and another worker can claim it immediately."""
    project = await seed.project(webhook_url=URL)
    for _ in range(3):
        await seed.due_event(project, seed.now - 5)
    held = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    await storage.deliveries.release_deliveries(held[:2], seed.now + 1)
    await storage.deliveries.release_deliveries([], seed.now + 1)
    assert await other_node.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10) == []
    again = await other_node.deliveries.claim_deliveries(seed.now + 1, seed.now + 1 + LEASE, 10)
    assert {each.event.id for each in again} == {each.event.id for each in held[:2]}
    assert {(each.attempt, each.stage) for each in again} == {(1, 0)}
    for each in again:
        record = present(await storage.deliveries.read_delivery(project.developer_id, each.event.id))
        assert (record.interrupted, record.attempts) == (0, ())


async def test_release_deliveries_gives_up_ones_own_lease_only(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """An event that another worker has claimed stays claimed; finished and erased events do not change."""
    taken, finished, gone = [await seed.project(webhook_url=URL) for _ in range(3)]
    late = [await seed.claimed(project) for project in (taken, finished, gone)]
    assert await seed.attempted(late[1], "failed")
    await seed.delete(gone)
    await seed.purge_projects()
    (held,) = await other_node.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10)
    await storage.deliveries.release_deliveries(late, seed.now + LEASE)
    assert await storage.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 3 * LEASE, 10) == []
    assert await other_node.deliveries.finish_attempt(held, seed.attempt(), "delivered", seed.now + LEASE)
    record = present(await storage.deliveries.read_delivery(finished.developer_id, late[1].event.id))
    assert record.state == "failed"


async def test_count_deliveries_tells_states_apart(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Waiting events include later, leased and due ones.

    Failed ones are dead letters, and delivered ones are neither.
    """
    project = await seed.project(webhook_url=URL)
    assert await storage.deliveries.count_deliveries(seed.now) == (0, 0, 0)
    for outcome in "failed", "delivered":
        assert await seed.attempted(await seed.claimed(project), outcome)
    await seed.claimed(await seed.project(webhook_url=URL))
    for age in -1, 0, 5:
        await seed.due_event(project, seed.now - age)
    assert await other_node.deliveries.count_deliveries(seed.now) == (4, 2, 1)


async def test_read_oldest_due_is_the_age_of_the_queue(storage: Storage, seed: Seed) -> None:
    """Only due events count: not later, leased or finished ones."""
    project = await seed.project(webhook_url=URL)
    assert await storage.deliveries.read_oldest_due(seed.now) is None
    await seed.due_event(project, seed.now + 1)
    assert await storage.deliveries.read_oldest_due(seed.now) is None
    for age in (5, 9, 7):
        await seed.due_event(project, seed.now - age)
    assert await storage.deliveries.read_oldest_due(seed.now) == seed.now - 9
    (delivery,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 1)
    assert await storage.deliveries.read_oldest_due(seed.now) == seed.now - 7
    assert await seed.attempted(delivery, "due", due_at=seed.now + 3)
    assert await storage.deliveries.read_oldest_due(seed.now + 3) == seed.now - 7
    for delivery in await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10):
        assert await seed.attempted(delivery, "failed")
    assert await storage.deliveries.read_oldest_due(seed.now + 3) == seed.now + 1
    await seed.update(project, webhook_url="")
    assert await storage.deliveries.read_oldest_due(seed.now + LEASE) is None


REST = 30


async def with_many_due(seed: Seed, count: int = ENDED_AT_ONCE + REST) -> tuple[Project, list[Event]]:
    """Return a project with more due deliveries than one transaction ends."""
    project = await seed.project(webhook_url=URL)
    return project, await asyncio.gather(*(seed.due_event(project) for _ in range(count)))


async def set_url(storage: Storage, project: Project, url: str, now: int) -> Project | None:
    return await storage.projects.update_project(project.developer_id, project.id, ProjectChanges(webhook_url=url), now)


async def ended(storage: Storage, project: Project) -> list[int | None]:
    """Return the times at which the ended deliveries of a project ended."""
    found = await storage.deliveries.list_deliveries(project.id, None, "ended", None, 10_000)
    return [each.finished_at for each in found]


async def test_update_project_ends_the_due_deliveries_that_end_at_once(storage: Storage, seed: Seed) -> None:
    """All of them have ended when the call returns, and nothing remains to end."""
    project, _ = await with_many_due(seed, ENDED_AT_ONCE)
    await set_url(storage, project, "", seed.now + 7)
    assert await ended(storage, project) == [seed.now + 7] * ENDED_AT_ONCE
    assert await storage.deliveries.end_deliveries(100) == 0
    assert await storage.deliveries.end_deliveries(100) == 0


@pytest.mark.parametrize("way", ["emptied", "turned off"])
async def test_end_deliveries_goes_on_with_what_was_left(
    storage: Storage, other_node: Storage, seed: Seed, way: str
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


async def test_update_project_and_end_deliveries_at_the_same_instant_lose_nothing(
    storage: Storage, other_node: Storage, seed: Seed
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


async def test_resend_delivery_after_an_ending_makes_it_due(storage: Storage, seed: Seed) -> None:
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


async def test_end_deliveries_of_a_deleted_project_leaves_nothing(storage: Storage, seed: Seed) -> None:
    """Erasing a deleted project and ending its deliveries do not disturb each other, and both finish."""
    project, _ = await with_many_due(seed)
    await set_url(storage, project, "", seed.now)
    await seed.delete(project)
    assert await storage.projects.purge_deleted_projects(10) > 0
    while sum(await asyncio.gather(storage.deliveries.end_deliveries(10), storage.projects.purge_deleted_projects(10))):
        pass
    assert (await storage.deliveries.end_deliveries(10), await storage.projects.purge_deleted_projects(10)) == (0, 0)
    assert await storage.deliveries.read_oldest_due(seed.now + LEASE) is None
