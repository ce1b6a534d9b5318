"""Export from and import into PostgreSQL: reads a database in one snapshot, or fills it in one transaction.

Each uses its own connection and prepares no named statements, so that both also work behind PgBouncer.
"""

import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import asyncpg

from taproof.core.errors import StoreUnavailable, TaproofError
from taproof.storage.export.format import ANY, CHUNK, COUNT, SELECT, TABLES, NotEmpty, Row, check_count, wrong_line
from taproof.storage.postgres.connection import connect
from taproof.storage.postgres.partitions import SESSION_TABLES

_TABLES: Final = ", ".join(TABLES)
# A table can take minutes, so the service's timeouts must not apply.
_NO_HURRY: Final = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
_AWAY: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresError,
)
_COPY_LINE: Final = re.compile(r"COPY \w+, line (\d+)")


class PostgresSource:
    """A snapshot of a database, taken when it was opened."""

    def __init__(self, connection: asyncpg.Connection, chunk: int) -> None:
        self._connection = connection
        self._chunk = chunk

    async def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return await _count(self._connection, table)

    async def read(self, table: str) -> AsyncIterator[list[Row]]:
        """Yield all rows in chunks."""
        # Use a cursor in SQL: the driver's own cursor prepares a statement by name.
        await self._connection.execute(f"DECLARE rows NO SCROLL CURSOR FOR {SELECT[table]}")
        while chunk := await self._connection.fetch(f"FETCH {self._chunk} FROM rows"):
            yield [tuple(row) for row in chunk]
        await self._connection.execute("CLOSE rows")


class PostgresTarget:
    """An empty database, with the open transaction that fills it."""

    def __init__(self, connection: asyncpg.Connection, days: set[int]) -> None:
        self._connection = connection
        self._days = days

    async def insert(self, table: str, rows: Sequence[Row], lines: Sequence[int]) -> None:
        """Add rows. Raise ExportFileWrong with the line of a row that cannot be added."""
        if table == "sessions":
            await self._prepare({row[0] for row in rows})
        columns = [column.name for column in TABLES[table]]
        try:
            await self._connection.copy_records_to_table(table, records=rows, columns=columns, timeout=None)
        except asyncpg.IntegrityConstraintViolationError as error:
            found = _COPY_LINE.search(error.context or "")
            line = lines[int(found[1]) - 1] if found else lines[0]
            raise wrong_line(line, f"this row of {table} cannot be added ({error.args[0]})") from error

    async def _prepare(self, days: set[int]) -> None:
        for day in sorted(days - self._days):
            await self._connection.execute(
                f"CREATE TABLE sessions_{day:d} PARTITION OF sessions FOR VALUES IN ({day:d})"
            )
            self._days.add(day)

    async def commit(self, counts: Mapping[str, int]) -> None:
        """Commit all rows."""
        for table in TABLES:
            check_count(table, await _count(self._connection, table), counts)
        # Otherwise, the server would plan for empty tables until its next automatic ANALYZE.
        await self._connection.execute(f"ANALYZE {_TABLES}")
        await self._connection.execute("COMMIT")


@contextlib.asynccontextmanager
async def open_postgres_source(dsn: str, *, chunk: int = CHUNK) -> AsyncIterator[PostgresSource]:
    """Open a database to export. Writers are not blocked.

    Raises:
        StoreUnavailable: the database cannot be read; the sentence gives the reason.
    """
    async with _connected(dsn, "read") as connection:
        # The first read takes the snapshot. The lock prevents days from being dropped.
        await connection.execute(
            f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_NO_HURRY}; LOCK TABLE {_TABLES} IN ACCESS SHARE MODE"
        )
        yield PostgresSource(connection, chunk)


@contextlib.asynccontextmanager
async def open_postgres_target(dsn: str) -> AsyncIterator[PostgresTarget]:
    """Open a database with a current schema to fill it. Without a commit, everything is rolled back, even after a kill.

    Meanwhile, no other process can write to any table. Other writers wait, and then see the imported rows.

    Raises:
        NotEmpty: the database has rows.
        StoreUnavailable: the database cannot be written; the sentence gives the reason.
    """
    async with _connected(dsn, "written") as connection:
        await connection.execute(f"BEGIN; {_NO_HURRY}; SET LOCAL lock_timeout = '5s'")
        try:
            await connection.execute(f"LOCK TABLE {_TABLES} IN SHARE ROW EXCLUSIVE MODE")
        except asyncpg.LockNotAvailableError as error:
            raise StoreUnavailable(
                "Another process is writing to the database. Stop it, and import into a database that is not in use."
            ) from error
        for table in TABLES:
            if await connection.fetch(ANY[table]):
                raise NotEmpty("", table)
        days = {row[0] for row in await connection.fetch(SESSION_TABLES)}
        yield PostgresTarget(connection, days)


async def _count(connection: asyncpg.Connection, table: str) -> int:
    count: int = await connection.fetchval(COUNT[table])
    return count


@contextlib.asynccontextmanager
async def _connected(dsn: str, done: str) -> AsyncIterator[Any]:
    """Yield a connection. It is always closed at the end, and an open transaction is rolled back."""
    try:
        connection = await connect(dsn)
        try:
            yield connection
        finally:
            connection.terminate()
    except TaproofError:
        raise
    except _AWAY as error:
        # The driver quotes a URL that it cannot parse, which may contain a password.
        if isinstance(error, asyncpg.PostgresError):
            reason = " ".join(part for part in (f"{error.args[0]}.", error.hint) if part)
        else:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise StoreUnavailable(
            f"The database cannot be {done}: {reason} Nothing was changed. Check that the server is running, accepts "
            "this user, and has free disk space."
        ) from error
