"""A SQLite store's two connections: one that reads on the event loop, one behind the group commit."""

from typing import Any

import apsw

from taproof.core.errors import StoreUnavailable
from taproof.storage.group_commit import GroupCommit, rows
from taproof.storage.tally import Tally


class SqliteAccess:
    """Reads and writes. The parts of the store are built on it: `sqlite_deliveries.py`, then `sqlite.py`."""

    def __init__(self, reader: apsw.Connection, writer: apsw.Connection) -> None:
        self._reader = reader
        self._tally = Tally()
        self._writer = GroupCommit(writer, self._tally.clear, self._tally.write)

    def _read(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        try:
            return self._reader.execute(statement, values).fetchall()
        except (apsw.Error, apsw.ConnectionClosedError) as error:
            raise StoreUnavailable from error

    async def _write(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = await self._writer.run(lambda connection: rows(connection, statement, values))
        return found
