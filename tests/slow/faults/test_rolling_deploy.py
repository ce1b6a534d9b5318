"""Nodes of two releases share a database: old ones work on the newer schema, new ones continue their work."""

import asyncio

import asyncpg
import pytest
from tests.databases import expired_event
from tests.faults.load import loaded
from tests.faults.place import Place, assert_counters_fit

from taproof.core.identity import MessengerIdentity
from taproof.runtime.store import migrate
from taproof.storage import migrate as migrating
from taproof.storage.migrate import Migration, migrations

TABLES = (
    *("access_tokens", "bot_updates", "daily_counts", "daily_users", "deleted_projects", "developers", "leases"),
    *("metadata", "projects", "sessions", "user_days", "webhook_events", "invitations", "console_sessions"),
    *("audit_entries", "project_members", "member_origins", "member_invitations"),
)
# A change that a later release may make to the busiest table, and a time in which it holds its locks.
ADDED = """
ALTER TABLE sessions ADD COLUMN device TEXT NOT NULL DEFAULT '';
CREATE TABLE later (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE INDEX sessions_by_device ON sessions (device, created_at);
"""
HOLD = {
    "sqlite": """
WITH RECURSIVE n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 1000000) SELECT MAX(x) FROM n;""",
    "postgres": "SELECT pg_sleep(0.5);",
}
ADDED_EVERYWHERE = "\n".join(f"ALTER TABLE {table} ADD COLUMN of_later TEXT;" for table in TABLES)


def driver_of(place: Place) -> str:
    return "sqlite" if place.url.startswith("sqlite") else "postgres"


def release(monkeypatch: pytest.MonkeyPatch, driver: str, steps: list[Migration]) -> None:
    """Give this process the migrations of a release; other processes have the current ones."""
    present = migrations

    def of_release(asked: str) -> list[Migration]:
        return steps if asked == driver else present(asked)

    monkeypatch.setattr(migrating, "migrations", of_release)


async def migrate_as_later(place: Place, monkeypatch: pytest.MonkeyPatch, statements: str) -> None:
    """Migrate the database to the schema of a future release."""
    driver = driver_of(place)
    steps = migrations(driver)
    with monkeypatch.context() as patched:
        release(patched, driver, [*steps, Migration(len(steps) + 1, "later", statements)])
        # SQLite's driver works in the thread that calls it, and this thread must not block.
        found = await asyncio.to_thread(lambda: asyncio.run(migrate(place.url)))
        assert found == (len(steps), len(steps) + 1)


async def test_old_nodes_serve_while_and_after_a_newer_release_migrates(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two working nodes refuse nothing while the schema changes; a node that starts later joins."""
    async with loaded(place) as load:
        for worker in load.workers:
            await worker.until_acknowledged(50)
        await migrate_as_later(place, monkeypatch, ADDED + HOLD[driver_of(place)])
        for worker in load.workers:
            await worker.until_acknowledged(50)
        await load.kill(load.workers[0])
        await (await load.start("confirms")).until_acknowledged(50)
        assert load.ledger.unavailable == []


async def test_every_kind_of_call_goes_on_when_the_schema_changes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node's prepared statements keep working after the tables have grown."""
    async with place.sign_in() as signin:
        storage = signin.storage

        async def call_all(user: str) -> None:
            project = await storage.projects.read_project(place.project_id)
            assert project is not None
            token = (await signin.create_session(project.id, public=True)).session_token
            await signin.open_session(token, user)
            assert (await signin.confirm_session(token, MessengerIdentity(user, "Ada", ""))).changed
            assert (await signin.verify_session(project.id, token, public=True)).proof
            assert len(await storage.sessions.list_sessions([project.id], None, None, 10, 0)) > 0
            assert await storage.projects.list_projects(project.developer_id)
            assert await storage.counts.read_daily_counts([project.id], 0)
            assert await storage.counts.read_daily_users(project.developer_id, 0)
            assert await storage.leases.hold_lease("bot", user, 0, 0)
            assert await storage.metadata.claim_mark(user, b"mark") == b"mark"
            assert await storage.bots.claim_update(1, int(user), 0, 0) == "claimed"
            assert await storage.developers.list_developers()
            assert await storage.deliveries.claim_deliveries(2**52, 2**52, 10)
            await storage.sessions.expire_sessions(0, 10, expired_event)
            await storage.deliveries.purge_events(0, 10)
            await storage.counts.purge_user_days(0, 10)
            await storage.bots.purge_updates(0, 10)

        await call_all("1")
        await migrate_as_later(place, monkeypatch, ADDED + ADDED_EVERYWHERE)
        await call_all("2")
    await assert_counters_fit(place.url)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
async def test_a_migration_that_met_a_circle_of_locks_is_repeated(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new node starts even if its migration deadlocks with the running nodes, which lock tables in any order."""
    node = await asyncpg.connect(place.url, server_settings={"deadlock_timeout": "60s"})
    try:
        async with node.transaction():
            await node.execute("SELECT FROM projects")
            statements = "ALTER TABLE sessions ADD COLUMN device TEXT; ALTER TABLE projects ADD COLUMN logo TEXT"
            migration = asyncio.create_task(migrate_as_later(place, monkeypatch, statements))
            # It has locked one table and waits for the other: the deadlock that it must resolve.
            waits = "SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
            while not await node.fetch(waits):  # noqa: ASYNC110 — the server tells only those who ask.
                await asyncio.sleep(0.01)
            await node.execute("SELECT FROM sessions")
        await migration
    finally:
        await node.close()
