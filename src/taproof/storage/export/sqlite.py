"""Export from and import into SQLite: reads a file in one snapshot, or fills it in one exclusive transaction."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import apsw

from taproof.core.errors import StoreUnavailable
from taproof.storage.export.format import (
    ANY,
    CHUNK,
    COUNT,
    INSERT,
    SELECT,
    TABLES,
    NotEmpty,
    Row,
    check_count,
    wrong_line,
)
from taproof.storage.sqlite.group_commit import rows as all_rows

_PATIENCE: Final = 2_000
"""Milliseconds to wait for another process's lock."""
_CACHE: Final = "PRAGMA cache_size = -65536"
_INDEXES: Final = """
SELECT name, sql FROM sqlite_schema
WHERE type = 'index' AND sql IS NOT NULL AND sql NOT LIKE 'CREATE UNIQUE%'"""
"""Finds the indexes that only improve speed. Unique indexes are kept, because they must refuse duplicate rows during an
import."""


class SqliteSource:
    """A snapshot of a SQLite file, taken when it was opened."""

    def __init__(self, connection: apsw.Connection, chunk: int) -> None:
        self._connection = connection
        self._chunk = chunk

    async def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return _count(self._connection, table)

    async def read(self, table: str) -> AsyncIterator[list[Row]]:
        """Yield all rows in chunks, in the order of the primary key, so that equal content results in an equal file."""
        cursor = self._connection.execute(f"{SELECT[table]} NOT INDEXED")
        while chunk := list(itertools.islice(cursor, self._chunk)):
            yield chunk


class SqliteTarget:
    """An empty SQLite file, with the open transaction that fills it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        # Building an index once at the end takes a fraction of the time of updating it for each row.
        self._indexes = all_rows(connection, _INDEXES)
        for name, _ in self._indexes:
            connection.execute(f"DROP INDEX {name}")

    async def insert(self, table: str, rows: Sequence[Row], lines: Sequence[int]) -> None:
        """Add rows. Raise ExportFileWrong with the line of a row that cannot be added."""
        taken = 0

        def each() -> Iterator[Row]:
            nonlocal taken
            for row in rows:
                taken += 1
                yield row

        parameters = ", ".join("?" * len(TABLES[table]))
        try:
            self._connection.executemany(f"{INSERT[table]} VALUES ({parameters})", each())
        except (apsw.ConstraintError, apsw.MismatchError) as error:
            raise wrong_line(lines[taken - 1], f"this row of {table} cannot be added ({error})") from error

    async def commit(self, counts: Mapping[str, int]) -> None:
        """Commit all rows."""
        for table in TABLES:
            check_count(table, _count(self._connection, table), counts)
        for _, statement in self._indexes:
            self._connection.execute(statement)
        self._connection.execute("COMMIT")


@contextlib.asynccontextmanager
async def open_sqlite_source(path: Path, *, chunk: int = CHUNK) -> AsyncIterator[SqliteSource]:
    """Open a file to export. Writers are not blocked.

    Raises:
        StoreUnavailable: the file cannot be read; the sentence gives the reason.
    """
    with _sentences(path, "read"), contextlib.closing(_connect(path)) as connection:
        connection.execute("PRAGMA query_only = 1; BEGIN").fetchall()
        _count(connection, "metadata")  # The first read takes the snapshot.
        yield SqliteSource(connection, chunk)


@contextlib.asynccontextmanager
async def open_sqlite_target(path: Path) -> AsyncIterator[SqliteTarget]:
    """Open a file with a current schema to fill it. Without a commit, everything is rolled back, even after a kill.

    Meanwhile, the file is not in WAL mode: each page is written only once, and other processes cannot read the file. No
    other process may have the file open at the start. Opening the store turns WAL mode on again.

    Raises:
        NotEmpty: the file has rows.
        StoreUnavailable: the file cannot be written, or another process has it open; the sentence gives the reason.
    """
    with _sentences(path, "written"), contextlib.closing(_connect(path)) as connection:
        connection.execute(f"{_CACHE}; PRAGMA synchronous = FULL").fetchall()
        try:
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
            connection.execute("BEGIN EXCLUSIVE")
        except (apsw.BusyError, apsw.LockedError) as error:
            raise StoreUnavailable(
                f"Another process has the database {path} open. Stop it, and import into a database that is not in use."
            ) from error
        try:
            for table in TABLES:
                if all_rows(connection, ANY[table]):
                    raise NotEmpty(f"{path} ", table)
            yield SqliteTarget(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            with contextlib.suppress(apsw.Error):
                connection.execute("PRAGMA journal_mode = WAL").fetchall()


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(_PATIENCE)
    return connection


def _count(connection: apsw.Connection, table: str) -> int:
    count: int = all_rows(connection, COUNT[table])[0][0]
    return count


@contextlib.contextmanager
def _sentences(path: Path, done: str) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise StoreUnavailable(
            f"The database {path} cannot be {done}: {error}. Check that this user owns it, that the disk "
            "has space, and that its schema is current: taproof migrate"
        ) from error
