"""Combines concurrent calls into one statement or one transaction.

A round trip to PostgreSQL, or a commit of SQLite, costs about the same for one row as for a hundred. So calls that
arrive while a batch is running wait, and are sent together in the next batch. A single call does not wait.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from taproof.core.errors import StoreUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Collects calls of one kind into batches. At most one batch is running at a time.

    Args:
        send: handles all items together, and returns one result for each, in the same order. If it raises anything
            except `StoreUnavailable`, it must have changed nothing.
        limit: the maximum number of items in one batch.
        key: returns the key of an item. Two items with the same key are never in the same batch; the second one waits
            for a later batch. Use it for statements that cannot order two changes to one row.
        gather: called before each batch with the number of waiting items. It may wait for more items.
    """

    def __init__(
        self,
        send: Callable[[list[Item]], Awaitable[Sequence[Result]]],
        *,
        limit: int,
        key: Callable[[Item], Hashable] | None = None,
        gather: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self._send = send
        self._limit = limit
        self._key = key
        self._gather = gather
        # Two lists instead of pairs: polling must not allocate more than it needs.
        self._items: list[Item] = []
        self._futures: list[asyncio.Future[Result]] = []
        # For each key in `_items`, the callers queued behind it. They are stored separately, so that no batch has to
        # skip them.
        self._behind: dict[Hashable, deque[tuple[Item, asyncio.Future[Result]]]] = {}
        self._drain_task: asyncio.Task[None] | None = None
        self._draining = False
        self._closed = False

    async def run(self, item: Item) -> Result:
        """Return the result of `item`.

        The item of a caller that is cancelled while it waits is not sent. Once the batch is sent, cancelling has no
        effect.

        Raises:
            StoreUnavailable: the database cannot be reached, or the connection was lost during the statement. In the
                second case, the change may have been made.
            Exception: any exception that `send` raises for this item.
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
            # Use a separate task: cancelling the caller must not cancel the statement.
            self._drain_task = loop.create_task(self._drain())
        return await future

    async def close(self) -> None:
        """Finish the waiting calls, and refuse new calls."""
        self._closed = True
        if self._drain_task is not None:
            await asyncio.wait([self._drain_task])

    def _is_first(self, key: Hashable, item: Item, future: asyncio.Future[Result]) -> bool:
        """Return whether no item with this key is waiting; otherwise queue the item behind the others."""
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
                if self._gather is not None and not self._closed:
                    await self._gather(len(self._items))
                items, futures = self._take_batch()
                if items:
                    await self._answer(items, futures)
        except BaseException:
            # This task was cancelled, for example at the end of the event loop. Without a result, the callers would
            # wait forever.
            behind = [future for waiting in self._behind.values() for _, future in waiting]
            _fail(futures + self._futures + behind, StoreUnavailable())
            self._items, self._futures, self._behind = [], [], {}
            raise
        finally:
            self._draining = False

    def _take_batch(self) -> tuple[list[Item], list[asyncio.Future[Result]]]:
        """Return the items of the next batch, except those whose callers were cancelled."""
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
        """Move the next item with this key into the queue, since the item before it has left the queue."""
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
        # One item failed, and the whole batch changed nothing. Send each item separately.
        for item, future in zip(items, futures, strict=True):
            if future.cancelled():
                continue
            failure = await self._attempt([item], [future])
            if isinstance(failure, StoreUnavailable):
                # Fail the other items too, so that they do not wait for the database one after the other.
                _fail(futures, failure)
                return
            if failure is not None:
                _fail([future], failure)

    async def _attempt(self, items: list[Item], futures: list[asyncio.Future[Result]]) -> Exception | None:
        """Send the items once and set the results; on failure, return the exception."""
        try:
            results = await self._send(items)
        except Exception as failure:  # noqa: BLE001 — the callers must receive any error.
            return failure
        if len(results) != len(items):
            # The statement has run. Sending it again could repeat a change that must happen once.
            _fail(futures, RuntimeError(f"{len(results)} results for {len(items)} items"))
            return None
        for future, result in zip(futures, results, strict=True):
            if not future.done():
                future.set_result(result)
        return None


def _fail(futures: Sequence["asyncio.Future[Result]"], failure: Exception) -> None:
    """Set the exception of all futures that are not done."""
    for future in futures:
        if not future.done():
            future.set_exception(failure)
