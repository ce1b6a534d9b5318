"""One writer that commits many writes at once.

A durable commit costs one wait for the disk, regardless of its size. Writes that arrive while the previous commit waits
run together in the next transaction. The statements run on the event loop, where each takes microseconds. Only COMMIT,
which waits for the disk, runs in a thread, so that reads continue meanwhile.
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
"""The maximum number of writes in one transaction. It bounds how long the statements of a group block the event
loop."""
_BUSY: Final = 4
_FULL: Final = 64
_RECENT: Final = 0.01
_GATHER: Final = 0.001
"""Seconds for which a group waits for more writes under load. It waits if the previous group ended within `_RECENT` and
had `_BUSY` or more writes, and if fewer than `_FULL` are waiting. A commit costs as much CPU time as several writes, so
small groups would slow down everything else. Single writes never wait."""
_LOCK_PATIENCE: Final = 5.0
"""Seconds for which a group waits until another process (the command line, a backup) releases the write lock."""
_LOCK_RETRY: Final = 0.005

T = TypeVar("T")
Write = Callable[[apsw.Connection], Any]


def rows(connection: apsw.Connection, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Run a statement and return all its rows."""
    return connection.execute(statement, values).fetchall()


class GroupCommit:
    """Runs writes on one connection, many in one transaction.

    Args:
        connection: used only by this object.
        begun: called when a transaction begins.
        finish: called right before the commit, to write what belongs to the transaction as a whole.
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
        """Run `write`, and return its result once it is durable.

        `write` must only run statements: it may run twice if another write of its group failed. Cancelling the caller
        does not undo a write that has begun.

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
        """Finish the waiting writes, then close the connection."""
        self._closed = True
        if self._task is not None:
            # A caller that stops waiting for the close must not cancel the current group.
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
            # One write failed and rolled back the whole group. Each write now gets a transaction of its own.
            for item in group:
                if item[1].cancelled():
                    continue
                failure = await self._commit([item])
                if isinstance(failure, StoreUnavailable):
                    # The other writes fail too, so that they do not wait for the lock one after the other.
                    _fail(group, failure)
                    break
                if failure is not None:
                    _fail([item], failure)

    async def _gather(self) -> None:
        since = asyncio.get_running_loop().time() - self._ended_at
        if self._last_size >= _BUSY and since < _RECENT and len(self._waiting) < _FULL and not self._closed:
            await asyncio.sleep(_GATHER)

    async def _commit(self, group: list[tuple[Write, asyncio.Future[Any]]]) -> Exception | None:
        """Run a group in one transaction and set the results of its callers.

        On failure, roll everything back and return the error.
        """
        if not group:
            return None
        try:
            await self._begin()
            self._begun()
            results = [write(self._connection) for write, _ in group]
            self._finish(self._connection)
            await asyncio.get_running_loop().run_in_executor(self._disk, self._connection.execute, "COMMIT")
        except Exception as error:  # noqa: BLE001 — the callers must receive any error, and the lock must be released.
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
    """Return StoreUnavailable if the database cannot be written, and `error` itself if the write is wrong."""
    if isinstance(error, apsw.Error) and not isinstance(
        error, (apsw.ConstraintError, apsw.SQLError, apsw.MismatchError)
    ):
        unavailable = StoreUnavailable()
        unavailable.__cause__ = error
        return unavailable
    return error
