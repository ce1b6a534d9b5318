"""One writer that commits many writes together.

A durable commit waits once for the disk, regardless of its size. Writes that arrive while the previous commit waits
run together in the next transaction. The statements run on the event loop, where each takes microseconds. Only COMMIT,
which waits for the disk, runs in a thread, so that reads continue meanwhile.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import apsw

from taproof.core.errors import StoreUnavailable
from taproof.storage.batcher import Batcher

GROUP_LIMIT: Final = 256
"""The maximum number of writes in one transaction. It bounds how long the statements of a group block the event
loop."""
_BUSY: Final = 4
_FULL: Final = 64
RECENT: Final = 0.01
GATHER: Final = 0.001
"""Seconds for which a group waits for more writes under load. It waits if the previous group ended within `RECENT` and
had `_BUSY` or more writes, and if fewer than `_FULL` are waiting. A commit costs as much CPU time as several writes, so
small groups would slow down everything else. Single writes never wait."""
LOCK_PATIENCE: Final = 5.0
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
        finish: called immediately before the commit, to write data for the transaction as a whole.
        lock_patience, recent, gather: see the constants.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        begun: Callable[[], None],
        finish: Callable[[apsw.Connection], None],
        *,
        lock_patience: float = LOCK_PATIENCE,
        recent: float = RECENT,
        gather: float = GATHER,
    ) -> None:
        self.connection = connection
        self._lock_patience = lock_patience
        self._recent_seconds = recent
        self._gather_seconds = gather
        self._begun = begun
        self._finish = finish
        self._batcher = Batcher[Write, Any](self._commit, limit=GROUP_LIMIT, gather=self._gather)
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="taproof-commit")
        self._last_size = 0
        self._ended_at = 0.0

    def run(self, write: Callable[[apsw.Connection], T]) -> Coroutine[Any, Any, T]:
        """Run `write`, and return its result once it is durable.

        `write` must only run statements: it may run twice if another write of its group failed. Cancelling the caller
        does not undo a write that has begun.

        Raises:
            StoreUnavailable: the database could not be written; nothing was changed.
        """
        return self._batcher.run(write)

    async def close(self) -> None:
        """Finish the waiting writes, then close the connection."""
        await self._batcher.close()
        self._disk.shutdown()
        self.connection.close()

    async def _gather(self, waiting: int) -> None:
        since = asyncio.get_running_loop().time() - self._ended_at
        if self._last_size >= _BUSY and since < self._recent_seconds and waiting < _FULL:
            await asyncio.sleep(self._gather_seconds)

    async def _commit(self, group: list[Write]) -> list[Any]:
        """Run a group in one transaction and return the results. On failure, roll everything back."""
        try:
            await self._begin()
            self._begun()
            results = [write(self.connection) for write in group]
            self._finish(self.connection)
            await asyncio.get_running_loop().run_in_executor(self._disk, self.connection.execute, "COMMIT")
        except Exception as error:
            with contextlib.suppress(apsw.Error):
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
            # These errors are caused by the write itself. Others mean that the database cannot be written.
            if isinstance(error, apsw.Error) and not isinstance(
                error, (apsw.ConstraintError, apsw.SQLError, apsw.MismatchError)
            ):
                raise StoreUnavailable from error
            raise
        self._last_size, self._ended_at = len(group), asyncio.get_running_loop().time()
        return results

    async def _begin(self) -> None:
        deadline = asyncio.get_running_loop().time() + self._lock_patience
        while True:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(_LOCK_RETRY)
            else:
                return
