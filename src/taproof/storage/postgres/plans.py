"""Plans, and what is used of them, on PostgreSQL."""

from typing import Final

import asyncpg

from taproof.core.accounts import AuditEntry, Plan
from taproof.core.model import ProjectChanges
from taproof.storage.postgres.pool import PostgresPool
from taproof.storage.postgres.rights import HOLD_DEVELOPER, add_entry
from taproof.storage.queries import plans as queries

STOP_COLLECTING: Final = """
WITH held AS MATERIALIZED (
  SELECT id FROM projects WHERE developer_id = $1 AND collect_phone = 1 ORDER BY id FOR UPDATE
)
UPDATE projects p SET collect_phone = 0 FROM held h WHERE p.id = h.id"""


class PostgresPlans(queries.PlanQueries[PostgresPool]):
    """See `storage.protocol.PlanStorage`."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        async def update(connection: asyncpg.Connection) -> bool:
            # The developer before any project, as whoever sets `collect_phone` does.
            if not await connection.fetch(queries.UPDATE_PLAN, plan, developer_id):
                return False
            if plan == "free":
                await connection.execute(STOP_COLLECTING, developer_id)
            await add_entry(connection, entry)
            return True

        return False if "\0" in developer_id else await self._database.transact(update)


async def hold_plan(connection: asyncpg.Connection, developer_id: str, changes: ProjectChanges) -> None:
    """Hold the developer before changes that their plan must allow: the next statement sees the plan that counts."""
    if changes.collect_phone:
        await connection.execute(HOLD_DEVELOPER, developer_id)
