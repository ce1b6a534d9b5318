"""What the service asks of a store about plans and how much of them is used. See `protocol.py`."""

from typing import NamedTuple, Protocol

from taproof.core.accounts import AuditEntry, Plan


class Used(NamedTuple):
    """What a developer has used of a plan: projects there are, and sign-ins confirmed since a day.

    A user counts once a day, however often they sign in, and to however many projects of the developer.
    """

    projects: int
    sign_ins: int


class PlanStorage(Protocol):
    """The part of the store that knows plans."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        """Put a developer on another plan; False when there is none, or they are on it already.

        On "free" no project of theirs collects phone numbers any more: from here on none is set to, whoever tries so
        at the same instant, since `create_project` and `update_project` look at the plan too.
        """

    async def read_used(self, developer_id: str, first_day: int) -> Used:
        """Return what a developer uses; a sign-in counts on the day that its session was created on.

        Users of projects that are deleted by now count too.
        """

    async def purge_removed_usage(self, before_day: int, limit: int) -> int:
        """Forget who had confirmed in deleted projects before that day; return of how many days, `limit` at most."""
