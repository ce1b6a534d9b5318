"""The interface of `store.erasure`."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Literal, NamedTuple, Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.model import SessionKey

Row = dict[str, Any]
"""All columns of a row, as stored."""
Rows = dict[str, list[Row]]
"""Rows by table."""
DescribeErased = Callable[[Collection[str]], Iterable[AuditEntry]]
"""Returns the audit entries of a transaction that erased something in these projects. It can be called again, when the
transaction is repeated."""
UserTable = Literal["phone_requests", "prompts", "blocks"]
"""A table with rows about a user that belong to no session and to no developer."""
FIRST_KEY: Final = SessionKey(-1, b"")
"""A key below those of all sessions."""


class DaysCursor(NamedTuple):
    """A position in the list of the days on which a user signed in."""

    creator_id: str
    day: int
    project_id: str


FIRST_DAY: Final = DaysCursor("", -1, "")
"""A position before all days."""


class ErasureStorage(Protocol):
    """Erases users' data, or exports the same data. Each call is bounded, so it blocks other calls only briefly.

    A session is erased with its phone number, its webhook events (due ones too) and its request for a phone number, in
    one transaction. Counts do not change. With `developer_id`, only the projects are searched whose data this developer
    may change; each call checks their role in its transaction.

    A user's sessions are those that the account opened, confirmed or not. They are found by an index, by project and
    then by key, so the cost of a call does not depend on other users, nor on the user's sessions in other projects.
    """

    async def find_writable(self, developer_id: str) -> set[str]:
        """Return the projects whose data the developer may change."""

    async def find_project(self, messenger_id: str, developer_id: str | None, after: str) -> str | None:
        """Return the first project after `after`, in the order of ids, with sessions of the account; None at the end.

        It may be a deleted project whose data is not erased yet, if there is no `developer_id`.
        """

    async def erase_sessions(
        self,
        messenger_id: str,
        project_id: str,
        developer_id: str | None,
        limit: int,
        *,
        describe: DescribeErased = lambda _: (),
    ) -> int:
        """Erase the first `limit` sessions of the account in a project; return their number (0: none is left).

        Raises:
            InsufficientRole: the developer's role does not permit it.
        """

    async def erase_person(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        *,
        describe: DescribeErased = lambda _: (),
    ) -> int:
        """Erase what is stored about an account besides its sessions; return the number of rows (0: nothing is left).

        The record of a confirmation on a day is kept, with the user replaced by `replacement`, so that the counts of
        distinct users remain exact. `replacement` must be unique for each call. Without `developer_id`, the account's
        blocks are erased too, at most `limit` in a call, since they belong to the user and not to a developer.
        """

    async def export_sessions(
        self, messenger_id: str, project_id: str, developer_id: str | None, after: SessionKey, limit: int
    ) -> Rows:
        """Return the next `limit` sessions after `after` that `erase_sessions` would erase, with what they take along.

        The sessions are in the order in which they would be erased, and the rows of a call belong together.

        Raises:
            ProjectNotFound: the developer is no member of the project.
            InsufficientRole: the developer's role does not permit it.
        """

    async def is_kept(self, messenger_id: str, key: SessionKey) -> bool:
        """Return whether a session of the account still exists."""

    async def export_days(
        self, messenger_id: str, developer_id: str | None, after: DaysCursor, limit: int
    ) -> list[Row]:
        """Return the next `limit` rows of `user_days` that `erase_person` would rename."""

    async def export_rest(self, messenger_id: str, table: UserTable, after: Row | None, limit: int) -> list[Row]:
        """Return the next `limit` other rows that `erase_person` would erase, strictly after the row `after`.

        Rows of sessions of the account are left out.
        """
