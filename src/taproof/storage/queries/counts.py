"""Counts of sessions and of distinct users."""

from collections.abc import Sequence
from typing import Final

from taproof.core.counts import DailyCounts, DailyUsers
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.plans import REMEMBER_USAGE
from taproof.storage.queries.transaction import Transaction

COUNT: Final = """
INSERT INTO daily_counts (project_id, day, requested, opened, confirmed, used, cancelled)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (project_id, day) DO UPDATE SET requested = daily_counts.requested + excluded.requested,
  opened = daily_counts.opened + excluded.opened, confirmed = daily_counts.confirmed + excluded.confirmed,
  used = daily_counts.used + excluded.used, cancelled = daily_counts.cancelled + excluded.cancelled"""
COUNT_EXPIRED: Final = "UPDATE daily_counts SET expired = expired + $1 WHERE project_id = $2 AND day = $3"
COUNT_REPORTED: Final = """
INSERT INTO daily_counts (project_id, day, reported, cancelled) VALUES ($1, $2, 1, $3)
ON CONFLICT (project_id, day) DO UPDATE SET reported = daily_counts.reported + excluded.reported,
  cancelled = daily_counts.cancelled + excluded.cancelled"""
COUNT_PROJECT_USERS: Final = """
UPDATE daily_counts SET unique_users = unique_users + $1, latest_users = latest_users + $2
WHERE project_id = $3 AND day = $4"""
COUNT_DEVELOPER_USERS: Final = """
INSERT INTO daily_users (developer_id, day, unique_users, latest_users) VALUES ($1, $2, $3, $4)
ON CONFLICT (developer_id, day) DO UPDATE SET unique_users = daily_users.unique_users + excluded.unique_users,
  latest_users = daily_users.latest_users + excluded.latest_users"""
READ_USER_DAYS: Final = """
SELECT MAX(CASE WHEN project_id = $1 THEN day END), MAX(day),
  MAX(CASE WHEN project_id = $1 AND day = $2 THEN 1 ELSE 0 END), MAX(CASE WHEN day = $2 THEN 1 ELSE 0 END)
FROM user_days WHERE developer_id = $3 AND messenger_id = $4"""
ADD_NEWEST_USER_DAY: Final = """
INSERT INTO user_days (developer_id, messenger_id, day, project_id, messenger_name, messenger_username, first_at,
  last_at, sign_ins)
SELECT $1, $2, $3, $4, $5, $6, COALESCE(MIN(u.first_at), $7), $7, COALESCE(SUM(u.sign_ins), 0) + 1
FROM user_days u WHERE u.developer_id = $1 AND u.messenger_id = $2 AND u.project_id = $4 AND u.last_at IS NOT NULL"""
ADD_OLDER_USER_DAY: Final = """
INSERT INTO user_days (developer_id, messenger_id, day, project_id) VALUES ($1, $2, $3, $4)"""
SIGN_IN_AGAIN: Final = """
UPDATE user_days SET messenger_name = $1, messenger_username = $2, last_at = $3, sign_ins = sign_ins + 1
WHERE developer_id = $4 AND messenger_id = $5 AND day = $6 AND project_id = $7"""
NO_LONGER_NEWEST: Final = """
UPDATE user_days SET messenger_name = NULL, messenger_username = NULL, first_at = NULL, last_at = NULL, sign_ins = NULL
WHERE developer_id = $1 AND messenger_id = $2 AND day = $3 AND project_id = $4"""
NEXT_USER_DAYS: Final = "SELECT messenger_id, day FROM user_days WHERE project_id = $1 LIMIT $2"
ERASE_USER_DAY: Final = """
DELETE FROM user_days WHERE developer_id = $1 AND messenger_id = $2 AND day = $3 AND project_id = $4"""
ERASE_DAILY_COUNTS: Final = "DELETE FROM daily_counts WHERE project_id = $1"
READ_DAILY_COUNTS: Final = """
SELECT project_id, day, requested, opened, confirmed, used, cancelled, expired, unique_users, latest_users, reported
FROM daily_counts WHERE project_id = $1 AND day >= $2 ORDER BY day"""
READ_DAILY_TOTALS: Final = """
SELECT c.day, SUM(c.requested), SUM(c.opened), SUM(c.confirmed), SUM(c.used), SUM(c.cancelled), SUM(c.expired), 0, 0,
  SUM(c.reported)
FROM project_members m JOIN daily_counts c ON c.project_id = m.project_id WHERE m.developer_id = $1 AND c.day >= $2
GROUP BY c.day ORDER BY c.day"""
_SPLIT: Final = """EXISTS (SELECT 1 FROM projects s WHERE s.creator_id = $1 AND NOT EXISTS (
    SELECT 1 FROM project_members o WHERE o.project_id = s.id AND o.developer_id = $1))"""
