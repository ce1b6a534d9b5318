"""The lease has one holder at a time, is released on a stop, and is taken over from dead or cut-off processes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.service.conftest import HandClock
from tests.waiting import until
from tests.webhooks.shop import Shop

from taproof.core.errors import StoreUnavailable
from taproof.core.leases import LEASE_SECONDS, LOSE_SECONDS
from taproof.jobs import leader
from taproof.jobs.leader import GRACE_SECONDS, TRY_SECONDS, LeaderElection

Hold = Callable[[str, str, int, int], Awaitable[bool]]
LONG = 30.0


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten pauses. Limits are long, so that a slow disk ends nothing; `Node.cut_off` makes a lease expire."""
    monkeypatch.setattr(leader, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(leader, "TRY_SECONDS", 0.02)
    monkeypatch.setattr(leader, "LOSE_SECONDS", LONG)
    monkeypatch.setattr(leader, "GRACE_SECONDS", LONG)


async def away(*_: Any) -> bool:
    raise StoreUnavailable


async def silent(*_: Any) -> bool:
    await asyncio.Event().wait()
    return True


class Node:
    """A process that wants to do the work, and records its work and the store's answers."""

    def __init__(self, shop: Shop, holder: str) -> None:
        self.terms: list[int] = []
        self.works = False
        self.stubborn = False
        self.failure: Exception | None = None
        self.stopping = asyncio.Event()
        self.shown: list[int] = []
        self.asked: list[bool] = []
        """For each call of `hold_lease`, whether the work was running."""
        self.asked_at = 0.0
        self.answers: list[tuple[int, bool]] = []
        """The answers of `hold_lease`, each with the time passed to the call."""
        self.released = False
        self.leases = shop.storage.leases
        self.hold: Hold = self.leases.hold_lease
        self.lead = LeaderElection(self, shop.clock, holder, "bot", self.work, show=self.shown.append)
        self.task = asyncio.create_task(self.lead.run_until(self.stopping))

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        self.asked.append(self.works)
        self.asked_at = asyncio.get_running_loop().time()
        held = await self.hold(name, holder, now, until)
        self.answers.append((now, held))
        return held

    async def release_lease(self, name: str, holder: str) -> None:
        self.released = True
        await self.leases.release_lease(name, holder)

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

    async def cut_off(self, hold: Hold, seconds: float) -> None:
        """Replace the store's answers with `hold`, and let the node's lease expire after that many seconds."""
        await until(lambda: not self.lead._asking.locked())
        assert self.lead._deadline - LONG <= self.asked_at
        self.hold = hold
        self.lead._deadline = asyncio.get_running_loop().time() + seconds

    async def asks_again(self) -> None:
        """Wait until the node has asked for the lease three more times."""
        before = len(self.asked)
        await until(lambda: len(self.asked) >= before + 3)

    async def stop(self) -> None:
        self.stopping.set()
        await self.task


def test_the_promised_seconds() -> None:
    """A lease is taken over within ten seconds, and its former holder stops two seconds before another can take it."""
    assert LEASE_SECONDS + TRY_SECONDS < 10
    assert LOSE_SECONDS + GRACE_SECONDS <= LEASE_SECONDS - 2


async def test_one_at_a_time_and_given_up_at_once(shop: Shop) -> None:
    """While one process works, the other waits; after a clean stop, the other takes over immediately."""
    first = Node(shop, "first")
    await until(lambda: first.works)
    second = Node(shop, "second")
    for _ in range(2):  # Renewed after the first step, so the lease lasts longer than the second step.
        shop.clock.now += 7_000
        await until(lambda: (shop.clock(), True) in first.answers)
        await until(lambda: (shop.clock(), False) in second.answers)
    assert (first.works, second.works) == (True, False)
    await first.stop()
    assert not first.works
    await until(lambda: second.works)
    assert second.terms == [shop.clock()]
    assert (first.shown, second.shown) == ([1, 0], [1])
    await second.stop()


async def test_taken_over_from_the_dead(shop: Shop, clock: HandClock) -> None:
    """A lease that nobody renews can be taken exactly when it expires, not before."""
    await shop.storage.leases.hold_lease("bot", "killed", clock(), clock() + 8_000)
    clock.now += 7_999
    node = Node(shop, "other")
    await node.asks_again()
    assert not node.terms
    clock.now += 1
    await until(lambda: node.works)
    await node.stop()


async def test_work_rests_while_the_store_is_away(shop: Shop) -> None:
    """A holder that cannot renew stops before another could take the lease, and continues when the store is back."""
    node = Node(shop, "cut off")
    await until(lambda: node.works)
    with capture_logs() as logs:
        await node.cut_off(away, 0.2)
        await node.asks_again()
        await until(lambda: not node.works)
        await node.asks_again()
        assert [line["event"] for line in logs] == ["lease_lost"]
    node.hold = node.leases.hold_lease
    await until(lambda: node.works)
    assert len(node.terms) == 2
    assert node.shown == [1, 0, 1]
    await node.stop()


async def test_work_rests_while_the_store_is_silent(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing answer counts as a failed renewal: the work does not wait for it."""
    node = Node(shop, "cut off")
    await until(lambda: node.works)
    await node.cut_off(silent, 0.2)
    monkeypatch.setattr(leader, "LOSE_SECONDS", 0.2)  # Stopping waits for the call that does not return.
    await until(lambda: not node.works)
    await node.stop()


async def test_a_lease_that_another_took_is_lost_at_once(shop: Shop, clock: HandClock) -> None:
    """A process that was suspended and lost its lease stops its work, and leaves the other's lease alone."""
    node = Node(shop, "slow")
    await until(lambda: node.works)
    clock.now += 8_000
    # In its own turn on the loop: nothing of the slow one runs in between.
    shop.storage.database.writer.connection.execute(
        "UPDATE leases SET holder = 'other', held_until = ?", (clock() + 8_000,)
    )
    await until(lambda: not node.works)
    await node.asks_again()
    assert len(node.terms) == 1
    await node.stop()
    assert not node.released
    assert shop.storage.database.reader.execute("SELECT holder FROM leases").fetchall() == [("other",)]


async def test_a_process_that_stood_still_does_not_even_ask(shop: Shop) -> None:
    """After a suspension longer than the lease, the work is stopped before anything else happens."""
    node = Node(shop, "stopped")
    await until(lambda: node.works)
    await node.cut_off(node.hold, -1)
    node.asked.clear()
    await until(lambda: len(node.terms) == 2)
    assert not node.asked[0]
    await node.stop()


async def test_work_that_goes_on_is_ended(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled work may finish its current step; if it takes too long, it is cancelled again."""
    monkeypatch.setattr(leader, "FINISH_SECONDS", 0.2)
    monkeypatch.setattr(leader, "GRACE_SECONDS", 0.2)
    node = Node(shop, "stubborn")
    node.stubborn = True
    await until(lambda: node.works)
    await node.stop()
    assert not node.works
    assert node.released


async def test_a_failure_of_the_work_is_told(shop: Shop) -> None:
    """A failure of the work ends the process, which releases the lease: another takes over immediately."""
    node = Node(shop, "failing")
    node.failure = LookupError("a bug")
    with pytest.raises(LookupError, match="a bug"):
        await node.task
    other = Node(shop, "other")
    await until(lambda: other.works)
    await other.stop()
