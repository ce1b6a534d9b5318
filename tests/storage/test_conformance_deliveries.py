"""Conformance: webhook deliveries are leases, bot updates are claims."""

import asyncio
from typing import TYPE_CHECKING

from taproof.core.clock import SECOND
from taproof.core.model import Delivery, ProjectChanges
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.conftest import Seed

LEASE = 30 * SECOND
BOT = 7_000_000_001


async def test_claim_deliveries_hands_out_all_that_sending_needs(storage: Storage, seed: "Seed") -> None:
    """Event, address and secret as they are now; the attempt counts from one."""
    project = await seed.project(webhook_url="https://example.com/")
    event = await seed.due_event(project)
    changes = ProjectChanges(webhook_url="https://example.org/")
    await storage.update_project(project.developer_id, project.id, changes, seed.now)
    await storage.replace_project_secrets(project.developer_id, project.id, b"n" * 32, "sk_n", b"new seal")
    assert await storage.claim_deliveries(seed.now, seed.now + LEASE, 10) == [
        Delivery(event, "https://example.org/", b"new seal", 1, seed.now + LEASE)
    ]


async def test_claim_deliveries_leases_each_event_to_one_worker(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """Workers on two nodes claim at the same instant: together they hold every event once."""
    project = await seed.project(webhook_url="https://example.com/")
    events = {(await seed.due_event(project)).id for _ in range(20)}
    batches = await asyncio.gather(
        *(store.claim_deliveries(seed.now, seed.now + LEASE, 4) for store in (storage, other_node) for _ in range(4))
    )
    claimed = [delivery.event.id for batch in batches for delivery in batch]
    assert sorted(claimed) == sorted(events)
    assert max(map(len, batches)) == 4


async def test_claim_deliveries_takes_back_a_lapsed_lease(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """A worker that was killed loses its claim when the lease lapses, not before; the attempt is counted."""
    event = await seed.due_event(await seed.project(webhook_url="https://example.com/"))
    await storage.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert await other_node.claim_deliveries(seed.now + LEASE - 1, seed.now + 2 * LEASE, 10) == []
    again = await other_node.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10)
    assert [(delivery.event, delivery.attempt) for delivery in again] == [(event, 2)]


async def test_claim_deliveries_waits_until_an_event_is_due(storage: Storage, seed: "Seed") -> None:
    """A node whose clock lags does not send what has not happened yet."""
    await seed.due_event(await seed.project(webhook_url="https://example.com/"), at=seed.now + 1)
    assert await storage.claim_deliveries(seed.now, seed.now + LEASE, 10) == []
    assert len(await storage.claim_deliveries(seed.now + 1, seed.now + LEASE, 10)) == 1


async def test_claim_deliveries_prefers_what_has_waited_longest(storage: Storage, seed: "Seed") -> None:
    """A busy project cannot starve an older event."""
    project = await seed.project(webhook_url="https://example.com/")
    new, old = await seed.due_event(project, seed.now), await seed.due_event(project, seed.now - 5)
    first = await storage.claim_deliveries(seed.now, seed.now + LEASE, 1)
    second = await storage.claim_deliveries(seed.now, seed.now + LEASE, 1)
    assert [delivery.event for delivery in first + second] == [old, new]


async def test_finish_delivery_ends_it_for_good(storage: Storage, seed: "Seed") -> None:
    """Delivered or failed, it is not handed out again."""
    project = await seed.project(webhook_url="https://example.com/")
    await seed.due_event(project)
    await seed.due_event(project)
    delivered, failed = await storage.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert await storage.finish_delivery(delivered, "delivered", seed.now)
    assert await storage.finish_delivery(failed, "failed", seed.now)
    assert not await storage.finish_delivery(failed, "delivered", seed.now)
    assert await storage.claim_deliveries(seed.now + 2 * LEASE, seed.now + 3 * LEASE, 10) == []


async def test_finish_delivery_needs_the_lease(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """A worker that was too slow cannot write down an outcome over the one who took the event over."""
    await seed.due_event(await seed.project(webhook_url="https://example.com/"))
    (slow,) = await storage.claim_deliveries(seed.now, seed.now + LEASE, 10)
    (quick,) = await other_node.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10)
    assert not await storage.finish_delivery(slow, "failed", seed.now + LEASE)
    assert await other_node.finish_delivery(quick, "delivered", seed.now + LEASE)


async def test_finish_delivery_of_a_removed_webhook_changes_nothing(storage: Storage, seed: "Seed") -> None:
    """The URL was emptied, or the project deleted, while the post was under way."""
    for way in ("emptied", "deleted"):
        project = await seed.project(webhook_url="https://example.com/")
        await seed.due_event(project)
        (delivery,) = await storage.claim_deliveries(seed.now, seed.now + LEASE, 10)
        if way == "emptied":
            changes = ProjectChanges(webhook_url="")
            await storage.update_project(project.developer_id, project.id, changes, seed.now)
        else:
            await storage.delete_project(project.developer_id, project.id)
            while await storage.purge_deleted_projects(10):
                pass
        assert not await storage.finish_delivery(delivery, "failed", seed.now)
    assert await storage.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10) == []


