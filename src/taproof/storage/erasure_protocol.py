"""What the service asks of a store to forget one user. See `protocol.py`."""

from typing import Final, NamedTuple, Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.clock import DAY
from taproof.core.model import Status

OPENED: Final[tuple[Status, ...]] = ("pending", "expired", "cancelled")
"""Where sessions are that somebody opened and did not confirm. They only move from the first to one of the others."""


class OpenedDay(NamedTuple):
    """Sessions of one project and UTC day, of which some were opened and not confirmed."""

    project_id: str
    day: int


class OpenedPlace(NamedTuple):
    """Where a walk over the sessions of an `OpenedDay` stands."""

    status: Status
    created_at: int
    session_id: str


class ErasedPage(NamedTuple):
    """How much was erased of what was looked at; `after` continues the walk, and is None at its end."""

    erased: int
    after: OpenedPlace | None


class ErasureStorage(Protocol):
    """The part of the store that forgets users. Each call is bounded, and holds up nobody for longer than a moment.

    A session goes with its phone number, its webhook events, due ones too, and its request for a phone number, in one
    transaction. Counts stay as they are. With `developer_id` only this developer's projects are looked at.
    """

    async def erase_user(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> int:
        """Erase at most about `limit` rows of what an account confirmed; return how many (0: all is done).

        So that the counts of distinct users stay exact, that somebody confirmed on a day is kept, as `replacement`:
        a name that nobody else has, and another one at each call. Without `developer_id` also what the account has
        blocked is erased; the blocks are the user's own.
        """

    async def list_opened_days(self, developer_id: str | None, after: OpenedDay | None, limit: int) -> list[OpenedDay]:
        """Return project days with sessions that somebody opened and did not confirm, strictly after `after`."""

    async def erase_opened(
        self,
        messenger_id: str,
        of: OpenedDay,
        after: OpenedPlace | None,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> ErasedPage:
        """Look at the next `limit` sessions, and erase those that the account opened and did not confirm.

        No session is passed over that was there when the walk began, unless it was confirmed meanwhile.
        """


def opened_starts(of: OpenedDay, after: OpenedPlace | None) -> list[OpenedPlace]:
    """Return where the walks of a day, one for each status, go on strictly below `after`.

    They go in an order in which sessions move, if they do, so that none is passed over.
    """
    end = (of.day + 1) * DAY
    following = OPENED if after is None else OPENED[OPENED.index(after.status) + 1 :]
    starts = [OpenedPlace(status, end, "") for status in following]
    return starts if after is None else [after, *starts]
