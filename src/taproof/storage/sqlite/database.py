"""A SQLite store's three connections.

One reads on the event loop, one is behind the group commit, and one looks up in a thread what may take milliseconds.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.errors import StoreUnavailable
from taproof.storage.queries.database import Purge
from taproof.storage.queries.transaction import Transaction
from taproof.storage.sqlite.group_commit import GroupCommit, rows
from taproof.storage.sqlite.transaction import SqliteTransaction, add_entry, finish

Found = TypeVar("Found")
Read = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
"""Runs a statement with its values and returns the rows."""


class SqliteDatabase:
    """Reads and writes. It is a `storage.queries.database.Database`."""

    def __init__(self, reader: apsw.Connection, writer: GroupCommit, lookup: apsw.Connection) -> None:
        self.reader = reader
        self.writer = writer
        self.lookup = lookup
        self._lookups = ThreadPoolExecutor(1, thread_name_prefix="taproof-lookup")

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Read on the event loop, where a point read takes 10 µs."""
        return _read(self.reader, statement, values)

    async def in_snapshot(self, look: Callable[[Read], Found]) -> Found:
        """Return what `look` finds in one snapshot of the database, in a thread.

        This is for reads whose cost grows with what a developer has: SQLite walks without holding the event loop. A
        thread costs several hundred microseconds.
        """

        def read(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
            return _read(self.lookup, statement, values)

        def look_in_one_snapshot() -> Found:
            read("BEGIN", ())
            try:
                return look(read)
            finally:
                read("COMMIT", ())

        try:
            looking = asyncio.get_running_loop().run_in_executor(self._lookups, look_in_one_snapshot)
        except RuntimeError as error:  # The store is closed.
            raise StoreUnavailable from error
        return await looking

    async def close(self) -> None:
        """Finish the writes under way and the lookup, then close all connections."""
        await self.writer.close()
        self._lookups.shutdown()
        self.lookup.close()
        self.reader.close()

    async def read(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return _read(self.reader, statement, values)

    async def look_up(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return await self.in_snapshot(lambda read: read(statement, values))

    async def change(self, statement: str, *values: Any, entry: AuditEntry | None = None) -> list[tuple[Any, ...]]:
        def write(connection: apsw.Connection) -> list[tuple[Any, ...]]:
            found = rows(connection, statement, values)
            if found:
                add_entry(connection, entry)
            return found

        return await self.writer.run(write)

    add = change

    async def in_transaction(self, work: Callable[[Transaction], Coroutine[Any, Any, Found]]) -> Found:
        return await self.writer.run(lambda connection: finish(work(SqliteTransaction(connection))))

    async def purge(self, purge: Purge, before: int, limit: int) -> int:
        # A write waits for the disk: it is not begun when there is nothing to erase.
        return len(await self.change(purge.sqlite, before, limit)) if self.rows(purge.find_any, (before,)) else 0


def _read(connection: apsw.Connection, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    try:
        return connection.execute(statement, values).fetchall()
    except (apsw.Error, apsw.ConnectionClosedError) as error:
        raise StoreUnavailable from error
