"""Conformance: of many processes, one holds a lease."""

import asyncio

from tests.storage.seed import Seed

from taproof.core.clock import SECOND
from taproof.storage.protocol import Storage

LENGTH = 8 * SECOND


async def test_hold_lease_goes_to_one_of_many(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of sixteen concurrent processes on two nodes, one gets the lease, and again one once it has expired."""
    for turn in range(5):
        now = seed.now + turn * LENGTH
        holders = [f"{turn}, node {number}" for number in range(16)]
        won = await asyncio.gather(
            *(
                (storage, other_node)[number % 2].leases.hold_lease("bot", holder, now, now + LENGTH)
                for number, holder in enumerate(holders)
            )
        )
        assert won.count(True) == 1
        again = [await other_node.leases.hold_lease("bot", holder, now, now + LENGTH) for holder in holders]
        assert again == won


async def test_hold_lease_renews_for_its_holder(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A holder that renews in time keeps the lease, on any connection."""
    for turn in range(5):
        now = seed.now + turn * LENGTH // 2
        assert await (storage, other_node)[turn % 2].leases.hold_lease("expiry", "a", now, now + LENGTH)
        assert not await storage.leases.hold_lease("expiry", "b", now + LENGTH // 2 - 1, now + LENGTH)


async def test_hold_lease_is_taken_over_when_its_time_is_over(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """The lease can be taken exactly when it expires; if nobody takes it, its holder can still renew it."""
    until = seed.now + LENGTH
    assert await storage.leases.hold_lease("bot", "killed", seed.now, until)
    assert not await other_node.leases.hold_lease("bot", "waiting", until - 1, until + LENGTH)
    assert await other_node.leases.hold_lease("bot", "waiting", until, until + LENGTH)
    assert not await storage.leases.hold_lease("bot", "killed", until, until + LENGTH)
    assert not await storage.leases.hold_lease("bot", "killed", until + LENGTH - 1, until + 2 * LENGTH)
    assert await other_node.leases.hold_lease("bot", "waiting", until + 10 * LENGTH, until + 11 * LENGTH)
    assert not await storage.leases.hold_lease("bot", "killed", until + 11 * LENGTH - 1, until + 12 * LENGTH)


async def test_hold_lease_tells_names_apart(storage: Storage, seed: Seed) -> None:
    """One process may hold the bot while another expires sessions."""
    assert await storage.leases.hold_lease("bot", "a", seed.now, seed.now + LENGTH)
    assert await storage.leases.hold_lease("expiry", "b", seed.now, seed.now + LENGTH)
    assert await storage.leases.hold_lease("Bot", "b", seed.now, seed.now + LENGTH)
    assert not await storage.leases.hold_lease("bot", "b", seed.now, seed.now + LENGTH)


async def test_release_lease_is_for_its_holder(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Only the current holder can release a lease; then it is free immediately."""
    await storage.leases.release_lease("bot", "a")
    assert await storage.leases.hold_lease("bot", "once", seed.now - LENGTH, seed.now)
    assert await storage.leases.hold_lease("bot", "a", seed.now, seed.now + LENGTH)
    assert await storage.leases.hold_lease("expiry", "b", seed.now, seed.now + LENGTH)
    for holder in ("b", "once", "A"):
        await other_node.leases.release_lease("bot", holder)
    await other_node.leases.release_lease("expiry", "a")
    for name in ("bot", "expiry"):
        assert not await other_node.leases.hold_lease(name, "c", seed.now + LENGTH - 1, seed.now + 2 * LENGTH)
    await storage.leases.release_lease("bot", "a")
    assert await other_node.leases.hold_lease("bot", "c", seed.now, seed.now + LENGTH)


async def test_list_leases_shows_all_of_them(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Expired leases are listed too, in the order of their names; a released one is gone."""
    assert await storage.leases.list_leases() == []
    for name, until in ("project bots", seed.now + LENGTH), ("bot", 1), ("released", seed.now):
        assert await storage.leases.hold_lease(name, f"holder of {name}", 0, until)
    await storage.leases.release_lease("released", "holder of released")
    assert await other_node.leases.list_leases() == [
        ("bot", "holder of bot", 1),
        ("project bots", "holder of project bots", seed.now + LENGTH),
    ]
