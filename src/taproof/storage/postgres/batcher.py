"""Calls that come together become one statement.

A round trip to the database costs about the same for one row as for a hundred. So while one statement is under way,
the calls that arrive wait, and leave together in the next. A lone call waits for nobody: there is no timer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from taproof.core.errors import StoreUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Gathers the calls of one kind; of its batches never more than one is under way.

    Args:
        send: runs one statement for all of the items and returns one result for each, in their order; or raises, and
            then has changed nothing, unless what it raises is `StoreUnavailable`.
        limit: items in one batch at most.
        key: what two items of one batch never share; the second waits for a later batch. For statements that could
            not tell which of two changes to one row comes first.
    """

    def __init__(
        self,
        send: Callable[[list[Item]], Awaitable[Sequence[Result]]],
        *,
        limit: int,
        key: Callable[[Item], Hashable] | None = None,
    ) -> None:
        self._send = send
        self._limit = limit
        self._key = key
        # Two lists and no pairs: on the polled path nothing is allocated that is not needed.
        self._items: list[Item] = []
        self._futures: list[asyncio.Future[Result]] = []
        # For each key in `_items`, those who wait behind it: so no batch walks over them to find its own.
        self._behind: dict[Hashable, deque[tuple[Item, asyncio.Future[Result]]]] = {}
        self._drain_task: asyncio.Task[None] | None = None
        self._draining = False
        self._closed = False

    async def run(self, item: Item) -> Result:
        """Return the result of `item`.

        A caller that is cancelled while it waits is left out; once its batch has left, cancelling undoes nothing.

        Raises:
            StoreUnavailable: the database cannot be reached, or was lost underway: then the change may have been made.
            Exception: whatever `send` raises for this item alone.
        """
        if self._closed:
            raise StoreUnavailable
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        if self._key is None or self._is_first(self._key(item), item, future):
            self._items.append(item)
            self._futures.append(future)
        if not self._draining:
            self._draining = True
            # A task, and not this caller's own frame: cancelling the caller must not cancel the statement.
            self._drain_task = loop.create_task(self._drain())
        return await future

    async def close(self) -> None:
        """Finish what is waiting; refuse what comes from now on."""
        self._closed = True
        if self._drain_task is not None:
            await asyncio.wait([self._drain_task])

    def _is_first(self, key: Hashable, item: Item, future: asyncio.Future[Result]) -> bool:
        """Tell whether nobody waits with this key; else put the item behind those who do."""
        behind = self._behind.get(key)
        if behind is None:
            self._behind[key] = deque()
            return True
        behind.append((item, future))
        return False

    async def _drain(self) -> None:
        items: list[Item] = []
        futures: list[asyncio.Future[Result]] = []
        try:
            while self._items:
                items, futures = self._take_batch()
                if items:
                    await self._answer(items, futures)
        except BaseException:
            # This task was cancelled, as happens when a loop is ended: without an answer they would wait for ever.
            behind = [future for waiting in self._behind.values() for _, future in waiting]
            _fail(futures + self._futures + behind, StoreUnavailable())
            self._items, self._futures, self._behind = [], [], {}
            raise
        finally:
            self._draining = False

    def _take_batch(self) -> tuple[list[Item], list[asyncio.Future[Result]]]:
        """Return the items that leave next, without those whose callers have gone."""
        if len(self._items) <= self._limit:
            items, futures = self._items, self._futures
            self._items, self._futures = [], []
        else:
            items, futures = self._items[: self._limit], self._futures[: self._limit]
            del self._items[: self._limit], self._futures[: self._limit]
        if self._key is not None:
            for item in items:
                self._call_up(self._key(item))
        if any(future.cancelled() for future in futures):
            staying = [(item, future) for item, future in zip(items, futures, strict=True) if not future.cancelled()]
            items, futures = [item for item, _ in staying], [future for _, future in staying]
        return items, futures

    def _call_up(self, key: Hashable) -> None:
        """Let the next one of a key take its place among those who leave, now that the one before it does."""
        behind = self._behind[key]
        while behind:
            item, future = behind.popleft()
            if not future.cancelled():
                self._items.append(item)
                self._futures.append(future)
                return
        del self._behind[key]

    async def _answer(self, items: list[Item], futures: list[asyncio.Future[Result]]) -> None:
        failure = await self._attempt(items, futures)
        if failure is None:
            return
        if len(items) == 1 or isinstance(failure, StoreUnavailable):
            _fail(futures, failure)
            return
        # One of them failed and took its neighbours along: nothing was changed, and each now goes alone.
        for item, future in zip(items, futures, strict=True):
            if future.cancelled():
                continue
            failure = await self._attempt([item], [future])
            if isinstance(failure, StoreUnavailable):
                # The rest are not made to wait for it one after the other.
                _fail(futures, failure)
                return
            if failure is not None:
                _fail([future], failure)

    async def _attempt(self, items: list[Item], futures: list[asyncio.Future[Result]]) -> Exception | None:
        """Send once and hand out the results; return why there are none."""
        try:
            results = await self._send(items)
        except Exception as failure:  # noqa: BLE001 — whatever failed, the callers must hear of it.
            return failure
        if len(results) != len(items):
            # The statement was carried out: to send it again could do twice what must be done once.
            _fail(futures, RuntimeError(f"{len(results)} results for {len(items)} items"))
            return None
        for future, result in zip(futures, results, strict=True):
            if not future.done():
                future.set_result(result)
        return None


def _fail(futures: Sequence["asyncio.Future[Result]"], failure: Exception) -> None:
    """Tell all that still wait why there is no result for them."""
    for future in futures:
        if not future.done():
            future.set_exception(failure)
