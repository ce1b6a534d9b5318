"""Lists of sessions for developers and users, page by page and newest first, and the search for one session by its id.

A page is merged from several walks through an index in each project. On both databases, the index begins with project
and stored status, or with messenger account, project and stored status. Time and id follow.
"""

from typing import Final, NamedTuple, get_args

from taproof.contract.session import SignInStatus
from taproof.core.page_cursor import PageCursor
from taproof.core.return_code import RETURN_LIFETIME
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
# Finds the projects with the newest sessions of a walk: a page of N sessions needs at most N projects. The position is
# one text that sorts like time and id.
_NEWEST: Final = """
WITH projects_asked (id) AS (SELECT value FROM json_each($1))
SELECT p.id, (
  SELECT printf('%015d', s.created_at) || s.id FROM sessions s
  WHERE {0}
  ORDER BY s.created_at DESC, s.id DESC LIMIT 1
) AS newest FROM projects_asked p ORDER BY newest DESC LIMIT {1}"""
_OF_WALK: Final = "s.project_id = p.id AND s.status = $2 AND (s.created_at, s.id) < ($3, $4) AND s.created_at >= $5"
FIND_NEWEST: Final = _NEWEST.format(_OF_WALK, "$6")  # An index-only scan.
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
# Each step finds the next project in the index, however often the account signed in to each.
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
_STATUSES: Final[tuple[SignInStatus, ...]] = get_args(SignInStatus)
_CONFIRMED: Final[tuple[SignInStatus, ...]] = ("confirmed", "used")


class Walk(NamedTuple):
    """A walk over sessions of one stored status, from below a position down to a time, within a range of expiry.

    `expires_after` is exclusive, `expires_until` inclusive. The fields are values of `LIST_SESSIONS`; the first four
    are also values of `LIST_SESSIONS_OF_USER`.
    """

    status: SignInStatus
    created_at: int
    session_id: str
    since: int
    expires_after: int = 0
    expires_until: int = _FOREVER

    @property
    def is_of_any_expiry(self) -> bool:
        """True if the walk does not filter sessions by expiry."""
        return self.expires_after == 0 and self.expires_until == _FOREVER


def session_walks(
    status: SignInStatus | None, start: PageCursor, since: int, now: int, messenger_id: str | None
) -> list[Walk]:
    """Return the walks over stored sessions that a reader sees as `status` at `now`, from `start` down to `since`."""
    if messenger_id is not None:
        return [Walk(each, *start, since) for each in _CONFIRMED if status in {None, each}]
    if status is None:
        return [Walk(each, *start, since) for each in _STATUSES]
    # Sessions become overdue `SESSION_LIFETIME` after their creation. But those that wait for a return code may be
    # overdue as early as `RETURN_LIFETIME`, or later by that time. The walks skip others in these few minutes only.
    if status == "pending":
        return [Walk("pending", *start, max(since, now - SESSION_LIFETIME - RETURN_LIFETIME + 1), now, _FOREVER)]
    if status == "expired":
        newest_overdue = min(start, PageCursor(now - RETURN_LIFETIME + 1, ""))
        return [Walk("expired", *start, since), Walk("pending", *newest_overdue, since, 0, now)]
    return [Walk(status, *start, since)]