READ_DAILY_USERS: Final = f"""
SELECT x.day, SUM(x.unique_users), SUM(x.latest_users) FROM (
  SELECT u.day, u.unique_users, u.latest_users FROM daily_users u
  WHERE u.developer_id = $1 AND u.day >= $2 AND NOT {_SPLIT}
  UNION ALL
  SELECT c.day, c.unique_users, c.latest_users FROM project_members m JOIN projects p ON p.id = m.project_id
  JOIN daily_counts c ON c.project_id = p.id
  WHERE m.developer_id = $1 AND c.day >= $2 AND (p.creator_id <> $1 OR {_SPLIT})) AS x
GROUP BY x.day ORDER BY x.day"""
"""A user counts once across the projects that the developer created, and once in each other project. If the developer
has left a created project, the user counts once in each project."""
PURGE_USER_DAYS: Final = Purge("user_days", "developer_id, messenger_id, day, project_id", "day < $1")


class CountQueries(Queries):
    """Counts of sessions and of distinct users."""

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        """Return the counts of each project and day from `first_day` on. Days without counts are omitted."""
        return [
            DailyCounts(*row)
            for project_id in project_ids
            for row in await self._database.read(READ_DAILY_COUNTS, project_id, first_day)
        ]

    async def read_daily_totals(self, developer_id: str, first_day: int) -> list[DailyCounts]:
        """Return the counts of each day over all projects of a developer, without distinct users or a `project_id`."""
        found = await self._database.look_up(READ_DAILY_TOTALS, developer_id, first_day)
        return [DailyCounts("", *row) for row in found]

    async def read_daily_users(self, developer_id: str, first_day: int) -> list[DailyUsers]:
        """Return distinct users per day over all projects of a developer, from `first_day` on."""
        return [DailyUsers(*row) for row in await self._database.look_up(READ_DAILY_USERS, developer_id, first_day)]

    async def purge_user_days(self, before_day: int, limit: int) -> int:
        """Erase at most `limit` users of days before `before_day`. Counts since any later day remain exact."""
        return await self._database.purge(PURGE_USER_DAYS, before_day, limit)


async def remove_user_days(transaction: Transaction, creator_id: str, project_id: str, plan_id: str, limit: int) -> int:
    """Remove at most `limit` person-days of a deleted project from its creator's counts; return their number.

    They still count towards the usage of the plan of the developer `plan_id`.
    """
    found = await transaction.fetch(NEXT_USER_DAYS, project_id, limit)
    for messenger_id, day in found:
        await transaction.fetch(ERASE_USER_DAY, creator_id, messenger_id, day, project_id)
        _, last, _, in_developer = (await transaction.fetch(READ_USER_DAYS, project_id, day, creator_id, messenger_id))[
            0
        ]
        if in_developer:
            continue
        was_latest = last is None or last < day
        await transaction.fetch(COUNT_DEVELOPER_USERS, creator_id, day, -1, -int(was_latest))
        await transaction.fetch(REMEMBER_USAGE, plan_id, day)
        if was_latest and last is not None:
            await transaction.fetch(COUNT_DEVELOPER_USERS, creator_id, last, 0, 1)
    return len(found)
