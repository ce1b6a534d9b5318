"""Plans: enforce their limits, read a developer's usage, and change a developer's plan.

A limit is checked only when something new starts. Sign-ins in progress are not interrupted.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from taproof.contract.account import Plan, Usage
from taproof.core.accounts import Actor, Developer
from taproof.core.clock import SECOND, Clock, iso_date, month_of
from taproof.core.entropy import Entropy
from taproof.core.errors import PlanLimitReached
from taproof.core.projects import SERVICE_DEVELOPER
from taproof.service.audit import audit_entry
from taproof.storage.protocol import Storage

FRESH: Final = 10 * SECOND
"""The time (ms) for which a process reuses its count of sign-ins, so that most calls of generate need no count. A month
can exceed its limit by the sign-ins that all processes confirm during this time."""
_KEPT: Final = 10_000
"""The maximum number of developers whose counts a process keeps."""


class _Counted(NamedTuple):
    """The sign-ins of a month, counted at the time `at` (ms)."""

    first_day: int
    at: int
    sign_ins: int


class Plans:
    """Enforces the limits of plans, and changes developers' plans.

    Args:
        projects: the maximum number of projects per developer, by plan. A plan without an entry has no limit.
        sign_ins: the maximum number of confirmed sign-ins in a calendar month (UTC), likewise by plan. A user counts
            once a day, so one account uses at most 31 per month.
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
        """Move a developer to another plan on behalf of the operator; False if they are already on it.

        With "free", their projects stop collecting phone numbers immediately. Projects over the limit are kept.
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
        return Usage(
            projects=used.projects,
            projects_limit=self._projects.get(plan),
            sign_ins_this_month=used.sign_ins,
            sign_ins_limit=self._sign_ins.get(plan),
        )

    async def require_room(self, developer_id: str, plan: Plan) -> None:
        """Refuse a new sign-in if the developer's plan allows no more this month.

        Sign-ins to the service itself are not limited, so that developers can always sign in to the console.

        Raises:
            PlanLimitReached: the limit is reached. It ends with the month or a change of the plan.
        """
        limit = self._sign_ins.get(plan)
        if limit is None or developer_id == SERVICE_DEVELOPER:
            return
        now = self._clock()
        if await self._count(developer_id, now) >= limit:
            raise PlanLimitReached(
                "This project's developer has reached their plan's limit of confirmed sign-ins for this month. "
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
