"""Developers' plans and their usage."""

from typing import Final, NamedTuple

from taproof.contract.account import Plan
from taproof.core.accounts import AuditEntry
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.transaction import Transaction

UPDATE_PLAN: Final = "UPDATE developers SET plan = $1 WHERE id = $2 AND plan <> $1 RETURNING id"
FIND_COLLECTING: Final = "SELECT id FROM projects WHERE developer_id = $1 AND collect_phone = 1 ORDER BY id"
STOP_COLLECTING: Final = "UPDATE projects SET collect_phone = 0 WHERE developer_id = $1 AND collect_phone = 1"
STOP_COLLECTING_IN_PROJECT: Final = "UPDATE projects SET collect_phone = 0 WHERE id = $1"
_SPLIT: Final = "EXISTS (SELECT 1 FROM projects s WHERE s.creator_id = $1 AND s.developer_id <> $1)"
# A user counts once a day, so the sum has one row for each day of the month, regardless of the number of users. Erasing
# a deleted project moves its users from `daily_users` to `removed_usage`, so the sum stays the same.
READ_USED: Final = f"""
SELECT (SELECT COUNT(*) FROM projects p WHERE p.developer_id = $1),
  (SELECT COALESCE(SUM(u.unique_users), 0) FROM daily_users u
    WHERE u.developer_id = $1 AND u.day >= $2 AND NOT {_SPLIT})
  + (SELECT COALESCE(SUM(c.unique_users), 0) FROM projects p JOIN daily_counts c ON c.project_id = p.id
    WHERE p.developer_id = $1 AND c.day >= $2 AND (p.creator_id <> $1 OR {_SPLIT}))
  + (SELECT COALESCE(SUM(r.confirmed), 0) FROM removed_usage r WHERE r.developer_id = $1 AND r.day >= $2)"""
"""A user counts once a day across the projects that the developer created, and once in each other project. If a created
project is on another plan, the user counts once in each project."""
REMEMBER_USAGE: Final = """
INSERT INTO removed_usage (developer_id, day, confirmed) VALUES ($1, $2, 1)
ON CONFLICT (developer_id, day) DO UPDATE SET confirmed = removed_usage.confirmed + excluded.confirmed"""
PURGE_REMOVED_USAGE: Final = Purge("removed_usage", "developer_id, day", "day < $1")


class Used(NamedTuple):
    """The usage of a developer's plan: the number of projects, and of sign-ins confirmed since a given day.

    A user counts once a day, even if they sign in several times or to several projects of the developer.
    """

    projects: int
    sign_ins: int


class PlanQueries(Queries):
    """Developers' plans and their usage."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        """Change a developer's plan; False if there is no such developer, or if they are already on this plan.

        With "free", all their projects stop collecting phone numbers, and no concurrent change can turn it on again.
        """

        async def update(transaction: Transaction) -> bool:
            # Lock the developer before any project, as every change of `collect_phone` does.
            if not await transaction.fetch(UPDATE_PLAN, plan, developer_id):
                return False
            if plan == "free":
                await transaction.lock(FIND_COLLECTING, developer_id)
                await transaction.fetch(STOP_COLLECTING, developer_id)
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(update)

    async def read_used(self, developer_id: str, first_day: int) -> Used:
        """Return a developer's usage since `first_day`, by session day, including users of deleted projects."""
        found = await self._database.read(READ_USED, developer_id, first_day)
        return Used(*found[0]) if found else Used(0, 0)

    async def purge_removed_usage(self, before_day: int, limit: int) -> int:
        """Erase deleted projects' usage before `before_day`; return the number of erased days, at most `limit`."""
        return await self._database.purge(PURGE_REMOVED_USAGE, before_day, limit)
