"""A SQLite store's three connections.

One reads on the event loop, one is behind the group commit, and one looks up in a thread what may take milliseconds.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.errors import AccessDenied, StoreUnavailable
from taproof.core.model import DeveloperSignIn
from taproof.storage.queries import developers as developer_queries
from taproof.storage.rows import access_ended, entry_values
from taproof.storage.sqlite.counters import Counters
from taproof.storage.sqlite.group_commit import GroupCommit, rows

Found = TypeVar("Found")
Read = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
"""Runs a statement with its values and returns the rows."""


class SqliteAccess:
    """Reads and writes. The parts of the store are built on it, `sqlite.py` last."""

    def __init__(self, reader: apsw.Connection, writer: apsw.Connection, lookup: apsw.Connection) -> None:
        self._reader = reader
        self._lookup = lookup
        self._lookups = ThreadPoolExecutor(1, thread_name_prefix="taproof-lookup")
        self._counters = Counters()
        self._writer = GroupCommit(writer, self._counters.clear, self._counters.write)

    def _read(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return _rows(self._reader, statement, values)

    async def _look_up(self, look: Callable[[Read], Found]) -> Found:
        """Return what `look` finds in one snapshot of the database, in a thread.

        This is for reads whose cost grows with what a developer has: SQLite walks without holding the event loop. A
        point read stays on the loop, where it takes 10 µs; a thread costs several hundred.
        """

        def read(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
            return _rows(self._lookup, statement, values)

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

    def _close_readers(self) -> None:
        self._lookups.shutdown()
        self._lookup.close()
        self._reader.close()

    async def _write(
        self, statement: str, values: tuple[Any, ...], entry: AuditEntry | None = None
    ) -> list[tuple[Any, ...]]:
        """Run a statement that returns what it changed; if that is anything, `entry` goes into the audit log."""

        def write(connection: apsw.Connection) -> list[tuple[Any, ...]]:
            found = rows(connection, statement, values)
            if found:
                add_entry(connection, entry)
            return found

        found: list[tuple[Any, ...]] = await self._writer.run(write)
        return found


def _rows(connection: apsw.Connection, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    try:
        return connection.execute(statement, values).fetchall()
    except (apsw.Error, apsw.ConnectionClosedError) as error:
        raise StoreUnavailable from error


def add_entry(connection: apsw.Connection, entry: AuditEntry | None) -> None:
    """Add an entry to the audit log, in the transaction of the change that it tells of.

    Raises:
        InvalidAccessToken, SignedOut: the credential that acts has ended, so the transaction must not be committed.
    """
    if entry is not None and not rows(connection, developer_queries.ADD_AUDIT_ENTRY, entry_values(entry)):
        raise access_ended(entry)


def require_sign_in(
    connection: apsw.Connection, sign_in: DeveloperSignIn | None, developer_id: str | None = None
) -> None:
    """Refuse what comes of a sign-in that was reported, or that does not sign in the developer who is named.

    Raises:
        AccessDenied: it was reported, is not there any more, or its account signs that developer in no more.
    """
    if sign_in is None:
        return
    if not rows(connection, developer_queries.SIGN_IN_STANDS, sign_in.key):
        raise AccessDenied
    if developer_id is not None and not rows(
        connection, developer_queries.SIGN_IN_IS_OF_DEVELOPER, (*sign_in.key, developer_id)
    ):
        raise AccessDenied
