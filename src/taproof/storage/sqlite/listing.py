"""Lists of sessions on SQLite, page by page and newest first, and the search for one session by its id.

One statement for each walk finds the projects with its newest sessions, using the index without reading other sessions.
Then only the few walks that the page can need are read.
"""

import heapq
import itertools
import json
from collections.abc import Iterator, Sequence

from taproof.core.sessions import Session
from taproof.storage.queries import listing as queries
from taproof.storage.queries.listing import Walk
from taproof.storage.rows import session_from
from taproof.storage.sqlite.database import Read


def read_page(  # noqa: PLR0917 — the values of `list_sessions`, in its order.
    read: Read, project_ids: Sequence[str], walks: list[Walk], messenger_id: str | None, limit: int, now: int
) -> list[Session]:
    """Return the first `limit` sessions of these walks, newest first."""
    each_newest_first = [
        _sessions(read, project_id, walk, messenger_id, now)
        for project_id, walk in _newest_walks(read, project_ids, walks, limit, messenger_id)
    ]
    newest_first = heapq.merge(*each_newest_first, key=lambda session: (session.created_at, session.id), reverse=True)
    return list(itertools.islice(newest_first, limit))


def _newest_walks(
    read: Read, project_ids: Sequence[str], walks: list[Walk], limit: int, messenger_id: str | None
) -> list[tuple[str, Walk]]:
    """Return the `limit` walks that begin with the newest sessions. No other walk has a session on the page."""
    if len(project_ids) == 1:
        return [(project_ids[0], walk) for walk in walks]
    ids = json.dumps(list(project_ids))
    found: list[tuple[str, str, Walk]] = []
    for walk in walks:
        if messenger_id is not None:
            rows = read(queries.FIND_NEWEST_OF_USER, (ids, messenger_id, *walk[:4], limit))
        elif walk.is_of_any_expiry:
            rows = read(queries.FIND_NEWEST, (ids, *walk[:4], limit))
        else:
            rows = read(queries.FIND_NEWEST_BY_EXPIRY, (ids, *walk, limit))
        found += [(newest, project_id, walk) for project_id, newest in rows if newest is not None]
    found.sort(reverse=True)
    return [(project_id, walk) for _, project_id, walk in found[:limit]]


def _sessions(read: Read, project_id: str, walk: Walk, messenger_id: str | None, now: int) -> Iterator[Session]:
    """Yield the sessions of a walk in one project, newest first, in growing batches."""
    for limit in itertools.chain((1, 8, 64), itertools.repeat(200)):
        if messenger_id is None:
            found = read(queries.LIST_SESSIONS, (project_id, *walk, limit))
        else:
            found = read(queries.LIST_SESSIONS_OF_USER, (messenger_id, project_id, *walk[:4], limit))
        for row in found:
            session = session_from(row, now)
            yield session
        if len(found) < limit:
            return
        walk = walk._replace(created_at=session.created_at, session_id=session.id)
