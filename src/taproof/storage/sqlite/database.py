"""The three connections of a SQLite store: for reads on the event loop, for the group commit, and for long lookups."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.errors import StoreUnavailable
from taproof.storage.queries.database import Model, PointRead, Purge
from taproof.storage.queries.deliveries import END_DELIVERIES
from taproof.storage.queries.rights import ADD_AUDIT_ENTRY
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import access_ended, entry_values
from taproof.storage.sqlite.group_commit import GroupCommit, rows

Found = TypeVar("Found")
Read = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
"""Runs a statement with its values and returns the rows."""


class SqliteTransaction:
    """Implements `storage.queries.transaction.Transaction`. None of its methods waits."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def fetch(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return rows(self._connection, statement, values)

    add = fetch

    async def lock(self, statement: str, *values: Any, mode: str = "FOR UPDATE") -> list[tuple[Any, ...]]:  # noqa: ARG002
        return rows(self._connection, statement, values)

    async def lock_developers(self) -> None:
        """Do nothing: no other transaction writes at the same time."""

    async def lock_user(self, owner_id: str, messenger_id: str) -> None:
        """Do nothing, as for `lock_developers`."""

    async def read_in_order(self) -> None:
        """Do nothing: SQLite always reads in the order of an index if there is one."""

    async def end_deliveries(self, project_id: str, now: int, limit: int) -> int:
        return len(rows(self._connection, END_DELIVERIES, (now, project_id, limit)))

    async def add_entry(self, entry: AuditEntry | None) -> None:
        if entry is not None and not rows(self._connection, ADD_AUDIT_ENTRY, entry_values(entry)):
            raise access_ended(entry)


def finish(work: Coroutine[Any, Any, Found]) -> Found:
    """Run a coroutine that never waits for anything outside the transaction, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Found = end.value
        return result
    work.close()
    raise RuntimeError("A transaction must wait only for its own statements.")


class SqliteDatabase:
    """Reads and writes. It implements `storage.queries.database.Database`."""

    def __init__(self, reader: apsw.Connection, writer: GroupCommit, lookup: apsw.Connection) -> None:
        self.reader = reader
        # Reads on the event loop never overlap, so they share a cursor, which saves half a microsecond each.
        self._cursor = reader.cursor()
        self.writer = writer
        self.lookup = lookup
        self._lookups = ThreadPoolExecutor(1, thread_name_prefix="taproof-lookup")

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a read on the event loop, where a point read takes 4 µs."""
        try:
            # All rows are fetched, because an open statement would keep later reads on its snapshot.
            return self._cursor.execute(statement, values).fetchall()
        except (apsw.Error, apsw.ConnectionClosedError) as error:
            raise StoreUnavailable from error

    async def in_snapshot(self, look: Callable[[Read], Found]) -> Found:
        """Run `look` on one snapshot in a thread, which costs several hundred microseconds, and return its result.

        Reads whose cost grows with a developer's data do not block the event loop this way.
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
        """Finish the current writes and the lookup, then close all connections."""
        await self.writer.close()
        self._lookups.shutdown()
        self.lookup.close()
        self.reader.close()

    async def read(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.rows(statement, values)

    async def find(self, read: PointRead[Model], key: str | bytes) -> Model | None:
        found = self.rows(read.one, (key,))
        return read.model(found[0]) if found else None

    async def look_up(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return await self.in_snapshot(lambda read: read(statement, values))

    async def in_lookup(self, work: Callable[[Transaction], Coroutine[Any, Any, Found]]) -> Found:
        def look(_: Read) -> Found:
            try:
                return finish(work(SqliteTransaction(self.lookup)))
            except (apsw.Error, apsw.ConnectionClosedError) as error:
                raise StoreUnavailable from error

        return await self.in_snapshot(look)

    async def change(self, statement: str, *values: Any, entry: AuditEntry | None = None) -> list[tuple[Any, ...]]:
        async def write(transaction: Transaction) -> list[tuple[Any, ...]]:
            found = await transaction.fetch(statement, *values)
            if found:
                await transaction.add_entry(entry)
            return found

        return await self.in_transaction(write)

    add = change

    async def in_transaction(self, work: Callable[[Transaction], Coroutine[Any, Any, Found]]) -> Found:
        return await self.writer.run(lambda connection: finish(work(SqliteTransaction(connection))))

    async def purge(self, purge: Purge, before: int, limit: int) -> int:
        # A write waits for the disk, so start one only if there are rows to erase.
        return len(await self.change(purge.sqlite, before, limit)) if self.rows(purge.find_any, (before,)) else 0


def _read(connection: apsw.Connection, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    try:
        return connection.execute(statement, values).fetchall()
    except (apsw.Error, apsw.ConnectionClosedError) as error:
        raise StoreUnavailable from error
