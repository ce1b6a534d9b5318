"""Counts on PostgreSQL."""

from collections.abc import Sequence
from typing import Final

from taproof.core.model import DailyCounts
from taproof.storage.postgres.pool import PostgresPool, storable
from taproof.storage.queries import counts as queries

READ_DAILY_COUNTS: Final = """
SELECT project_id, day, requested, opened, confirmed, used, cancelled, expired, unique_users, latest_users, reported
FROM daily_counts WHERE project_id = ANY ($1::TEXT[]) AND day >= $2 ORDER BY project_id, day"""


class PostgresCounts(queries.CountQueries[PostgresPool]):
    """See `storage.protocol.CountStorage`."""

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        rows = await self._database.fetch(READ_DAILY_COUNTS, storable(project_ids), first_day)
        return [DailyCounts(*row) for row in rows]
