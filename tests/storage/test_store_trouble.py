"""The whole driver on a locked, full or read-only file, or after a crash between two statements."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.databases import NOW, expired_event, migrated_sqlite
from tests.storage.seed import Seed

from taproof.core.clock import MINUTE
from taproof.core.errors import StoreUnavailable
from taproof.core.sessions import SessionKey
from taproof.storage.sqlite.store import SqliteStorage

EVERYTHING = (
    "SELECT (SELECT group_concat(quote(id) || status || quote(opener_id) || quote(used_at)) FROM sessions), "
    "(SELECT group_concat(id || state) FROM webhook_events), (SELECT group_concat(messenger_id) FROM user_days), "
    "(SELECT group_concat(requested || ',' || opened || ',' || confirmed || ',' || used || ',' || cancelled || ',' "
    "|| expired || ',' || unique_users) FROM daily_counts), (SELECT group_concat(id || name) FROM projects)"
)


def content(sqlite: SqliteStorage) -> Any:
    """Return all that the steps of a session can change."""
    return sqlite.database.reader.execute(EVERYTHING).fetchall()


@pytest.mark.parametrize("trouble", ["locked", "read-only", "full"])
async def test_a_store_that_cannot_be_written_changes_nothing_and_recovers(
    trouble: str, new_seed: type[Seed], tmp_path: Path
) -> None:
    """Every step of a sign-in raises StoreUnavailable, reads continue, and later each step works once."""
    path = migrated_sqlite(tmp_path / "taproof.db")
    sqlite = SqliteStorage.open(path, NOW, lock_patience=0.02)
    seed, writer = new_seed(sqlite), sqlite.database.writer.connection
    project = await seed.project(webhook_url="https://example.com/")
    fresh, late = await seed.session(project), await seed.session(project, at=seed.now - 20 * MINUTE)
    opened, to_cancel = await seed.opened(project), await seed.opened(project)
    confirmed = await seed.confirmed(project)
    created = seed.new_session(project)
    steps: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: sqlite.sessions.create_session(created, public=True),
        lambda: sqlite.sessions.open_session(fresh.key, "1001", seed.now),
        lambda: sqlite.sessions.confirm_session(opened.key, seed.identity("1001"), seed.now, seed.event(project)),
        lambda: sqlite.sessions.cancel_session(to_cancel.key, "1001", seed.now, seed.event(project)),
        lambda: sqlite.sessions.consume_session(confirmed.key, seed.now),
        lambda: sqlite.sessions.expire_sessions(seed.now, 10, expired_event),
        lambda: sqlite.deliveries.claim_deliveries(seed.now, seed.now + 1, 10),
        lambda: sqlite.projects.delete_project(project.developer_id, project.id),
    ]
    before = content(sqlite)
    other = apsw.Connection(str(path))
    if trouble == "locked":
        other.execute("BEGIN IMMEDIATE")
    elif trouble == "read-only":
        writer.pragma("query_only", 1)
    else:
        # Any statement that must write a page fails as it does on a full disk, even where the file would not grow.
        writer.exec_trace = _full
    for step in steps:
        with pytest.raises(StoreUnavailable):
            await step()
    assert content(sqlite) == before
    assert (await sqlite.sessions.poll_session(fresh.key)) is not None
    await sqlite.ping()
    if trouble == "locked":
        other.execute("COMMIT")
    elif trouble == "read-only":
        writer.pragma("query_only", 0)
    else:
        writer.exec_trace = None
    other.close()
    assert all([await step() for step in steps])
    assert late.created_at < fresh.created_at
    await sqlite.close()


def _full(_cursor: apsw.Cursor, statement: str, _values: Any) -> bool:
    if statement.startswith(("BEGIN", "ROLLBACK")):
        return True
    raise apsw.FullError("database or disk is full")


async def test_a_really_full_database_refuses_sessions_and_keeps_those_it_has(
    sqlite: SqliteStorage, sqlite_seed: Seed
) -> None:
    """Sessions are created until the file cannot grow: each is stored and counted, or neither."""
    project = await sqlite_seed.project()
    writer = sqlite.database.writer.connection
    writer.pragma("max_page_count", writer.pragma("page_count") + 5)
    stored = 0
    with contextlib.suppress(StoreUnavailable):
        for _ in range(1_000):
            await sqlite.sessions.create_session(sqlite_seed.new_session(project), public=True)
            stored += 1
    assert 10 < stored < 1_000
    assert len(await sqlite.sessions.list_sessions([project.id], None, None, 10_000, sqlite_seed.now)) == stored
    assert (await sqlite.counts.read_daily_counts([project.id], 0))[0].requested == stored
    writer.pragma("max_page_count", 1_000_000)
    await sqlite_seed.session(project)


@pytest.mark.parametrize(
    "broken", ["counts.COUNT", "counts.COUNT_PROJECT_USERS", "counts.COUNT_DEVELOPER_USERS", "deliveries.RECORD_EVENT"]
)
async def test_a_decision_its_counts_and_its_event_are_one_transaction(
    broken: str, sqlite: SqliteStorage, sqlite_seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the UPDATE and before the rest of the transaction rolls the decision back; a retry works."""
    project = await sqlite_seed.project(webhook_url="https://example.com/")
    session = await sqlite_seed.opened(project)
    identity = sqlite_seed.identity("1001")
    before = content(sqlite)
    with monkeypatch.context() as crash:
        crash.setattr(f"taproof.storage.queries.{broken}", "INSERT INTO no_such_table VALUES (1)")
        with pytest.raises(apsw.SQLError):
            await sqlite.sessions.confirm_session(session.key, identity, sqlite_seed.now, sqlite_seed.event(project))
    assert content(sqlite) == before
    assert await sqlite.sessions.confirm_session(session.key, identity, sqlite_seed.now, sqlite_seed.event(project))


