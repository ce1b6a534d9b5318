"""The interface of `store.plans`."""

from typing import NamedTuple, Protocol

from taproof.core.accounts import AuditEntry, Plan


class Used(NamedTuple):
    """The usage of a developer's plan: the number of projects, and of sign-ins confirmed since a given day.

    A user counts once a day, even if they sign in several times or to several projects of the developer.
    """

    projects: int
    sign_ins: int


class PlanStorage(Protocol):
    """Developers' plans and their usage."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        """Change a developer's plan; False if there is no such developer, or if they are already on this plan.

        With "free", all their projects stop collecting phone numbers, and no concurrent change can turn it on again.
        """

    async def read_used(self, developer_id: str, first_day: int) -> Used:
        """Return a developer's usage since `first_day`, by session day, including users of deleted projects."""

    async def purge_removed_usage(self, before_day: int, limit: int) -> int:
        """Erase deleted projects' usage before `before_day`; return the number of erased days, at most `limit`."""
