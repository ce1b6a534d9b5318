"""Conformance: of many processes one does what only one may do at a time."""

import asyncio
from typing import TYPE_CHECKING

from taproof.core.clock import SECOND
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed

LENGTH = 8 * SECOND


async def test_hold_lease_goes_to_one_of_many(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Sixteen processes on two nodes ask at the same instant: one holds it, and only that one."""
    holders = [f"node {number}" for number in range(16)]
    asked = [
        (storage, other_node)[number % 2].leases.hold_lease("bot", holder, seed.now, seed.now + LENGTH)
        for number, holder in enumerate(holders)
    ]
    won = await asyncio.gather(*asked)
    assert won.count(True) == 1
    again = [await other_node.leases.hold_lease("bot", holder, seed.now, seed.now + LENGTH) for holder in holders]
    assert again == won


async def test_hold_lease_goes_to_one_of_many_once_it_lapsed(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """The same for those who wait to take over from a process that was killed."""
    assert await storage.leases.hold_lease("bot", "killed", seed.now, seed.now + LENGTH)
    for turn in range(1, 6):
        now = seed.now + turn * LENGTH
        asked = [
            store.leases.hold_lease("bot", f"turn {turn}, {number}", now, now + LENGTH)
            for number in range(4)
            for store in (storage, other_node)
        ]
        # A holder is named once per node and number: of the two calls of one name both may win, as a renewal.
        won = await asyncio.gather(*asked)
        winners = {number // 2 for number, is_won in enumerate(won) if is_won}
        assert len(winners) == 1


async def test_hold_lease_renews_for_its_holder(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Whoever asks again in time keeps it for as long as it goes on asking, on whatever connection."""
    for turn in range(5):
        now = seed.now + turn * LENGTH // 2
        assert await (storage, other_node)[turn % 2].leases.hold_lease("expiry", "a", now, now + LENGTH)
        assert not await storage.leases.hold_lease("expiry", "b", now + LENGTH // 2 - 1, now + LENGTH)


async def test_hold_lease_is_taken_over_when_its_time_is_over(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """At the very millisecond and not before; who held it is then one of the others."""
    until = seed.now + LENGTH
    assert await storage.leases.hold_lease("bot", "killed", seed.now, until)
    assert not await other_node.leases.hold_lease("bot", "waiting", until - 1, until + LENGTH)
    assert await other_node.leases.hold_lease("bot", "waiting", until, until + LENGTH)
    assert not await storage.leases.hold_lease("bot", "killed", until, until + LENGTH)
    assert not await storage.leases.hold_lease("bot", "killed", until + LENGTH - 1, until + 2 * LENGTH)


async def test_hold_lease_holds_after_its_time_while_nobody_else_wants_it(storage: Storage, seed: "Seed") -> None:
    """A process that was stopped for a while goes on where it was, if no one took over meanwhile."""
    assert await storage.leases.hold_lease("purge", "a", seed.now, seed.now + LENGTH)
    assert await storage.leases.hold_lease("purge", "a", seed.now + 10 * LENGTH, seed.now + 11 * LENGTH)
    assert not await storage.leases.hold_lease("purge", "b", seed.now + 11 * LENGTH - 1, seed.now + 12 * LENGTH)


async def test_hold_lease_tells_names_apart(storage: Storage, seed: "Seed") -> None:
    """One process may hold the bot while another expires sessions."""
    assert await storage.leases.hold_lease("bot", "a", seed.now, seed.now + LENGTH)
    assert await storage.leases.hold_lease("expiry", "b", seed.now, seed.now + LENGTH)
    assert await storage.leases.hold_lease("Bot", "b", seed.now, seed.now + LENGTH)
    assert not await storage.leases.hold_lease("bot", "b", seed.now, seed.now + LENGTH)


async def test_release_lease_lets_another_take_it_at_once(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """A process that ends in order makes nobody wait for the lease to lapse."""
    assert await storage.leases.hold_lease("bot", "a", seed.now, seed.now + LENGTH)
    await storage.leases.release_lease("bot", "a")
    assert await other_node.leases.hold_lease("bot", "b", seed.now, seed.now + LENGTH)


async def test_release_lease_is_for_its_holder(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """A stranger, one who held it once, and one who names another lease take nothing away."""
    await storage.leases.release_lease("bot", "a")
    assert await storage.leases.hold_lease("bot", "once", seed.now - LENGTH, seed.now)
    assert await storage.leases.hold_lease("bot", "a", seed.now, seed.now + LENGTH)
    assert await storage.leases.hold_lease("expiry", "b", seed.now, seed.now + LENGTH)
    for holder in ("b", "once", "A"):
        await other_node.leases.release_lease("bot", holder)
    await other_node.leases.release_lease("expiry", "a")
    for name in ("bot", "expiry"):
        assert not await other_node.leases.hold_lease(name, "c", seed.now + LENGTH - 1, seed.now + 2 * LENGTH)


async def test_hold_lease_stays_where_it_is_when_clocks_differ(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """A node whose clock runs an hour ahead keeps what it renews: two that live do not take it from each other."""
    for turn in range(3):
        now = seed.now + turn * SECOND
        ahead = now + 3600 * SECOND
        assert await storage.leases.hold_lease("bot", "ahead", ahead, ahead + LENGTH)
        assert not await other_node.leases.hold_lease("bot", "right", now, now + LENGTH)


async def test_list_leases_shows_all_of_them(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Also expired ones, in the order of their names; a released one is gone."""
    assert await storage.leases.list_leases() == []
    for name, until in ("project bots", seed.now + LENGTH), ("bot", 1), ("released", seed.now):
        assert await storage.leases.hold_lease(name, f"holder of {name}", 0, until)
    await storage.leases.release_lease("released", "holder of released")
    assert await other_node.leases.list_leases() == [
        ("bot", "holder of bot", 1),
        ("project bots", "holder of project bots", seed.now + LENGTH),
    ]