async def test_readers_see_no_half_of_a_group(sqlite: SqliteStorage, sqlite_seed: Seed) -> None:
    """While a group commits, a reader sees each session and its count together or neither."""
    project = await sqlite_seed.project()
    done = asyncio.Event()

    async def watch() -> None:
        while not done.is_set():
            ((sessions, requested),) = sqlite.database.reader.execute(
                "SELECT (SELECT COUNT(*) FROM sessions), (SELECT COALESCE(SUM(requested), 0) FROM daily_counts)"
            ).fetchall()
            assert sessions == requested
            await asyncio.sleep(0)

    watcher = asyncio.create_task(watch())
    for _ in range(10):
        await asyncio.gather(*(sqlite_seed.session(project) for _ in range(10)))
    done.set()
    await watcher


async def test_a_store_out_of_reach_is_told_by_reads_too(sqlite: SqliteStorage) -> None:
    """A closed connection is StoreUnavailable, not a driver's error."""
    sqlite.database.reader.close()
    with pytest.raises(StoreUnavailable):
        await sqlite.sessions.poll_session(SessionKey(0, b"?" * 32))
    with pytest.raises(StoreUnavailable):
        await sqlite.ping()


async def test_a_decision_that_waited_past_the_deadline_is_none(tmp_path: Path, new_seed: type[Seed]) -> None:
    """While a write waits for the lock, a poll may say "expired"; the decision must not come after that."""
    instant, path = [NOW], migrated_sqlite(tmp_path / "late.db")
    store, other = SqliteStorage.open(path, NOW, lambda: instant[0]), apsw.Connection(str(path))
    seed, sessions = new_seed(store), store.sessions
    identity, project, requiring = seed.identity("1001"), await seed.project(), await seed.project()
    await seed.update(requiring, same_device="require", allowed_origins=("https://a.example",))
    session, reported = await seed.opened(project), await seed.opened(project)
    returning = await seed.opened(requiring, code_challenge=b"c" * 32, return_url="https://a.example/")

    def decisions() -> list[Coroutine[Any, Any, object]]:
        return [
            sessions.await_return(returning.key, identity, NOW, b"c" * 32),
            sessions.confirm_session(session.key, identity, NOW, seed.event(project)),
            sessions.cancel_session(session.key, "1001", NOW, seed.event(project)),
            sessions.withdraw_session(session.key, NOW),
            sessions.report_session(reported.key, "1001", NOW, {}),
        ]

    other.execute("BEGIN IMMEDIATE")
    waiting = [asyncio.create_task(each) for each in decisions()]
    await asyncio.sleep(0)
    instant[0] = session.expires_at
    other.execute("COMMIT")
    assert not any(await asyncio.gather(*waiting))
    instant[0] = session.expires_at - 1
    assert list(map(bool, await asyncio.gather(*decisions()))) == [True, True, False, False, True]
    other.close()
    await store.close()
