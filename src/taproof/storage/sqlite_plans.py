"""Plans, and what is used of them, on SQLite."""

import apsw

from taproof.core.accounts import AuditEntry, Plan
from taproof.storage import plan_sql
from taproof.storage.group_commit import rows
from taproof.storage.plan_protocol import Used
from taproof.storage.sqlite_access import SqliteAccess, add_entry


class SqlitePlans(SqliteAccess):
    """The part of the store that knows plans. See `storage.plan_protocol.PlanStorage`."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        def write(connection: apsw.Connection) -> bool:
            if not rows(connection, plan_sql.UPDATE_PLAN, (plan, developer_id)):
                return False
            if plan == "free":
                connection.execute(plan_sql.STOP_COLLECTING, (developer_id,))
            add_entry(connection, entry)
            return True

        return bool(await self._writer.run(write))

    async def read_used(self, developer_id: str, first_day: int) -> Used:
        return Used(*self._read(plan_sql.READ_USED, (developer_id, first_day))[0])

    async def purge_removed_usage(self, before_day: int, limit: int) -> int:
        if not self._read(plan_sql.ANY_REMOVED_USAGE_BEFORE, (before_day,)):
            return 0
        return len(await self._write(plan_sql.PURGE_REMOVED_USAGE, (before_day, limit)))
