"""The erasure of one user on SQLite."""

from collections.abc import Iterable

from taproof.storage.protocol import OpenedDay
from taproof.storage.queries import erasure as queries
from taproof.storage.queries.transaction import Transaction
from taproof.storage.sqlite.database import SqliteDatabase


class SqliteErasure(queries.ErasureQueries[SqliteDatabase]):
    """See `storage.protocol.ErasureStorage`."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database, _erase_sessions)

    async def list_opened_days(self, developer_id: str | None, after: OpenedDay | None, limit: int) -> list[OpenedDay]:
        oldest = self._database.rows(queries.OLDEST_DAY)[0][0] or 0
        found = await self._database.read(*queries.opened_days(developer_id, after, oldest, limit))
        return [OpenedDay(*row) for row in found]


async def _erase_sessions(transaction: Transaction, keys: Iterable[tuple[int, bytes]], messenger_id: str) -> int:
    erased = 0
    for key in keys:
        for session in await transaction.fetch(queries.ERASE_SESSION, *key, messenger_id):
            await transaction.fetch(queries.ERASE_EVENTS_OF_SESSION, *session)
            await transaction.fetch(queries.ERASE_PHONE_REQUEST, *key)
            erased += 1
    return erased
