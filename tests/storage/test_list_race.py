"""The list of sessions while another node decides: one page is one moment."""

from typing import TYPE_CHECKING, Any

import apsw

from taproof.core.clock import MINUTE
from taproof.storage.sqlite import SqliteStorage

if TYPE_CHECKING:
    from tests.storage.conftest import Seed


def between_walks(sqlite: SqliteStorage, change: str) -> None:
    """Let another node commit `change` right before the second statement that the reader runs on sessions."""
    seen: list[str] = []

    def interrupt(_cursor: apsw.Cursor, statement: str, _values: Any) -> bool:
        if "FROM sessions" in statement:
            seen.append(statement)
            if len(seen) == 2:
                sqlite._writer._connection.execute(change)
        return True

    sqlite._reader.exec_trace = interrupt


async def test_a_session_decided_meanwhile_is_listed_once(sqlite: SqliteStorage, sqlite_seed: "Seed") -> None:
    """Seen as pending or as cancelled, never as both on one page."""
    project = await sqlite_seed.project()
    session = await sqlite_seed.opened(project)
    between_walks(sqlite, "UPDATE sessions SET status = 'cancelled', cancelled_at = 1")
    found = await sqlite.list_sessions([project.id], None, None, 10, sqlite_seed.now)
    assert [each.id for each in found] == [session.id]


async def test_a_session_swept_meanwhile_is_not_lost(sqlite: SqliteStorage, sqlite_seed: "Seed") -> None:
    """Asked for the expired ones while housekeeping writes the expiry down: it is there."""
    project = await sqlite_seed.project()
    session = await sqlite_seed.session(project, at=sqlite_seed.now - 10 * MINUTE)
    between_walks(sqlite, "UPDATE sessions SET status = 'expired'")
    found = await sqlite.list_sessions([project.id], "expired", None, 10, sqlite_seed.now)
    assert [each.id for each in found] == [session.id]
