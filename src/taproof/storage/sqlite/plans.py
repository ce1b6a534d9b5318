"""Plans, and what is used of them, on SQLite."""

import apsw

from taproof.core.accounts import AuditEntry, Plan
from taproof.storage.plan_protocol import Used
from taproof.storage.queries import plans as plan_queries
from taproof.storage.sqlite.access import SqliteAccess, add_entry
from taproof.storage.sqlite.group_commit import rows


class SqlitePlans(SqliteAccess):
    """The part of the store that knows plans. See `storage.plan_protocol.PlanStorage`."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        def write(connection: apsw.Connection) -> bool:
            if not rows(connection, plan_queries.UPDATE_PLAN, (plan, developer_id)):
                return False
            if plan == "free":
                connection.execute(plan_queries.STOP_COLLECTING, (developer_id,))
            add_entry(connection, entry)
            return True

        return bool(await self._writer.run(write))

    async def read_used(self, developer_id: str, first_day: int) -> Used:
        return Used(*self._read(plan_queries.READ_USED, (developer_id, first_day))[0])

    async def purge_removed_usage(self, before_day: int, limit: int) -> int:
        if not self._read(plan_queries.ANY_REMOVED_USAGE_BEFORE, (before_day,)):
            return 0
        return len(await self._write(plan_queries.PURGE_REMOVED_USAGE, (before_day, limit)))
