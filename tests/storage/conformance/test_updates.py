"""Conformance: bot updates are claimed, and each is handled once."""

import asyncio

from tests.storage.seed import Seed

from taproof.storage.protocol import Storage

BOT = 7_000_000_001


async def test_claim_update_gives_an_update_to_one_handler(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of concurrent deliveries of an update, one is handled; the others must wait."""
    claims = await asyncio.gather(
        *(store.bots.claim_update(BOT, 1, seed.now, seed.now - 60) for store in (storage, other_node) for _ in range(6))
    )
    assert sorted(claims) == ["claimed"] + ["in_progress"] * 11


async def test_claim_update_knows_what_was_done(storage: Storage, seed: Seed) -> None:
    """A finished update stays done; the same id at another bot is another update."""
    await storage.bots.claim_update(BOT, 1, seed.now, seed.now - 60)
    await storage.bots.finish_update(BOT, 1)
    assert await storage.bots.claim_update(BOT, 1, seed.now + 1_000, seed.now + 999) == "done"
    assert await storage.bots.claim_update(BOT + 1, 1, seed.now, seed.now - 60) == "claimed"
    assert await storage.bots.claim_update(BOT, 2**53, seed.now, seed.now - 60) == "claimed"


async def test_claim_update_takes_over_from_a_handler_that_died(storage: Storage, seed: Seed) -> None:
    """A claim as old as `stale_before` can be taken over, by one caller."""
    await storage.bots.claim_update(BOT, 1, seed.now, seed.now - 60)
    assert await storage.bots.claim_update(BOT, 1, seed.now + 59, seed.now - 1) == "in_progress"
    again = await asyncio.gather(*(storage.bots.claim_update(BOT, 1, seed.now + 60, seed.now) for _ in range(5)))
    assert sorted(again) == ["claimed"] + ["in_progress"] * 4


async def test_claim_update_renews_the_callers_own_claim(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A renewed claim counts from its renewal. A claim that another node has taken over is not renewed."""
    assert await storage.bots.claim_update(BOT, 1, seed.now, seed.now - 60) == "claimed"
    assert await storage.bots.claim_update(BOT, 1, seed.now + 40, seed.now) == "claimed"
    assert await other_node.bots.claim_update(BOT, 1, seed.now + 60, seed.now) == "in_progress"
    assert await other_node.bots.claim_update(BOT, 1, seed.now + 100, seed.now + 40) == "claimed"
    assert await storage.bots.claim_update(BOT, 1, seed.now + 101, seed.now + 80) == "in_progress"
    await other_node.bots.finish_update(BOT, 1)
    assert await storage.bots.claim_update(BOT, 1, seed.now + 102, seed.now + 101) == "done"


async def test_a_renewal_and_a_takeover_at_the_same_instant(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Exactly one of the two nodes has the update afterwards."""
    for number in range(20):
        await storage.bots.claim_update(BOT, number, seed.now, seed.now - 60)
        renewal = storage.bots.claim_update(BOT, number, seed.now + 60, seed.now)
        takeover = other_node.bots.claim_update(BOT, number, seed.now + 60, seed.now)
        both = [renewal, takeover] if number % 2 else [takeover, renewal]
        assert sorted(await asyncio.gather(*both)) == ["claimed", "in_progress"]


async def test_finish_update_of_an_unknown_one_is_harmless(storage: Storage, seed: Seed) -> None:
    """Finishing a purged or unclaimed update creates no row."""
    await storage.bots.finish_update(BOT, 5)
    assert await storage.bots.claim_update(BOT, 5, seed.now, seed.now - 60) == "claimed"


async def test_release_update_frees_the_claim_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A failed update can be claimed again by any node, once; a finished one stays done."""
    await storage.bots.claim_update(BOT, 1, seed.now, seed.now - 60)
    await storage.bots.release_update(BOT, 1, seed.now)
    assert await other_node.bots.claim_update(BOT, 1, seed.now + 1, seed.now - 60) == "claimed"
    await storage.bots.release_update(BOT, 1, seed.now)  # It is late: the other node has the update.
    assert await storage.bots.claim_update(BOT, 1, seed.now + 1, seed.now - 60) == "in_progress"
    await storage.bots.finish_update(BOT, 1)
    await storage.bots.release_update(BOT, 1, seed.now + 1)
    await storage.bots.release_update(BOT, 2, seed.now)
    assert await storage.bots.claim_update(BOT, 1, seed.now, seed.now - 60) == "done"
    assert await storage.bots.claim_update(BOT, 2, seed.now, seed.now - 60) == "claimed"


async def test_purge_updates_forgets_old_ones_in_steps(storage: Storage, seed: Seed) -> None:
    """A step never exceeds the limit, and erases nothing that was claimed at that time or later."""
    for number in range(10):
        await storage.bots.claim_update(BOT, number, seed.now + number, seed.now - 60)
        await storage.bots.finish_update(BOT, number)
    assert [await storage.bots.purge_updates(seed.now + 7, 3) for _ in range(4)] == [3, 3, 1, 0]
    claims = [await storage.bots.claim_update(BOT, number, seed.now, seed.now - 60) for number in range(10)]
    assert claims == ["claimed"] * 7 + ["done"] * 3
