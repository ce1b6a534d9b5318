"""Creates one partition of sessions per day in advance, and drops partitions as a whole. Neither blocks polls."""

from collections.abc import Set as AbstractSet
from typing import Final

import asyncpg

from taproof.core.errors import StoreUnavailable
from taproof.storage.postgres.database import PostgresDatabase

SESSION_TABLES: Final = """
SELECT substring(c.relname FROM 10)::INTEGER AS day, i.inhdetachpending
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'sessions'::REGCLASS
WHERE c.relnamespace = (SELECT p.relnamespace FROM pg_class p WHERE p.oid = 'sessions'::REGCLASS)
  AND c.relkind = 'r' AND c.relname ~ '^sessions_[0-9]{1,9}$'
ORDER BY i.inhdetachpending DESC NULLS LAST, day"""
TABLE_SIZE: Final = "SELECT reltuples FROM pg_class WHERE oid = to_regclass($1)"
LOCK_SESSIONS: Final = "LOCK TABLE ONLY sessions IN SHARE UPDATE EXCLUSIVE MODE"
PATIENCE: Final = 5.0
"""Seconds for which dropping a day's partition waits for statements that still use it. The next sweep tries again."""
_COUNTED: Final = 10_000


class Partitions:
    """Creates and drops the partitions of `sessions`."""

    def __init__(self, database: PostgresDatabase, *, patience: float = PATIENCE) -> None:
        self._database = database
        self._patience = patience

    async def prepare(self, days: AbstractSet[int]) -> None:
        """Create the missing partitions of these days. Two nodes may do so concurrently."""
        if not days - await self.days():
            return

        async def make(connection: asyncpg.Connection) -> None:
            # Take this lock first, and only on the parent: a vacuum may lock a day's partition for hours. The lock
            # allows reads and writes. A concurrent call that creates or drops a partition waits for this lock, and
            # holds no lock that blocks this call.
            await connection.execute(LOCK_SESSIONS)
            present = {row[0] for row in await connection.fetch(SESSION_TABLES)}
            for day in sorted(days - present):
                table = f"sessions_{day:d}"
                await connection.execute(f"CREATE TABLE {table} (LIKE sessions INCLUDING ALL)")
                await connection.execute(f"ALTER TABLE sessions ATTACH PARTITION {table} FOR VALUES IN ({day:d})")

        await self._database.transact(make)

    async def days(self) -> set[int]:
        """Return the days that have a partition."""
        return {row[0] for row in await self._database.fetch(SESSION_TABLES) if row[1] is False}

    async def drop(self, before_day: int, limit: int) -> int:
        """Drop partitions of days before `before_day` until `limit` or more sessions are gone; return their number."""
        erased = 0
        for day, is_pending in await self._database.fetch(SESSION_TABLES):
            if day >= before_day or erased >= limit:
                continue
            if is_pending is not None and not await self._detach(day, finalize=is_pending):
                continue
            erased += await self._drop(day)
        return erased

    async def _detach(self, day: int, *, finalize: bool) -> bool:
        """Detach a day from `sessions`; False if a statement still uses it, or if another node is detaching it.

        After a kill between the two steps of DETACH, the partition stays pending; FINALIZE completes it.
        """
        how = "FINALIZE" if finalize else "CONCURRENTLY"

        async def detach(connection: asyncpg.Connection) -> None:
            # Do not run this in a transaction: it uses two transactions, so that it does not block readers of other
            # days.
            statement = f"ALTER TABLE sessions DETACH PARTITION sessions_{day:d} {how}"
            await connection.execute(statement, timeout=self._patience)

        try:
            await self._database.run(detach)
        except (asyncpg.ObjectNotInPrerequisiteStateError, asyncpg.UndefinedTableError):
            return False
        except StoreUnavailable as error:
            if isinstance(error.__cause__, (TimeoutError, asyncpg.QueryCanceledError)):
                return False
            raise
        return True

    async def _drop(self, day: int) -> int:
        """Drop the table of a detached day; return the number of its sessions, at least 1."""
        table = f"sessions_{day:d}"

        async def drop(connection: asyncpg.Connection) -> int:
            # Locked first, so that another node cannot drop it between the next statements.
            await connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE", timeout=self._patience)
            erased = await connection.fetchval(TABLE_SIZE, table)
            if erased < _COUNTED:  # Too few for good statistics, and few enough to count.
                erased = await connection.fetchval(f"SELECT COUNT(*) FROM {table}")
            await connection.execute(f"DROP TABLE {table}")
            return max(1, int(erased))

        try:
            return await self._database.transact(drop)
        except asyncpg.UndefinedTableError:  # Another node has dropped it.
            return 0
