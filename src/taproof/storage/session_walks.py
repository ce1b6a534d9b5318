"""Which walks down an index find the sessions of a page: the same ones on both stores, in each project.

The index leads by project and stored status, or by messenger account, project and stored status; then by time and id.
"""

from typing import Final, NamedTuple

from taproof.core.model import PageCursor, Status
from taproof.core.session_state import SESSION_LIFETIME

_FOREVER: Final = 2**62
_BEGINNING: Final = PageCursor(_FOREVER, "")
_STATUSES: Final[tuple[Status, ...]] = ("pending", "confirmed", "cancelled", "expired", "used")
_CONFIRMED: Final[tuple[Status, ...]] = ("confirmed", "used")


class Walk(NamedTuple):
    """Sessions of one stored status from below a place down to a time, whose expiry lies after one time up to another.

    Its fields are values of `LIST_SESSIONS`, in that order; the first four also of `LIST_SESSIONS_OF_USER`.
    """

    status: Status
    created_at: int
    session_id: str
    since: int
    expires_after: int = 0
    expires_until: int = _FOREVER

    @property
    def is_of_any_expiry(self) -> bool:
        """Whether it passes over no session for its expiry."""
        return self.expires_after == 0 and self.expires_until == _FOREVER


def page_start(before: PageCursor | None) -> PageCursor:
    """Return the place that a page begins below."""
    return before or _BEGINNING


def session_walks(
    status: Status | None, start: PageCursor, since: int, now: int, messenger_id: str | None
) -> list[Walk]:
    """Return what is stored of the sessions that a reader sees as `status` at `now`; None: as any.

    Args:
        status: what is asked for.
        start: where the page begins.
        since: the time, in ms, that no session of the page was created before.
        now: in ms.
        messenger_id: whose sessions, if only those that one account has confirmed.
    """
    if messenger_id is not None:
        return [Walk(each, *start, since) for each in _CONFIRMED if status in {None, each}]
    # A session that was created by then is overdue, any later one is not: neither walk passes over one of the other's.
    overdue = now - SESSION_LIFETIME
    if status is None:
        return [Walk(each, *start, since) for each in _STATUSES]
    if status == "pending":
        return [Walk("pending", *start, max(since, overdue + 1), now, _FOREVER)]
    if status == "expired":
        newest_overdue = min(start, PageCursor(overdue + 1, ""))
        return [Walk("expired", *start, since), Walk("pending", *newest_overdue, since, 0, now)]
    return [Walk(status, *start, since)]
