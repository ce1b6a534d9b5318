"""Conformance: webhook events are leased, released, and found when they are due."""

import asyncio
from typing import TYPE_CHECKING

from taproof.core.clock import SECOND
from taproof.core.deliveries import Delivery, PassedOver
from taproof.core.projects import EncryptedWebhookSecrets, ProjectChanges
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed

LEASE = 30 * SECOND
URL = "https://example.com/"


async def test_claim_deliveries_hands_out_all_that_sending_needs(storage: Storage, seed: "Seed") -> None:
    """The event, the URL and the current secrets. Attempts count from one, stages from zero."""
    project = await seed.project(webhook_url=URL)
    event = await seed.due_event(project)
    changes = ProjectChanges(webhook_url="https://example.org/")
    await storage.projects.update_project(project.developer_id, project.id, changes, seed.now)
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
    storage: Storage, other_node: Storage, seed: "Seed"
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


async def test_claim_deliveries_takes_back_a_lapsed_lease(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """A worker that was killed loses its claim when the lease lapses, not before; that it was interrupted is counted.

    Nobody knows what it sent, so the next claim has the same attempt number and stage.
    """
    project = await seed.project(webhook_url=URL)
    event = await seed.due_event(project)
    await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert await other_node.deliveries.claim_deliveries(seed.now + LEASE - 1, seed.now + 2 * LEASE, 10) == []
    for turn in (1, 2):
        (again,) = await other_node.deliveries.claim_deliveries(
            seed.now + turn * LEASE, seed.now + (turn + 1) * LEASE, 10
        )
        assert (again.event, again.attempt, again.stage) == (event, 1, 0)
        record = await storage.deliveries.read_delivery(project.developer_id, event.id)
        assert record is not None
        assert (record.interrupted, record.leased_until) == (turn, again.leased_until)


async def test_claim_deliveries_waits_until_an_event_is_due(storage: Storage, seed: "Seed") -> None:
    """A node with a slow clock does not send events from the future."""
    await seed.due_event(await seed.project(webhook_url=URL), at=seed.now + 1)
    assert await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10) == []
    assert len(await storage.deliveries.claim_deliveries(seed.now + 1, seed.now + LEASE, 10)) == 1


async def test_claim_deliveries_prefers_what_has_waited_longest(storage: Storage, seed: "Seed") -> None:
    """A busy project cannot starve an older event, and a batch comes in the order of sending."""
    project = await seed.project(webhook_url=URL)
    ages = (3, 0, 4, 1, 2)
    events = {age: await seed.due_event(project, seed.now - age) for age in ages}
    first = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 1)
    rest = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert [delivery.event for delivery in first + rest] == [events[age] for age in (4, 3, 2, 1, 0)]


async def test_claim_deliveries_passes_over_the_projects_that_it_is_told(storage: Storage, seed: "Seed") -> None:
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


async def test_claim_deliveries_passes_over_the_developers_that_it_is_told(storage: Storage, seed: "Seed") -> None:
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


async def test_claim_deliveries_leaves_what_is_gone(storage: Storage, other_node: Storage, seed: "Seed") -> None:
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


async def test_release_deliveries_makes_events_due_at_once(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """A released event counts no attempt, and another worker can claim it at once."""
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
        record = await storage.deliveries.read_delivery(project.developer_id, each.event.id)
        assert record is not None
        assert (record.interrupted, record.attempts) == (0, ())


async def test_release_deliveries_gives_up_ones_own_lease_only(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """An event that another worker has claimed stays claimed; finished and erased events stay as they are."""
    taken, finished, gone = [await seed.project(webhook_url=URL) for _ in range(3)]
    late = [await seed.claimed(project) for project in (taken, finished, gone)]
    assert await seed.attempted(late[1], "failed")
    await storage.projects.delete_project(gone.developer_id, gone.id)
    while await storage.projects.purge_deleted_projects(10):
        pass
    (held,) = await other_node.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10)
    await storage.deliveries.release_deliveries(late, seed.now + LEASE)
    assert await storage.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 3 * LEASE, 10) == []
    assert await other_node.deliveries.finish_attempt(held, seed.attempt(), "delivered", seed.now + LEASE)
    record = await storage.deliveries.read_delivery(finished.developer_id, late[1].event.id)
    assert record is not None
    assert record.state == "failed"


async def test_count_deliveries_tells_states_apart(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Later and leased events wait, due ones are due too, failed ones are dead letters, delivered ones are none."""
    project = await seed.project(webhook_url=URL)
    assert await storage.deliveries.count_deliveries(seed.now) == (0, 0, 0)
    for outcome in "failed", "delivered":
        assert await seed.attempted(await seed.claimed(project), outcome)
    await seed.claimed(await seed.project(webhook_url=URL))
    for age in -1, 0, 5:
        await seed.due_event(project, seed.now - age)
    assert await other_node.deliveries.count_deliveries(seed.now) == (4, 2, 1)


async def test_read_oldest_due_is_the_age_of_the_queue(storage: Storage, seed: "Seed") -> None:
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
    await storage.projects.update_project(project.developer_id, project.id, ProjectChanges(webhook_url=""), seed.now)
    assert await storage.deliveries.read_oldest_due(seed.now + LEASE) is None
