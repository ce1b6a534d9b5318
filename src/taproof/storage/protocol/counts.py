"""The interface of `store.counts`."""

from collections.abc import Sequence
from typing import Protocol

from taproof.core.counts import DailyCounts, DailyUsers


class CountStorage(Protocol):
    """Counts of sessions and of distinct users."""

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        """Return the counts of each project and day from `first_day` on. Days without counts are omitted."""

    async def read_daily_totals(self, developer_id: str, first_day: int) -> list[DailyCounts]:
        """Return the counts of each day over all projects of a developer, without distinct users or a `project_id`."""

    async def read_daily_users(self, developer_id: str, first_day: int) -> list[DailyUsers]:
        """Return distinct users per day over all projects of a developer, from `first_day` on."""

    async def purge_user_days(self, before_day: int, limit: int) -> int:
        """Erase at most `limit` users of days before `before_day`. Counts since any later day remain exact."""
