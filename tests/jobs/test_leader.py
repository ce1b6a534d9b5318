"""The lease: one holder at a time, given up at once, taken over from the dead, lost in time by the cut off."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs
from tests.waiting import until

from taproof.core.errors import StoreUnavailable
from taproof.core.leases import LEASE_SECONDS, LOSE_SECONDS
from taproof.jobs import leader
from taproof.jobs.leader import GRACE_SECONDS, TRY_SECONDS, LeaderElection

if TYPE_CHECKING:
    from tests.webhooks.conftest import HandClock, Shop

Hold = Callable[[str, str, int, int], Awaitable[bool]]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten what runs by the loop's clock; the lease itself goes by the clock that the test sets."""
    monkeypatch.setattr(leader, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(leader, "LOSE_SECONDS", 0.5)
    monkeypatch.setattr(leader, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(leader, "TRY_SECONDS", 0.02)
    monkeypatch.setattr(leader, "FINISH_SECONDS", 0.2)


class Node:
    """A process that wants to do the work, and notes what it does."""

    def __init__(self, shop: "Shop", holder: str) -> None:
        self.terms: list[int] = []
        self.works = False
        self.stubborn = False
        self.failure: Exception | None = None
        self.stopping = asyncio.Event()
        self.shown: list[int] = []
        self.lead = LeaderElection(shop.storage.leases, shop.clock, holder, "bot", self.work, show=self.shown.append)
        self.task = asyncio.create_task(self.lead.run_until(self.stopping))

    async def work(self, since: int) -> None:
        self.terms.append(since)
        self.works = True
        try:
            if self.failure is not None:
                raise self.failure
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.stubborn:
                await asyncio.Event().wait()
            raise
        finally:
            self.works = False

    async def stop(self) -> None:
        self.stopping.set()
        await self.task


def test_the_promised_seconds() -> None:
    """Taken over within ten seconds; and whoever lost it has ended two seconds before another may take it."""
    assert LEASE_SECONDS + TRY_SECONDS < 10
    assert LOSE_SECONDS + GRACE_SECONDS <= LEASE_SECONDS - 2


async def test_one_at_a_time_and_given_up_at_once(shop: "Shop") -> None:
    """While one works the other waits; on a clean stop the other takes over without any time to pass."""
    first = Node(shop, "first")
    await until(lambda: first.works)
    second = Node(shop, "second")
    shop.clock.now += 7_000
    await asyncio.sleep(0.1)
    shop.clock.now += 7_000  # Renewed meanwhile, so it is not over.
    await asyncio.sleep(0.1)
    assert (first.works, second.works) == (True, False)
    await first.stop()
    assert not first.works
    await until(lambda: second.works)
    assert second.terms == [shop.clock()]
    assert (first.shown, second.shown) == ([1, 0], [1])
    await second.stop()


async def test_taken_over_from_the_dead(shop: "Shop", clock: "HandClock") -> None:
    """A lease that nobody renews is another's as soon as its time is over, not before."""
    await shop.storage.leases.hold_lease("bot", "killed", clock(), clock() + 8_000)
    node = Node(shop, "other")
    clock.now += 7_999
    await asyncio.sleep(0.1)
    assert not node.works
    clock.now += 1
    await until(lambda: node.works)
    await node.stop()


async def test_work_rests_while_the_store_is_away(shop: "Shop", monkeypatch: pytest.MonkeyPatch) -> None:
    """Who cannot renew stops before the lease could be another's, and goes on when the store is back."""
    node = Node(shop, "cut off")
    await until(lambda: node.works)

    async def away(*_: Any) -> bool:
        raise StoreUnavailable

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(shop.storage.leases, "hold_lease", away)
        await until(lambda: not node.works)
        await asyncio.sleep(0.1)
        assert [line["event"] for line in logs] == ["lease_lost"]
    await until(lambda: node.works)
    assert len(node.terms) == 2
    assert node.shown == [1, 0, 1]
    await node.stop()


async def test_work_rests_while_the_store_is_silent(shop: "Shop", monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that does not come is as good as none: the work does not wait for it."""
    node = Node(shop, "cut off")
    await until(lambda: node.works)

    async def silent(*_: Any) -> bool:
        await asyncio.Event().wait()
        return True

    monkeypatch.setattr(shop.storage.leases, "hold_lease", silent)
    await until(lambda: not node.works)
    await node.stop()


async def test_a_lease_that_another_took_is_lost_at_once(shop: "Shop", clock: "HandClock") -> None:
    """A process that stood still finds another in its place, ends its work, and leaves the other's lease alone."""
    node = Node(shop, "slow")
    await until(lambda: node.works)
    clock.now += 8_000
    # In its own turn on the loop: nothing of the slow one runs in between.
    shop.storage.database.writer._connection.execute(
        "UPDATE leases SET holder = 'other', held_until = ?", (clock() + 8_000,)
    )
    await until(lambda: not node.works)
    await asyncio.sleep(0.1)
    assert not node.works
    await node.stop()
    assert shop.storage.database.reader.execute("SELECT holder FROM leases").fetchall() == [("other",)]


async def test_a_process_that_stood_still_does_not_even_ask(shop: "Shop", monkeypatch: pytest.MonkeyPatch) -> None:
    """After standing still for longer than a lease lasts, the work is ended before anything else happens."""
    node = Node(shop, "stopped")
    await until(lambda: node.works)
    asked = 0
    hold: Hold = shop.storage.leases.hold_lease

    async def count(name: str, holder: str, now: int, until_then: int) -> bool:
        nonlocal asked
        asked += node.works
        return await hold(name, holder, now, until_then)

    monkeypatch.setattr(shop.storage.leases, "hold_lease", count)
    node.lead._deadline = asyncio.get_running_loop().time() - 1
    await until(lambda: not node.works)
    assert asked <= 1  # The renewal that was under way.
    await until(lambda: node.works)
    await node.stop()


async def test_work_that_goes_on_is_ended(shop: "Shop", monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled once, work may finish what it has in hand; when it takes too long it is cancelled again."""
    monkeypatch.setattr(leader, "LOSE_SECONDS", 60.0)  # Only a lease that is still held is released.
    node = Node(shop, "stubborn")
    node.stubborn = True
    await until(lambda: node.works)
    await node.stop()
    assert not node.works
    assert shop.storage.database.reader.execute("SELECT * FROM leases").fetchall() == []


async def test_a_failure_of_the_work_is_told(shop: "Shop") -> None:
    """Work that fails ends the process, which gives the lease up: another takes over at once."""
    node = Node(shop, "failing")
    node.failure = LookupError("a bug")
    with pytest.raises(LookupError, match="a bug"):
        await node.task
    other = Node(shop, "other")
    await until(lambda: other.works)
    await other.stop()
