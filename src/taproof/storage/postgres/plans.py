"""Plans, and what is used of them, on PostgreSQL."""

import asyncpg

from taproof.core.accounts import AuditEntry, Plan
from taproof.core.model import ProjectChanges
from taproof.storage.plan_protocol import Used
from taproof.storage.postgres import developer_sql
from taproof.storage.postgres.developers import PostgresAccounts, add_entry
from taproof.storage.queries import plans as plan_queries


class PostgresPlans(PostgresAccounts):
    """The part of the store that knows plans. See `storage.plan_protocol.PlanStorage`."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        async def update(connection: asyncpg.Connection) -> bool:
            # The developer before any project, as whoever sets `collect_phone` does.
            if not await connection.fetch(plan_queries.UPDATE_PLAN, plan, developer_id):
                return False
            if plan == "free":
                await connection.execute(plan_queries.POSTGRES_STOP_COLLECTING, developer_id)
            await add_entry(connection, entry)
            return True

        return False if "\0" in developer_id else await self._pool.transact(update)

    async def read_used(self, developer_id: str, first_day: int) -> Used:
        found = await self._pool.find(plan_queries.READ_USED, developer_id, first_day)
        return Used(*found[0]) if found else Used(0, 0)

    async def purge_removed_usage(self, before_day: int, limit: int) -> int:
        return len(await self._pool.fetch(plan_queries.POSTGRES_PURGE_REMOVED_USAGE, before_day, limit))


async def hold_plan(connection: asyncpg.Connection, developer_id: str, changes: ProjectChanges) -> None:
    """Hold the developer before changes that their plan must allow: the next statement sees the plan that counts."""
    if changes.collect_phone:
        await connection.execute(developer_sql.HOLD_DEVELOPER, developer_id)
