"""Sessions as a developer looks them up on SQLite: page by page, newest first, and one by its id."""

import heapq
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from taproof.core.model import PageCursor, Session, Status
from taproof.storage import sql
from taproof.storage.rows import session_from
from taproof.storage.session_walks import Walk, page_start, session_walks

Read = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
"""Runs a statement with its values and returns the rows."""


def list_sessions(  # noqa: PLR0917 — those of the Protocol, in its order.
    read: Read,
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
    walks = session_walks(status, page_start(before), since, now, messenger_id)
    # One transaction for all walks: a session decided meanwhile is seen before or after, not twice and not never.
    read("BEGIN", ())
    try:
        each_newest_first = [
            _sessions(read, project_id, walk, messenger_id, now) for project_id in project_ids for walk in walks
        ]
        newest_first = heapq.merge(
            *each_newest_first, key=lambda session: (session.created_at, session.id), reverse=True
        )
        return list(itertools.islice(newest_first, limit))
    finally:
        read("COMMIT", ())


def _sessions(read: Read, project_id: str, walk: Walk, messenger_id: str | None, now: int) -> Iterator[Session]:
    """Yield the sessions of a walk in one project, newest first, reading little more than is asked for."""
    for limit in itertools.chain((1, 8, 64), itertools.repeat(200)):
        if messenger_id is None:
            found = read(sql.LIST_SESSIONS, (project_id, *walk, limit))
        else:
            found = read(sql.LIST_SESSIONS_OF_USER, (messenger_id, project_id, *walk[:4], limit))
        for row in found:
            yield session_from(row, now)
        if len(found) < limit:
            return
        walk = walk._replace(created_at=found[-1][6], session_id=found[-1][2])


def find_session(read: Read, project_ids: Sequence[str], created_at: int, session_id: str, now: int) -> Session | None:
    """Return one session, as `storage.protocol.Storage` has it."""
    found = read(sql.FIND_SESSION, (json.dumps(list(project_ids)), created_at, session_id))
    return session_from(found[0], now) if found else None
