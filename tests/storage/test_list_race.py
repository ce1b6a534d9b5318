"""A page of sessions is one snapshot, even while another node decides."""

import asyncio
from typing import Any

import apsw
from tests.databases import expired_event
from tests.storage.seed import Seed

from taproof.core.clock import MINUTE
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage


def between_walks(sqlite: SqliteStorage, change: str) -> None:
    """Let another node commit `change` right before the second statement that a lookup runs on sessions."""
    seen: list[str] = []

    def interrupt(_cursor: apsw.Cursor, statement: str, _values: Any) -> bool:
        if "FROM sessions" in statement:
            seen.append(statement)
            if len(seen) == 2:
                sqlite.database.writer.connection.execute(change)
        return True

    sqlite.database.lookup.exec_trace = interrupt


async def test_a_session_decided_meanwhile_is_listed_once(sqlite: SqliteStorage, sqlite_seed: Seed) -> None:
    """The page shows a session as pending or as cancelled, never as both."""
    project = await sqlite_seed.project()
    session = await sqlite_seed.opened(project)
    between_walks(sqlite, "UPDATE sessions SET status = 'cancelled', cancelled_at = 1")
    found = await sqlite.sessions.list_sessions([project.id], None, None, 10, sqlite_seed.now)
    assert [each.id for each in found] == [session.id]


async def test_a_session_swept_meanwhile_is_not_lost(sqlite: SqliteStorage, sqlite_seed: Seed) -> None:
    """The list of expired sessions contains it while housekeeping records the expiry."""
    project = await sqlite_seed.project()
    session = await sqlite_seed.session(project, at=sqlite_seed.now - 10 * MINUTE)
    between_walks(sqlite, "UPDATE sessions SET status = 'expired'")
    found = await sqlite.sessions.list_sessions([project.id], "expired", None, 10, sqlite_seed.now)
    assert [each.id for each in found] == [session.id]


async def test_a_page_is_one_moment_however_many_decide(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Another node decides, uses and expires thirty sessions; each page has each of them once."""
    projects = [await seed.project() for _ in range(3)]
    late = [await seed.session(project, at=seed.now - 10 * MINUTE) for project in projects for _ in range(3)]
    early = [await seed.opened(project) for project in projects for _ in range(7)]

    async def decide() -> None:
        for number, session in enumerate(early):
            await other_node.sessions.expire_sessions(seed.now, 1, expired_event)
            event = seed.event(projects[number // 7])
            if number % 3:
                await other_node.sessions.confirm_session(session.key, seed.identity("1001"), seed.now, event)
                await other_node.sessions.consume_session(session.key, seed.now)
            else:
                await other_node.sessions.cancel_session(session.key, "1001", seed.now, event)

    deciding = asyncio.create_task(decide())
    expected = sorted(session.id for session in early + late)
    ids = [project.id for project in projects]
    while not deciding.done():
        found = await storage.sessions.list_sessions(ids, None, None, 100, seed.now)
        assert sorted(session.id for session in found) == expected
        expired = await storage.sessions.list_sessions(ids, "expired", None, 100, seed.now)
        assert {session.id for session in expired} == {session.id for session in late}
    await deciding
