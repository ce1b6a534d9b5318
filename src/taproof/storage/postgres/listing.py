"""Sessions as a developer looks them up on PostgreSQL: page by page, newest first, and one by its id.

A page does not read the days that it does not reach.
"""

from collections.abc import Iterator, Sequence
from typing import Final, get_args

import asyncpg

from taproof.core.clock import day_number
from taproof.core.model import PageCursor, Session, Status
from taproof.storage.postgres import sql
from taproof.storage.postgres.pool import PostgresPool, storable
from taproof.storage.rows import columns, session_from
from taproof.storage.session_walks import page_start, session_walks

_ONE_SNAPSHOT_IN_ORDER: Final = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL enable_sort = off"
)
"""A session decided meanwhile is seen before or after, not twice and not never. And what a walk finds is read in the
order of its index, as far as it is needed: so many conditions make it look so little that reading all of it and sorting
would seem cheaper."""
_LAST_DAY: Final = 2**31 - 1
_WEEK: Final = 7


async def list_sessions(  # noqa: PLR0917 — those of the Protocol, in its order.
    pool: PostgresPool,
    project_ids: Sequence[str],
    status: Status | None,
    before: PageCursor | None,
    limit: int,
    now: int,
    *,
    since: int,
    messenger_id: str | None,
) -> list[Session]:
    """Return a page, as `storage.protocol.Storage` has it."""
    start = page_start(before)
    # The characters of an id all come after both; PostgreSQL takes no NUL.
    start = start._replace(id=start.id.replace("\0", "\1"))
    project_ids = storable(project_ids)
    of_user = [] if messenger_id is None else [messenger_id]
    walks = session_walks(status, start, since, now, messenger_id)
    if not project_ids or not walks or storable(of_user) != of_user:
        return []
    statement = sql.LIST_SESSIONS_OF_USER if of_user else sql.LIST_SESSIONS
    oldest = day_number(min(walk.since for walk in walks))

    async def read(connection: asyncpg.Connection) -> list[Session]:
        await connection.execute(_ONE_SNAPSHOT_IN_ORDER)
        found: list[Session] = []
        for first_day, last_day in _windows(start.created_at, now, oldest):
            values = (first_day, last_day, limit - len(found), *of_user)
            rows = await connection.fetch(statement, project_ids, *columns(walks), *values)
            found += [session_from(row, now) for row in rows]
            if len(found) == limit:
                break
        return found

    return await pool.transact(read)


def _windows(created_before: int, now: int, oldest: int) -> Iterator[tuple[int, int]]:
    """Yield first and last days, newest first: most pages end within one day, nearly all within a week.

    A session lies in the partition of the day of its creation, so no window holds anything newer than the one before.
    That of a node whose clock is ahead may lie in a day that is yet to come.
    """
    last = min(day_number(created_before), _LAST_DAY)
    newest = min(last, day_number(now))
    for first, until in ((newest, last), (newest - _WEEK, newest - 1), (0, newest - _WEEK - 1)):
        if max(first, oldest) <= until:
            yield max(first, oldest), until


async def find_session(
    pool: PostgresPool, project_ids: Sequence[str], created_at: int, session_id: str, now: int
) -> Session | None:
    """Return one session, as `storage.protocol.Storage` has it."""
    values = (day_number(created_at), created_at, session_id)
    found = await pool.find(sql.FIND_SESSION, storable(project_ids), get_args(Status), *values)
    return session_from(found[0], now) if found else None
