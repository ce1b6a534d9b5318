"""The audit log on SQLite."""

from collections import Counter

import apsw

from taproof.core.accounts import AuditEntry
from taproof.storage.queries import audit as queries
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.rights import add_entry


class SqliteAudit(queries.AuditQueries[SqliteDatabase]):
    """See `storage.protocol.AuditStorage`."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        await self._database.writer.run(lambda connection: add_entry(connection, entry))

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        if not self._database.rows(queries.FIND_OLD_ENTRIES, (before, 1)):
            return 0

        def write(connection: apsw.Connection) -> int:
            found = rows(connection, queries.FIND_OLD_ENTRIES, (before, limit))
            for developer_id, number in Counter(row[0] for row in found).items():
                connection.execute(queries.RECORD_AUDIT_PURGE, (developer_id, before, number, now))
            for key in found:
                connection.execute(queries.ERASE_AUDIT_ENTRY, key)
            return len(found)

        return await self._database.writer.run(write)
