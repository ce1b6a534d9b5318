"""The audit log on PostgreSQL."""

from collections import Counter
from typing import Final

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.storage.postgres.pool import PostgresPool
from taproof.storage.postgres.rights import add_entry
from taproof.storage.queries import audit as queries

FIND_OLD_ENTRIES: Final = f"{queries.FIND_OLD_ENTRIES} FOR UPDATE SKIP LOCKED"


class PostgresAudit(queries.AuditQueries[PostgresPool]):
    """See `storage.protocol.AuditStorage`."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        await self._database.transact(lambda connection: add_entry(connection, entry))

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        async def purge(connection: asyncpg.Connection) -> int:
            found = await connection.fetch(FIND_OLD_ENTRIES, before, limit)
            # By developer, as the locks of `audit_purges` are taken; the next statement sees what this one wrote.
            for developer_id, number in sorted(Counter(row[0] for row in found).items()):
                await connection.execute(queries.RECORD_AUDIT_PURGE, developer_id, before, number, now)
            await connection.executemany(queries.ERASE_AUDIT_ENTRY, [tuple(row) for row in found])
            return len(found)

        return await self._database.transact(purge)
