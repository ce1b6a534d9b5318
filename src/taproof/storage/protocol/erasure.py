"""The interface of `store.erasure`."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.model import SessionKey, Status

Row = dict[str, Any]
"""All columns of a row, as stored."""
Rows = dict[str, list[Row]]
"""Rows by table."""
DescribeErased = Callable[[Collection[str]], Iterable[AuditEntry]]
"""Returns the audit entries of a transaction that erased something in these projects. It can be called again, when the
transaction is repeated."""


class OpenedDay(NamedTuple):
    """A project and a UTC day with sessions that were opened but not confirmed."""

    project_id: str
    day: int


class OpenedCursor(NamedTuple):
    """A position in a walk over the sessions of an `OpenedDay`."""

    status: Status
    created_at: int
    session_id: str


class ErasedPage(NamedTuple):
    """The number of sessions erased in one page. `after` is the start of the next page, None after the last page."""

    erased: int
    after: OpenedCursor | None


class OpenedPage(NamedTuple):
    """The sessions found in one page. `after` is the start of the next page, None after the last page."""

    keys: list[SessionKey]
    after: OpenedCursor | None


class ErasureStorage(Protocol):
    """Erases users' data, or exports the same data. Each call is bounded, so it blocks other calls only briefly.

    A session is erased with its phone number, its webhook events (due ones too) and its request for a phone number, in
    one transaction. Counts do not change. With `developer_id`, only the projects are searched whose data this developer
    may change; each call checks their role in its transaction.
    """

    async def erase_user(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        *,
        describe: DescribeErased = lambda _: (),
    ) -> int:
        """Erase at most about `limit` rows of an account's sign-ins; return their number (0: nothing is left).

        The record of a confirmation on a day is kept, with the user replaced by `replacement`, so that the counts of
        distinct users remain exact. `replacement` must be unique for each call. Without `developer_id`, the account's
        blocks are erased too, since they belong to the user and not to a developer.
        """

    async def list_opened_days(self, developer_id: str | None, after: OpenedDay | None, limit: int) -> list[OpenedDay]:
        """Return the projects and days with opened but unconfirmed sessions, strictly after `after`."""

    async def erase_opened(
        self,
        messenger_id: str,
        of: OpenedDay,
        after: OpenedCursor | None,
        limit: int,
        *,
        developer_id: str | None = None,
        describe: DescribeErased = lambda _: (),
    ) -> ErasedPage:
        """Check the next `limit` sessions, and erase those that the account opened but did not confirm.

        A walk checks every session that existed when it began, unless the session was confirmed meanwhile.
        """

    async def list_sign_ins(self, messenger_id: str, developer_id: str | None) -> list[SessionKey]:
        """Return the keys of all sessions that the account confirmed and that an erasure would find."""

    async def list_opened(
        self,
        messenger_id: str,
        of: OpenedDay,
        after: OpenedCursor | None,
        limit: int,
        *,
        developer_id: str | None = None,
    ) -> OpenedPage:
        """Check the next `limit` sessions as `erase_opened` does, and return those that it would erase."""

    async def export_sessions(self, messenger_id: str, keys: Sequence[SessionKey]) -> Rows:
        """Return the rows that erasing these sessions removes, unless they belong to another account."""

    async def export_person(self, messenger_id: str, developer_id: str | None) -> Rows:
        """Return the other rows that `erase_user` removes or renames."""
