"""Statistics of a developer's projects, read from counters only (contract.md, Developer endpoints, Analytics).

Every number counts sessions *created* in the window, by UTC day of creation. A funnel thus never shows more confirmed
sessions than requested ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from taproof.contract.analytics import AnalyticsFunnel
from taproof.contract.fields import described
from taproof.core.accounts import Developer
from taproof.core.clock import Clock, day_number
from taproof.core.counts import DailyCounts, DailyUsers
from taproof.service.project_access import read_in_projects
from taproof.storage.protocol import Storage

Window = Literal[7, 30, 90]
COUNTS: Final = tuple(described(AnalyticsFunnel))
"""The names of the counts. Sessions that a user reported ("This wasn't me") also count as cancelled or confirmed."""


@dataclass(frozen=True, slots=True)
class Analytics:
    """The counts of the sessions created in a window of UTC days that ends today.

    `daily` contains every day of the window; `conversion_rate` is a percentage with one decimal. `before` has the
    totals of the window before it, of the same length.
    """

    unique_users: int
    totals: dict[str, int]
    daily: list["Day"]
    projects: list[tuple[str, str]]
    before: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))

    @property
    def conversion_rate(self) -> float:
        """Confirmed sessions per hundred requested; 0 if none was requested."""
        return conversion_rate(self.totals)


def conversion_rate(totals: dict[str, int]) -> float:
    """Return the confirmed sessions per hundred requested, with one decimal; 0 if none was requested."""
    requested = totals["requested"]
    return round(100 * totals["confirmed"] / requested, 1) if requested else 0.0


@dataclass(slots=True)
class Day:
    """One UTC day (`day` counts from 1970-01-01)."""

    day: int
    unique_users: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))


class AnalyticsReader:
    """Reads the counters."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    async def read_analytics(self, developer: Developer, *, days: Window, project_id: str | None) -> Analytics:
        """Return the analytics of all projects of a developer, or of one project.

        Raises:
            InvalidRequest: the project id is malformed.
            ProjectNotFound: this developer has no such project.
        """

        async def read(project_ids: list[str]) -> Analytics:
            return await self._read(developer, days, None if project_id is None else project_ids)

        return await read_in_projects(self._storage, developer, project_id, read)

    async def _read(self, developer: Developer, days: Window, project_ids: list[str] | None) -> Analytics:
        today = day_number(self._clock())
        first_day = today - days + 1
        if project_ids is None:
            rows = await self._storage.counts.read_daily_totals(developer.id, first_day - days)
        else:
            rows = await self._storage.counts.read_daily_counts(project_ids, first_day - days)
        before = {name: sum(getattr(row, name) for row in rows if row.day < first_day) for name in COUNTS}
        rows = [row for row in rows if row.day >= first_day]
        daily = {day: Day(day) for day in range(first_day, today + 1)}
        totals = dict.fromkeys(COUNTS, 0)
        for row in (row for row in rows if row.day in daily):
            for name in COUNTS:
                daily[row.day].counts[name] += getattr(row, name)
                totals[name] += getattr(row, name)
        # A user of several projects counts once for all of them, so the sum over the projects would be too high.
        users: Sequence[DailyCounts | DailyUsers] = rows
        if project_ids is None:
            users = await self._storage.counts.read_daily_users(developer.id, first_day)
        for each in users:
            if each.day in daily:
                daily[each.day].unique_users = each.unique_users
        unique_users = sum(each.latest_users for each in users)
        names = await self._storage.projects.name_projects(developer.id)
        return Analytics(
            unique_users, totals, list(daily.values()), [(each.project_id, each.project_name) for each in names], before
        )
