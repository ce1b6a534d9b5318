"""Plans, and what is used of them, on SQLite."""

import apsw

from taproof.core.accounts import AuditEntry, Plan
from taproof.storage.queries import plans as queries
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.rights import add_entry


class SqlitePlans(queries.PlanQueries[SqliteDatabase]):
    """See `storage.protocol.PlanStorage`."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        def write(connection: apsw.Connection) -> bool:
            if not rows(connection, queries.UPDATE_PLAN, (plan, developer_id)):
                return False
            if plan == "free":
                connection.execute(queries.STOP_COLLECTING, (developer_id,))
            add_entry(connection, entry)
            return True

        return await self._database.writer.run(write)
