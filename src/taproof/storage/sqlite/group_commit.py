"""One writer that commits many writes at once.

A durable commit costs one wait for the disk, whatever it holds. Writes that arrive while the previous commit waits are
run together in the next transaction. The statements run on the event loop, where each takes microseconds; only
COMMIT, which waits for the disk, runs in a thread, so that reads go on meanwhile.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import apsw

from taproof.core.errors import StoreUnavailable

GROUP_LIMIT: Final = 256
"""Writes in one transaction at most: bounds how long the statements of a group hold the event loop."""
_BUSY: Final = 4
_FULL: Final = 64
_RECENT: Final = 0.01
_GATHER: Final = 0.001
"""Seconds that a group waits for more writes while there are many: when the one before it, which ended within
`_RECENT`, had `_BUSY` or more, and not yet `_FULL` are there. A commit costs the processor as much as several writes,
so small groups would leave less of it for everything else. While writes come one by one none of them waits."""
_LOCK_PATIENCE: Final = 5.0
"""Seconds that a group waits for another process (the command line, a backup) to let go of the write lock."""
_LOCK_RETRY: Final = 0.005

T = TypeVar("T")
Write = Callable[[apsw.Connection], Any]


def rows(connection: apsw.Connection, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Run a statement and return all of its rows."""
    return connection.execute(statement, values).fetchall()


class GroupCommit:
    """Runs writes on one connection, many to a transaction.

    Args:
        connection: belongs to this object alone.
        begun: called when a transaction begins.
        finish: adds what belongs to the transaction as a whole, right before its commit.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        begun: Callable[[], None] = lambda: None,
        finish: Callable[[apsw.Connection], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._begun = begun
        self._finish = finish
        self._waiting: deque[tuple[Write, asyncio.Future[Any]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="taproof-commit")
        self._closed = False
        self._last_size = 0
        self._ended_at = 0.0

    async def run(self, write: Callable[[apsw.Connection], T]) -> T:
        """Return what `write` returned, once it is durable.

        `write` must do nothing but statements: it may run twice, when a neighbour in its group failed. Cancelling the
        caller does not undo a write that has begun.

        Raises:
            StoreUnavailable: the database could not be written; nothing was changed.
        """
        if self._closed:
            raise StoreUnavailable
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((write, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await future

    async def close(self) -> None:
        """Finish what is waiting, then let go of the connection."""
        self._closed = True
        if self._task is not None:
            # Whoever gives up waiting for the end must not cut off the group that is under way.
            await asyncio.wait([self._task])
        self._disk.shutdown()
        self._connection.close()

    async def _drain(self) -> None:
        while self._waiting:
            await self._gather()
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), GROUP_LIMIT))]
            group = [item for item in group if not item[1].cancelled()]
            failure = await self._commit(group)
            if failure is None:
                continue
            if len(group) == 1 or isinstance(failure, StoreUnavailable):
                _fail(group, failure)
                continue
            # One write of the group failed and took its neighbours along: each now gets a transaction of its own.
            for item in group:
                if item[1].cancelled():
                    continue
                failure = await self._commit([item])
                if isinstance(failure, StoreUnavailable):
                    # The rest are not made to wait for the lock one after the other.
                    _fail(group, failure)
                    break
                if failure is not None:
                    _fail([item], failure)

    async def _gather(self) -> None:
        since = asyncio.get_running_loop().time() - self._ended_at
        if self._last_size >= _BUSY and since < _RECENT and len(self._waiting) < _FULL and not self._closed:
            await asyncio.sleep(_GATHER)

    async def _commit(self, group: list[tuple[Write, asyncio.Future[Any]]]) -> Exception | None:
        """Run a group in one transaction and answer its callers; on failure undo all of it and return the reason."""
        if not group:
            return None
        try:
            await self._begin()
            self._begun()
            results = [write(self._connection) for write, _ in group]
            self._finish(self._connection)
            await asyncio.get_running_loop().run_in_executor(self._disk, self._connection.execute, "COMMIT")
        except Exception as error:  # noqa: BLE001 — whatever failed, the callers must hear of it and the lock must go.
            with contextlib.suppress(apsw.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            return _store_error(error)
        self._last_size, self._ended_at = len(group), asyncio.get_running_loop().time()
        for (_, future), result in zip(group, results, strict=True):
            if not future.done():
                future.set_result(result)
        return None

    async def _begin(self) -> None:
        deadline = asyncio.get_running_loop().time() + _LOCK_PATIENCE
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(_LOCK_RETRY)
            else:
                return


def _fail(group: list[tuple[Write, asyncio.Future[Any]]], failure: Exception) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(failure)


def _store_error(error: Exception) -> Exception:
    """Tell a database that cannot be written from a write that is wrong."""
    if isinstance(error, apsw.Error) and not isinstance(
        error, (apsw.ConstraintError, apsw.SQLError, apsw.MismatchError)
    ):
        unavailable = StoreUnavailable()
        unavailable.__cause__ = error
        return unavailable
    return error
