"""Batching: concurrent calls share a batch, and no call is affected by another one of its batch."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.errors import StoreUnavailable
from taproof.storage.batcher import Batcher

LIMIT = 4


class Refused(Exception):
    """The database refuses one item."""


@dataclass(frozen=True)
class Item:
    number: int
    key: int = 0
    is_refused: bool = False


class Database:
    """Stands for the database: records each batch, answers on request, and checks the rules about batches."""

    def __init__(self, limit: int = LIMIT, *, keyed: bool = False, is_open: bool = False) -> None:
        self.batches: list[list[Item]] = []
        self.done: list[Item] = []
        self.lost: set[Item] = set()
        self.is_open = is_open
        self.is_away = False
        self.batcher = Batcher(self.send, limit=limit, key=(lambda item: item.key) if keyed else None)
        self._keyed = keyed
        self._limit = limit
        self._under_way: asyncio.Future[None] | None = None

    async def send(self, items: list[Item]) -> list[str]:
        assert self._under_way is None
        assert 1 <= len(items) <= self._limit
        assert not self._keyed or len({item.key for item in items}) == len(items)
        self.batches.append(items)
        if not self.is_open:
            self._under_way = asyncio.get_running_loop().create_future()
            try:
                await self._under_way
            finally:
                self._under_way = None
        if self.is_away:
            # Of a batch whose items go one by one, those behind the one that was lost are told so, too.
            self.lost |= {item for batch in self.batches if items[0] in batch for item in batch}
            raise StoreUnavailable
        if any(item.is_refused for item in items):
            raise Refused({item.number for item in items if item.is_refused})
        self.done += items
        return [f"result {item.number}" for item in items]

    async def answer(self, *, is_away: bool = False) -> None:
        """Answer the running batch, if there is one, and let the next one start."""
        self.is_away = is_away
        if self._under_way is not None and not self._under_way.done():
            self._under_way.set_result(None)
        await asyncio.sleep(0)

    def open(self) -> None:
        """Answer the running batch, and from now on each batch at once."""
        self.is_open, self.is_away = True, False
        if self._under_way is not None and not self._under_way.done():
            self._under_way.set_result(None)

    def call(self, *items: Item) -> list["asyncio.Task[str]"]:
        return [asyncio.create_task(self.batcher.run(item)) for item in items]

    @property
    def sent(self) -> list[list[int]]:
        return [[item.number for item in batch] for batch in self.batches]


async def turns(count: int = 5) -> None:
    """Run the event loop until all that remains needs an answer from the database."""
    for _ in range(count):
        await asyncio.sleep(0)


def outcomes(results: Sequence[object]) -> list[object]:
    return [type(result) if isinstance(result, BaseException) else result for result in results]


async def test_a_lone_call_leaves_at_once() -> None:
    """A lone call is sent immediately, before the event loop starts anything else."""
    database = Database()
    seen: list[list[list[int]]] = []
    (call,) = database.call(Item(1))
    asyncio.get_running_loop().call_soon(
        lambda: asyncio.get_running_loop().call_soon(lambda: seen.append(database.sent))
    )
    await turns(3)
    assert seen == [[[1]]]
    database.open()
    assert await call == "result 1"


async def test_calls_wait_while_a_batch_is_under_way_and_then_leave_in_order() -> None:
    """Only one batch runs at a time. Waiting calls are sent in their order, within the limit."""
    database = Database()
    calls = database.call(Item(0))
    await turns()
    calls += database.call(*(Item(number) for number in range(1, 2 * LIMIT + 2)))
    await turns()
    assert database.sent == [[0]]
    database.open()
    assert await asyncio.gather(*calls) == [f"result {number}" for number in range(2 * LIMIT + 2)]
    assert database.sent == [[0], [1, 2, 3, 4], [5, 6, 7, 8], [9]]


async def test_a_failing_item_does_not_fail_its_neighbours() -> None:
    """Each item is sent again alone: only its caller gets the error, and all others get their results."""
    database = Database(is_open=True)
    items = [Item(1), Item(2, is_refused=True), Item(3), Item(4), Item(5)]
    results = await asyncio.gather(*database.call(*items), return_exceptions=True)
    assert outcomes(results) == ["result 1", Refused, "result 3", "result 4", "result 5"]
    assert isinstance(results[1], Refused)
    assert results[1].args == ({2},)
    # No other item can have caused the error of a lone one, so it is not sent again.
    await asyncio.gather(*database.call(Item(6, is_refused=True)), return_exceptions=True)
    assert database.sent == [[1, 2, 3, 4], [1], [2], [3], [4], [5], [6]]


async def test_a_store_that_is_away_is_told_to_the_whole_batch_and_nothing_is_sent_again() -> None:
    """The commit may have happened before the connection was lost, so repeating the batch could repeat the changes."""
    database = Database(is_open=True)
    database.is_away = True
    results = await asyncio.gather(*database.call(Item(1), Item(2), Item(3)), return_exceptions=True)
    assert outcomes(results) == [StoreUnavailable] * 3
    assert database.sent == [[1, 2, 3]]
    database.is_away = False
    assert await database.batcher.run(Item(4)) == "result 4"


async def test_a_caller_that_leaves_while_each_goes_alone_is_left_out() -> None:
    """The batch changed nothing, so an item whose caller has gone is not sent again."""
    database = Database()
    calls = database.call(Item(1), Item(2, is_refused=True), Item(3))
    await turns()
    await database.answer()
    calls[2].cancel()
    database.open()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert outcomes(results) == ["result 1", Refused, asyncio.CancelledError]
    assert database.sent == [[1, 2, 3], [1], [2]]


async def test_two_of_one_key_are_never_in_one_batch() -> None:
    """The second change to a row goes in a later batch, and items with other keys do not wait for it."""
    database = Database(keyed=True, is_open=True)
    items = [Item(1, key=1), Item(2, key=1), Item(3, key=2), Item(4, key=1), Item(5, key=3)]
    await asyncio.gather(*database.call(*items))
    assert database.sent == [[1, 3, 5], [2], [4]]
    await database.batcher.run(Item(6, key=1))
    assert database.sent[-1] == [6]


async def test_ten_thousand_of_one_key_are_put_in_order_in_little_time() -> None:
    """Many calls with one key do not block the event loop, because no batch iterates over all waiting calls."""
    database = Database(256, keyed=True)
    tasks = database.call(*(Item(number) for number in range(10_000)))
    await turns()
    for task in tasks[1:-1]:
        task.cancel()
    database.open()
    await asyncio.wait(tasks)
    assert database.sent == [[0], [9_999]]


async def test_results_that_do_not_match_are_told_and_never_sent_again() -> None:
    """Otherwise a statement with too few results would give one caller the result of another."""
    batches = []

    async def send(items: list[int]) -> list[int]:
        batches.append(items)
        return items[1:]

    batcher = Batcher(send, limit=10)
    results = await asyncio.gather(*(batcher.run(number) for number in range(3)), return_exceptions=True)
    assert outcomes(results) == [RuntimeError] * 3
    assert batches == [[0, 1, 2]]


async def test_closing_finishes_what_waits_and_refuses_the_rest() -> None:
    """A stopping service loses no call. Closing twice, or no longer waiting for the close, is safe."""
    database = Database(keyed=True)
    calls = database.call(Item(1), Item(2), Item(3, key=1))
    await turns()
    impatient = asyncio.create_task(database.batcher.close())
    await turns()
    impatient.cancel()
    with pytest.raises(StoreUnavailable):
        await database.batcher.run(Item(4))
    database.open()
    await database.batcher.close()
    assert [call.result() for call in calls] == ["result 1", "result 2", "result 3"]
    await database.batcher.close()
    await Database().batcher.close()


async def test_nobody_waits_for_ever_when_the_batch_itself_is_cancelled() -> None:
    """Every caller gets an answer even if the task of the batch is cancelled."""
    database = Database(keyed=True)
    calls = database.call(Item(1), Item(2))
    await turns()
    calls += database.call(Item(3), Item(4))
    await turns()
    (sending,) = asyncio.all_tasks() - {asyncio.current_task(), *calls}
    sending.cancel()
    assert outcomes(await asyncio.gather(*calls, return_exceptions=True)) == [StoreUnavailable] * 4
    database.open()
    assert await database.batcher.run(Item(5)) == "result 5"


Step = tuple[Literal["call", "cancel", "turn", "answer", "lose"], int, bool]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("call", "call", "call", "cancel", "turn", "answer", "lose")), st.integers(0, 3), st.booleans()
    ),
    max_size=60,
)


@given(STEPS, st.booleans())
def test_every_caller_gets_its_own_answer_exactly_once(steps: list[Step], keyed: bool) -> None:  # noqa: FBT001 — drawn by Hypothesis.
    """In any order of calls, refusals, losses and cancellations, nothing is done twice."""

    async def check() -> None:
        database = Database(keyed=keyed)
        items: list[Item] = []
        calls: list[asyncio.Task[str]] = []
        left_early: set[Item] = set()
        for kind, number, flag in steps:
            if kind == "call":
                items.append(Item(len(items), number, flag and number == 0))
                calls += database.call(items[-1])
            elif kind == "cancel" and calls:
                place = number % len(calls)
                if not calls[place].done() and not any(items[place] in batch for batch in database.batches):
                    left_early.add(items[place])
                calls[place].cancel()
            elif kind in {"answer", "lose"}:
                await database.answer(is_away=kind == "lose")
            else:
                await turns(number + 1)
        await turns()
        database.open()
        results = await asyncio.gather(*calls, return_exceptions=True)
        await database.batcher.close()

        sent = {item for batch in database.batches for item in batch}
        assert not sent & left_early
        assert len(set(database.done)) == len(database.done)
        for item, call, result in zip(items, calls, results, strict=True):
            if call.cancelled():
                continue
            if isinstance(result, StoreUnavailable):
                assert item in database.lost
                assert item not in database.done
            elif item.is_refused:
                assert isinstance(result, Refused)
                assert result.args == ({item.number},)
            else:
                assert result == f"result {item.number}"
                assert item in database.done
        in_order = [item for batch in database.batches for item in batch]
        for key in range(4):
            first_sent = [item.number for item in dict.fromkeys(in_order) if item.key == key]
            assert first_sent == sorted(first_sent)

    asyncio.run(check())
