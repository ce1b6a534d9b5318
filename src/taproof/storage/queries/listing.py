"""Sessions as a developer or a user looks them up: page by page, newest first, and one by its id.

A page is merged from walks down an index, which are the same on both stores, in each project. The index leads by
project and stored status, or by messenger account, project and stored status; then by time and id.
"""

from typing import Final, NamedTuple

from taproof.core.model import PageCursor, Status
from taproof.core.session_state import SESSION_LIFETIME
from taproof.storage.queries.sessions import OF_SESSIONS, SESSION_COLUMNS

LIST_SESSIONS: Final = f"""
SELECT {SESSION_COLUMNS} {OF_SESSIONS}
WHERE s.project_id = $1 AND s.status = $2 AND (s.created_at, s.id) < ($3, $4) AND s.created_at >= $5
  AND s.expires_at > $6 AND s.expires_at <= $7
ORDER BY s.created_at DESC, s.id DESC LIMIT $8"""
LIST_SESSIONS_OF_USER: Final = f"""
SELECT {SESSION_COLUMNS} {OF_SESSIONS}
WHERE s.messenger_id = $1 AND s.project_id = $2 AND s.status = $3 AND (s.created_at, s.id) < ($4, $5)
  AND s.created_at >= $6
ORDER BY s.created_at DESC, s.id DESC LIMIT $7"""
# Which projects have the newest sessions of a walk: a page of so many sessions needs no more projects than that. The
# place is one text that sorts as time and id do.
_NEWEST: Final = """
WITH projects_asked (id) AS (SELECT value FROM json_each($1))
SELECT p.id, (
  SELECT printf('%015d', s.created_at) || s.id FROM sessions s
  WHERE {0}
  ORDER BY s.created_at DESC, s.id DESC LIMIT 1
) AS newest FROM projects_asked p ORDER BY newest DESC LIMIT {1}"""
_OF_WALK: Final = "s.project_id = p.id AND s.status = $2 AND (s.created_at, s.id) < ($3, $4) AND s.created_at >= $5"
FIND_NEWEST: Final = _NEWEST.format(_OF_WALK, "$6")  # The index alone answers it.
FIND_NEWEST_BY_EXPIRY: Final = _NEWEST.format(f"{_OF_WALK} AND s.expires_at > $6 AND s.expires_at <= $7", "$8")
FIND_NEWEST_OF_USER: Final = _NEWEST.format(
    """s.messenger_id = $2 AND s.project_id = p.id AND s.status = $3 AND (s.created_at, s.id) < ($4, $5)
    AND s.created_at >= $6""",
    "$7",
)
FIND_SESSION: Final = f"""
SELECT {SESSION_COLUMNS} {OF_SESSIONS}
WHERE s.project_id IN (SELECT value FROM json_each($1))
  AND s.status IN ('pending', 'confirmed', 'cancelled', 'expired', 'used') AND s.created_at = $2 AND s.id = $3"""
# From one project to the next by the index, however often the account signed in to each.
LIST_PROJECTS_OF_USER: Final = """
WITH RECURSIVE found (id) AS (
  SELECT (SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 ORDER BY s.project_id LIMIT 1)
  UNION ALL
  SELECT (SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 AND s.project_id > f.id
    ORDER BY s.project_id LIMIT 1)
  FROM found f WHERE f.id IS NOT NULL
)
SELECT f.id FROM found f WHERE f.id IS NOT NULL LIMIT $2"""


_FOREVER: Final = 2**62
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
