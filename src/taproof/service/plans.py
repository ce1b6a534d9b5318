"""Plans: enforce their limits, read a developer's usage, and change a developer's plan.

A limit is checked only when something new starts. A sign-in in progress continues to its end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from taproof.core.accounts import Actor, Developer, Plan
from taproof.core.clock import SECOND, Clock, iso_date, month_of
from taproof.core.entropy import Entropy
from taproof.core.errors import PlanLimitReached
from taproof.core.model import SERVICE_DEVELOPER
from taproof.service.audit import audit_entry
from taproof.storage.protocol import Storage

FRESH: Final = 10 * SECOND
"""The time (ms) that a process uses its count of sign-ins, so that most calls of generate need no count. A month may
go over its limit by the sign-ins that all processes confirm in this time."""
_KEPT: Final = 10_000
"""The most developers whose count a process keeps."""


@dataclass(frozen=True, slots=True)
class Usage:
    """A developer's usage and the limits of their plan. A limit of None means no limit."""

    projects: int
    projects_limit: int | None
    sign_ins_this_month: int
    sign_ins_limit: int | None


class _Counted(NamedTuple):
    """The sign-ins of a month, counted at the time `at` (ms)."""

    first_day: int
    at: int
    sign_ins: int


class Plans:
    """Enforces the limits of plans, and changes developers' plans.

    Args:
        projects: the most projects of a developer, by plan. A plan without an entry has no limit.
        sign_ins: the most sign-ins that their users may confirm in a calendar month (UTC), likewise. A user counts
            once a day, so one account takes at most 31 of a month.
    """

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        entropy: Entropy,
        *,
        projects: Mapping[Plan, int],
        sign_ins: Mapping[Plan, int],
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy
        self._projects = projects
        self._sign_ins = sign_ins
        self._counted: dict[str, _Counted] = {}

    async def update_plan(self, developer: Developer, plan: Plan) -> bool:
        """Move a developer to another plan, as the operator does; False when they are already on it.

        On "free", their projects stop collecting phone numbers at once. Projects over the new plan's limit stay.
        """
        details = {"plan": plan, "before": developer.plan}
        actor = Actor(developer, "command_line")
        now = self._clock()
        entry = audit_entry(actor, "developer.plan_changed", now, self._entropy, subject=developer.id, details=details)
        return await self._storage.plans.update_plan(developer.id, plan, entry=entry)

    async def read_usage(self, developer: Developer) -> Usage:
        """Return a developer's usage, counted now."""
        used = await self._storage.plans.read_used(developer.id, month_of(self._clock()).start)
        plan = developer.plan
        return Usage(used.projects, self._projects.get(plan), used.sign_ins, self._sign_ins.get(plan))

    async def require_room(self, developer_id: str, plan: Plan) -> None:
        """Refuse a new sign-in when the developer's plan has none left this month.

        Sign-ins to the service itself have no limit. Otherwise nobody could sign in to the console at the limit.

        Raises:
            PlanLimitReached: the limit is reached, until the next month or another plan.
        """
        limit = self._sign_ins.get(plan)
        if limit is None or developer_id == SERVICE_DEVELOPER:
            return
        now = self._clock()
        if await self._count(developer_id, now) >= limit:
            raise PlanLimitReached(
                "This project's developer has had as many sign-ins confirmed in this month as their plan has room for. "
                f"New ones can be started from {iso_date(month_of(now).stop)} (UTC), or as soon as the operator of "
                "this service gives them another plan."
            )

    async def _count(self, developer_id: str, now: int) -> int:
        """Return this month's sign-ins from a recent count."""
        first_day = month_of(now).start
        known = self._counted.get(developer_id)
        if known is not None and known.first_day == first_day:
            if 0 <= now - known.at < FRESH:
                return known.sign_ins
            # Calls during the new count use the previous count.
            self._counted[developer_id] = known._replace(at=now)
        used = await self._storage.plans.read_used(developer_id, first_day)
        if len(self._counted) >= _KEPT:
            self._counted.clear()
        self._counted[developer_id] = _Counted(first_day, now, used.sign_ins)
        return used.sign_ins