async def test_claim_update_gives_an_update_to_one_handler(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """An update that is delivered many times at once is handled once; the others are told to wait."""
    claims = await asyncio.gather(
        *(store.claim_update(BOT, 1, seed.now, seed.now - 60) for store in (storage, other_node) for _ in range(6))
    )
    assert sorted(claims) == ["claimed"] + ["in_progress"] * 11


async def test_claim_update_knows_what_was_done(storage: Storage, seed: "Seed") -> None:
    """A finished update is done for ever; the same number of another bot is another update."""
    await storage.claim_update(BOT, 1, seed.now, seed.now - 60)
    await storage.finish_update(BOT, 1)
    assert await storage.claim_update(BOT, 1, seed.now + 1_000, seed.now + 999) == "done"
    assert await storage.claim_update(BOT + 1, 1, seed.now, seed.now - 60) == "claimed"
    assert await storage.claim_update(BOT, 2**53, seed.now, seed.now - 60) == "claimed"


async def test_claim_update_takes_over_from_a_handler_that_died(storage: Storage, seed: "Seed") -> None:
    """A claim that is as old as `stale_before` is free again, and only for one."""
    await storage.claim_update(BOT, 1, seed.now, seed.now - 60)
    assert await storage.claim_update(BOT, 1, seed.now + 59, seed.now - 1) == "in_progress"
    again = await asyncio.gather(*(storage.claim_update(BOT, 1, seed.now + 60, seed.now) for _ in range(5)))
    assert sorted(again) == ["claimed"] + ["in_progress"] * 4


async def test_finish_update_of_an_unknown_one_is_harmless(storage: Storage, seed: "Seed") -> None:
    """It was purged meanwhile, or never claimed: nothing is made up."""
    await storage.finish_update(BOT, 5)
    assert await storage.claim_update(BOT, 5, seed.now, seed.now - 60) == "claimed"


async def test_release_update_frees_the_claim_at_once(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """An update whose handling failed can be claimed anew by anyone, once; one that is done stays done."""
    await storage.claim_update(BOT, 1, seed.now, seed.now - 60)
    await storage.release_update(BOT, 1)
    assert await other_node.claim_update(BOT, 1, seed.now, seed.now - 60) == "claimed"
    assert await storage.claim_update(BOT, 1, seed.now, seed.now - 60) == "in_progress"
    await storage.finish_update(BOT, 1)
    await storage.release_update(BOT, 1)
    await storage.release_update(BOT, 2)
    assert await storage.claim_update(BOT, 1, seed.now, seed.now - 60) == "done"
    assert await storage.claim_update(BOT, 2, seed.now, seed.now - 60) == "claimed"


async def test_purge_updates_forgets_old_ones_in_steps(storage: Storage, seed: "Seed") -> None:
    """Never more than the limit, and nothing that was claimed at that time or later."""
    for number in range(10):
        await storage.claim_update(BOT, number, seed.now + number, seed.now - 60)
        await storage.finish_update(BOT, number)
    assert [await storage.purge_updates(seed.now + 7, 3) for _ in range(4)] == [3, 3, 1, 0]
    claims = [await storage.claim_update(BOT, number, seed.now, seed.now - 60) for number in range(10)]
    assert claims == ["claimed"] * 7 + ["done"] * 3
