"""Lists of sessions on PostgreSQL, page by page and newest first, and the search for one session by its id.

Reading a page reads only the days that the page covers.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import asyncpg

from taproof.core.clock import day_number
from taproof.core.sessions import Session
from taproof.storage.postgres.database import PostgresDatabase, storable
from taproof.storage.queries.listing import Walk
from taproof.storage.queries.sessions import SESSION_COLUMNS
from taproof.storage.rows import columns, session_from

# Each step finds the next project in the index, as on SQLite. The ORDER BY rules out any other index.
LIST_PROJECTS_OF_USER: Final = """
WITH RECURSIVE found (id) AS (
  (SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 AND s.day >= $2
   ORDER BY s.messenger_id, s.project_id LIMIT 1)
  UNION ALL
  SELECT n.project_id FROM found f CROSS JOIN LATERAL (
    SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 AND s.project_id > f.id AND s.day >= $2
    ORDER BY s.messenger_id, s.project_id LIMIT 1
  ) AS n
)
SELECT f.id FROM found f LIMIT $3"""
_SESSION: Final = f"SELECT {SESSION_COLUMNS} FROM projects p"
# The newest session of each walk shows which walks the page may need: at most as many as the page has sessions.
# Projects without counts on these days are skipped, so no partition is searched for them.
_SESSIONS: Final = f"""
WITH walks AS MATERIALIZED (
  SELECT p.id AS project_id, w.*
  FROM projects p
  CROSS JOIN unnest($2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    AS w (status, created_at, id, since, expires_after, expires_until)
  CROSS JOIN LATERAL (
    SELECT x.created_at, x.id FROM sessions x
    WHERE x.day BETWEEN $8 AND $9 AND x.expires_at > w.expires_after AND x.expires_at <= w.expires_until AND {{0}}
    LIMIT 1
  ) AS n
  WHERE p.id = ANY ($1::TEXT[])
    AND EXISTS (SELECT FROM daily_counts c WHERE c.project_id = p.id AND c.day BETWEEN $8 AND $9)
  ORDER BY n.created_at DESC, n.id DESC LIMIT $10
)
{_SESSION} JOIN walks w ON w.project_id = p.id
CROSS JOIN LATERAL (
  SELECT * FROM sessions x
  WHERE x.day BETWEEN $8 AND $9 AND x.expires_at > w.expires_after AND x.expires_at <= w.expires_until AND {{0}}
  LIMIT $10
) AS s
ORDER BY s.created_at DESC, s.id DESC LIMIT $10"""
LIST_SESSIONS: Final = _SESSIONS.format("""x.project_id = p.id AND x.status = w.status
    AND (x.created_at, x.id) < (w.created_at, w.id) AND x.created_at >= w.since
  ORDER BY x.created_at DESC, x.id DESC""")
# Only the index that begins with the account matches this order. Otherwise, depending on the statistics, the
# planner may scan all confirmed sessions of a project and skip those of other accounts.
LIST_SESSIONS_OF_USER: Final = _SESSIONS.format("""x.messenger_id IS NOT NULL
    AND (x.messenger_id, x.project_id, x.status, x.created_at, x.id) < ($11, p.id, w.status, w.created_at, w.id)
    AND (x.messenger_id, x.project_id, x.status, x.created_at, x.id) >= ($11, p.id, w.status, w.since, '')
  ORDER BY x.messenger_id DESC, x.project_id DESC, x.status DESC, x.created_at DESC, x.id DESC""")
FIND_SESSION: Final = f"""{_SESSION}
CROSS JOIN unnest($2::TEXT[]) AS w (status)
CROSS JOIN LATERAL (
  SELECT * FROM sessions x
  WHERE x.day = $3 AND x.project_id = p.id AND x.status = w.status AND x.created_at = $4 AND x.id = $5 LIMIT 1
) AS s
WHERE p.id = ANY ($1::TEXT[])"""

ONE_SNAPSHOT_IN_ORDER: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL enable_sort = off"
"""In one snapshot, a session that is decided meanwhile appears exactly once, as it was before or after the decision.
Without sorting, a walk is read in index order and only as far as needed. With so many conditions, the planner expects
few rows and would otherwise read and sort all of them."""
_LAST_DAY: Final = 2**31 - 1
_WEEK: Final = 7


async def read_page(  # noqa: PLR0917 — the values of `list_sessions`, in its order.
    database: PostgresDatabase,
    project_ids: Sequence[str],
    walks: list[Walk],
    messenger_id: str | None,
    limit: int,
    now: int,
) -> list[Session]:
    """Return the first `limit` sessions of these walks, newest first."""
    project_ids = storable(project_ids)
    of_user = [] if messenger_id is None else [messenger_id]
    if not project_ids or not walks or storable(of_user) != of_user:
        return []
    statement = LIST_SESSIONS_OF_USER if of_user else LIST_SESSIONS
    newest, oldest = max(walk.created_at for walk in walks), day_number(min(walk.since for walk in walks))

    async def read(connection: asyncpg.Connection) -> list[Session]:
        await connection.execute(ONE_SNAPSHOT_IN_ORDER)
        found: list[Session] = []
        for first_day, last_day in _windows(newest, now, oldest):
            values = (first_day, last_day, limit - len(found), *of_user)
            rows = await connection.fetch(statement, project_ids, *columns(walks), *values)
            found += [session_from(row, now) for row in rows]
            if len(found) == limit:
                break
        return found

    return await database.transact(read)


def _windows(created_before: int, now: int, oldest: int) -> Iterator[tuple[int, int]]:
    """Yield windows of days, newest first, as pairs of first and last day: most pages end within one day.

    A session is in the partition of the day on which it was created, so no window contains a newer session than the
    previous window. A node whose clock is ahead may have created sessions in a future day.
    """
    last = min(day_number(created_before), _LAST_DAY)
    newest = min(last, day_number(now))
    for first, until in ((newest, last), (newest - _WEEK, newest - 1), (0, newest - _WEEK - 1)):
        if max(first, oldest) <= until:
            yield max(first, oldest), until
