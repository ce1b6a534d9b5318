"""Plans: what a developer's plan has room for, how much of it is used, and the operator's change of it.

A limit is looked at when something new is started, never later: a sign-in in progress goes on to its end.
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
"""How long a process goes by the sign-ins that it has counted, so that most calls of generate cost nothing more. What
is confirmed meanwhile, in all processes, is how far a month may go over its limit."""
_KEPT: Final = 10_000
"""Developers whose count a process remembers at most."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a developer has of what their plan allows. A limit of None is none."""

    projects: int
    projects_limit: int | None
    sign_ins_this_month: int
    sign_ins_limit: int | None


class _Counted(NamedTuple):
    """The sign-ins of a month, counted at a time (ms)."""

    first_day: int
    at: int
    sign_ins: int


class Plans:
    """Knows what plans have room for, and changes them.

    Args:
        storage: the store.
        clock: returns the time in ms.
        entropy: returns random bytes.
        projects: how many projects a developer may have, by plan; a plan that is not there has no limit.
        sign_ins: how many sign-ins their users may confirm in a calendar month (UTC), likewise. A user counts once a
            day, so one account takes at most 31 of a month.
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

    async def change_plan(self, developer: Developer, plan: Plan) -> bool:
        """Put a developer on another plan, as the operator does; False when they are on it already.

        On "free" their projects stop collecting phone numbers at once. What is over a limit of the new plan stays.
        """
        details = {"plan": plan, "before": developer.plan}
        actor = Actor(developer, "command_line")
        now = self._clock()
        entry = audit_entry(actor, "developer.plan_changed", now, self._entropy, subject=developer.id, details=details)
        return await self._storage.plans.update_plan(developer.id, plan, entry=entry)

    async def read_usage(self, developer: Developer) -> Usage:
        """Return what a developer uses, counted now."""
        used = await self._storage.plans.read_used(developer.id, month_of(self._clock()).start)
        plan = developer.plan
        return Usage(used.projects, self._projects.get(plan), used.sign_ins, self._sign_ins.get(plan))

    async def require_room(self, developer_id: str, plan: Plan) -> None:
        """Refuse a new sign-in of a developer whose plan has none left in this month.

        Sign-ins to the service itself have no limit: without them nobody could come in to do something about it.

        Raises:
            PlanLimitReached: until the next month, or another plan.
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
        """Return the sign-ins of this month, as they were a moment ago."""
        first_day = month_of(now).start
        known = self._counted.get(developer_id)
        if known is not None and known.first_day == first_day:
            if 0 <= now - known.at < FRESH:
                return known.sign_ins
            # Who comes while they are counted again goes by the count before.
            self._counted[developer_id] = known._replace(at=now)
        used = await self._storage.plans.read_used(developer_id, first_day)
        if len(self._counted) >= _KEPT:
            self._counted.clear()
        self._counted[developer_id] = _Counted(first_day, now, used.sign_ins)
        return used.sign_ins
