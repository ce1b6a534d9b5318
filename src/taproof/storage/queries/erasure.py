"""The statements that erase one user. For the lock order on PostgreSQL, see `postgres/__init__.py`."""

from typing import Any, Final, NamedTuple

from taproof.core.clock import DAY
from taproof.core.model import Status
from taproof.storage.protocol import OpenedDay, OpenedPlace

OPENED: Final[tuple[Status, ...]] = ("pending", "expired", "cancelled")
"""The states of sessions that can be opened and not confirmed. The only moves among them are from the first to the
others."""
_BEFORE_ALL: Final = OpenedDay("", -1)

FIND_SIGN_INS: Final = "SELECT day, token_hash FROM sessions WHERE messenger_id = $1 LIMIT $2"
FIND_SIGN_INS_OF_DEVELOPER: Final = """
SELECT day, token_hash FROM sessions
WHERE messenger_id = $1 AND project_id IN (SELECT id FROM projects WHERE developer_id = $2) LIMIT $3"""
LIST_OPENED_DAYS: Final = """
SELECT project_id, day FROM daily_counts
WHERE (project_id, day) > ($1, $2) AND day >= $3 AND opened > confirmed ORDER BY project_id, day LIMIT $4"""
LIST_OPENED_DAYS_OF_DEVELOPER: Final = """
SELECT c.project_id, c.day FROM projects p JOIN daily_counts c ON c.project_id = p.id
WHERE p.developer_id = $1 AND (c.project_id, c.day) > ($2, $3) AND c.day >= $4 AND c.opened > c.confirmed
ORDER BY c.project_id, c.day LIMIT $5"""
OLDEST_DAY: Final = "SELECT MIN(day) FROM sessions"
LIST_OPENED: Final = """
SELECT day, token_hash, created_at, id, opener_id FROM sessions
WHERE project_id = $1 AND status = $2 AND created_at >= $3 AND (created_at, id) < ($4, $5)
ORDER BY created_at DESC, id DESC LIMIT $6"""
# A developer without projects has no rows in `user_days` either, except for a while after deleting a project.
FIND_PERSON: Final = """
SELECT x.developer_id FROM (SELECT developer_id FROM projects UNION SELECT developer_id FROM deleted_projects) x
WHERE EXISTS (SELECT 1 FROM user_days u WHERE u.developer_id = x.developer_id AND u.messenger_id = $1) LIMIT 1"""
ERASE_SESSION: Final = """
DELETE FROM sessions WHERE day = $1 AND token_hash = $2 AND (opener_id = $3 OR messenger_id = $3)
RETURNING project_id, id, confirmed_at, cancelled_at"""
ERASE_EVENTS_OF_SESSION: Final = """
DELETE FROM webhook_events
WHERE project_id = $1 AND state IN ('due', 'delivered', 'failed', 'ended')
  AND type IN ('auth.confirmed', 'auth.cancelled') AND session_id = $2 AND created_at IN ($3, $4)"""
ERASE_PHONE_REQUEST: Final = "DELETE FROM phone_requests WHERE day = $1 AND token_hash = $2"
RENAME_PERSON: Final = """
UPDATE user_days SET messenger_id = $1 WHERE developer_id = $2 AND messenger_id = $3 RETURNING day"""
ERASE_PHONE_REQUESTS_OF_USER: Final = "DELETE FROM phone_requests WHERE messenger_id = $1 RETURNING day"
ERASE_BLOCKS_OF_USER: Final = """
DELETE FROM blocks WHERE messenger_id = $1 AND project_id IN (
  SELECT project_id FROM blocks WHERE messenger_id = $1 LIMIT $2) RETURNING project_id"""


class OpenedSession(NamedTuple):
    """A row of `LIST_OPENED`."""

    day: int
    token_hash: bytes
    created_at: int
    id: str
    opener_id: str | None


def opened_days(developer_id: str | None, after: OpenedDay | None, oldest: int, limit: int) -> tuple[Any, ...]:
    """Return the statement that lists opened days from the day `oldest` on, and its values."""
    place = (*(after or _BEFORE_ALL), oldest, limit)
    if developer_id is None:
        return (LIST_OPENED_DAYS, *place)
    return (LIST_OPENED_DAYS_OF_DEVELOPER, developer_id, *place)


def opened_starts(of: OpenedDay, after: OpenedPlace | None) -> list[OpenedPlace]:
    """Return the starting points of a day's walks, one for each status, strictly after `after`.

    The walks follow the order in which sessions change their status, so that no session is missed.
    """
    end = (of.day + 1) * DAY
    following = OPENED if after is None else OPENED[OPENED.index(after.status) + 1 :]
    starts = [OpenedPlace(status, end, "") for status in following]
    return starts if after is None else [after, *starts]
