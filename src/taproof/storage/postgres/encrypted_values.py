"""The encrypted values of a PostgreSQL database."""

import asyncio
from collections.abc import Sequence
from typing import Final

from taproof.storage.postgres.database import PostgresDatabase
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.queries import encrypted_values as queries
from taproof.storage.queries.encrypted_values import EncryptedKind, EncryptedPage, Replacement, RowKey

_AT_ONCE: Final = 4
"""The number of values replaced concurrently, each in its own transaction. The other connections remain free."""
LIST_PHONES: Final = """
SELECT day, token_hash, id, encrypted_phone FROM sessions
WHERE day = $1 AND token_hash > $2 ORDER BY token_hash LIMIT $3"""
"""Lists one day at a time, so that only one partition is planned for and read. Its key begins with the hash."""


class PostgresEncryptedValues(queries.EncryptedValueQueries):
    """See `storage.queries.encrypted_values.EncryptedValueQueries`."""

    _database: PostgresDatabase

    def __init__(self, database: PostgresDatabase, partitions: Partitions) -> None:
        super().__init__(database)
        self._partitions = partitions

    async def list_encrypted_values(self, kind: EncryptedKind, after: RowKey | None, limit: int) -> EncryptedPage:
        if kind == "phone":
            return await self._list_phones(after or queries.ENCRYPTED_COLUMNS[kind].before_all, limit)
        return await super().list_encrypted_values(kind, after, limit)

    async def _list_phones(self, start: RowKey, limit: int) -> EncryptedPage:
        """Return a page with values of one day only."""
        first, token_hash = start
        days = sorted(day for day in await self._partitions.days() if day >= int(first))
        if not days:
            return EncryptedPage([], None)
        found = await self._database.fetch(LIST_PHONES, days[0], token_hash if days[0] == first else b"", limit)
        page = queries.encrypted_page(found, limit)
        return page._replace(after=(days[1], b"")) if page.after is None and len(days) > 1 else page

    async def replace_encrypted_values(self, kind: EncryptedKind, replacements: Sequence[Replacement]) -> int:
        # Each transaction locks only one row. It may have to wait, but it cannot be part of a deadlock.
        slots = asyncio.Semaphore(_AT_ONCE)

        async def replace(each: Replacement) -> int:
            async with slots:
                return len(await self._database.fetch(queries.REPLACE_ENCRYPTED[kind], each.new, *each.key, each.old))

        return sum(await asyncio.gather(*map(replace, replacements)))
