"""The list of sessions on PostgreSQL: newest first, without reading the days that a page does not reach."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import asyncpg

from taproof.core.clock import day_number
from taproof.core.model import PageCursor, Session, Status
from taproof.core.session_state import SESSION_LIFETIME
from taproof.storage import postgres_sql
from taproof.storage.postgres_pool import PostgresPool, storable
from taproof.storage.rows import columns, session_from

_FOREVER: Final = 2**62
_LAST_DAY: Final = 2**31 - 1
_WEEK: Final = 7
_STATUSES: Final[tuple[Status, ...]] = ("pending", "confirmed", "cancelled", "expired", "used")


class Walk(NamedTuple):
    """Sessions of one stored status below a place, whose expiry lies after one time and not after another."""

    status: Status
    created_at: int
    session_id: str
    expires_after: int = 0
    expires_until: int = _FOREVER


async def list_sessions(  # noqa: PLR0917 — those of the Protocol, in its order.
    pool: PostgresPool,
    project_ids: Sequence[str],
    status: Status | None,
    before: PageCursor | None,
    limit: int,
    now: int,
) -> list[Session]:
    """Return a page, as `storage.protocol.Storage` has it."""
    # The characters of an id all come after both; PostgreSQL takes no NUL.
    start = before._replace(id=before.id.replace("\0", "\1")) if before else PageCursor(_FOREVER, "")
    project_ids = storable(project_ids)
    walks = _walks(status, start, now)
    oldest = now - SESSION_LIFETIME if status == "pending" else 0

    async def read(connection: asyncpg.Connection) -> list[Session]:
        # One snapshot for all statements: a session decided meanwhile is seen before or after, not twice and not never.
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        found: list[Session] = []
        for first_day, last_day in _windows(day_number(min(start.created_at, now)), day_number(oldest)):
            rows = await connection.fetch(
                postgres_sql.LIST_SESSIONS,
                project_ids,
                *columns(walks),
                first_day,
                last_day,
                limit - len(found),
            )
            found += [session_from(row, now) for row in rows]
            if len(found) == limit:
                break
        return found

    return await pool.transact(read) if project_ids else []


def _walks(status: Status | None, start: PageCursor, now: int) -> list[Walk]:
    """Return what is stored of the sessions that a reader sees as `status`: each an index walk of its own."""
    if status is None:
        return [Walk(each, *start) for each in _STATUSES]
    if status == "pending":
        return [Walk("pending", *start, now, _FOREVER)]
    if status == "expired":
        # An overdue pending session is as old as a session can get: nothing newer has to be walked over.
        overdue = min(start, PageCursor(now - SESSION_LIFETIME + 1, ""))
        return [Walk("expired", *start), Walk("pending", *overdue, 0, now)]
    return [Walk(status, *start)]


def _windows(newest: int, oldest: int) -> Iterator[tuple[int, int]]:
    """Yield first and last days, newest first: most pages end within one day, nearly all within a week.

    A session lies in the partition of the day of its creation, so no window holds anything newer than the one before.
    """
    yield newest, _LAST_DAY
    for first, last in ((newest - _WEEK, newest - 1), (0, newest - _WEEK - 1)):
        if last >= oldest:
            yield first, last
