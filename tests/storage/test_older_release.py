"""A database of the first release: it is taken over with its rows, and nodes of that release go on with it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import apsw
import asyncpg
import pytest
from tests.databases import NOW
from tests.postgres_server import fresh_database

from taproof.core.accounts import Developer
from taproof.core.clock import DAY, SECOND
from taproof.core.deliveries import DeliveryRecord
from taproof.core.model import EncryptedWebhookSecrets, NewSession, ProjectChanges, SessionKey
from taproof.storage import migrate
from taproof.storage.migrate import migrations
from taproof.storage.postgres.pool import migrate_postgres
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import ENDED_AT_ONCE, Storage
from taproof.storage.sqlite.connection import migrate_file
from taproof.storage.sqlite.store import SqliteStorage

if TYPE_CHECKING:
    from tests.storage.conftest import Seed

LEASE = 30 * SECOND
URL = "https://example.com/"
OLD_STEPS: Final = {"sqlite": 2, "postgres": 1}
# What a node of that release says of webhook events; of PostgreSQL's own statements these are the effects.
CREATE = """
INSERT INTO projects (id, developer_id, name, secret_key_hash, secret_key_preview, encrypted_webhook_secret,
  webhook_url, is_active, public_access, collect_phone, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"""
RECORD = """
INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id)
SELECT $1, $2, $3, $4, 'due', $4, 0, 0, p.id FROM projects p WHERE p.id = $5 AND p.webhook_url <> ''"""
CLAIM = """
UPDATE webhook_events SET leased_until = $1, attempts = attempts + 1 WHERE state = 'due' AND id IN
  (SELECT e.id FROM webhook_events e JOIN projects p ON p.id = e.project_id
   WHERE e.state = 'due' AND e.due_at <= $2 AND e.leased_until <= $2 AND p.webhook_url <> ''
   ORDER BY e.due_at LIMIT $3)
RETURNING id"""
FINISH = """
UPDATE webhook_events SET state = $1, finished_at = $2
WHERE id = $3 AND state = 'due' AND leased_until = $4 RETURNING id"""
CONFIRM = "SELECT * FROM confirm_sessions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
END = "UPDATE webhook_events SET state = 'ended', finished_at = $1 WHERE project_id = $2 AND state = 'due'"
ERASE = "DELETE FROM webhook_events WHERE project_id = $1"
# And of developers.
ADD_DEVELOPER = """
INSERT INTO developers (id, email, email_key, plan, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (email_key) DO NOTHING RETURNING id"""
LIST_DEVELOPERS = "SELECT id, email, plan, created_at FROM developers ORDER BY created_at, id"


class OldDatabase(NamedTuple):
    """A database with the older schema, until `open` brings it up to date."""

    driver: str
    run: Callable[..., Awaitable[list[Any]]]
    """Runs a statement as a node of the older release does, on a connection that it opened before the migration."""
    open: Callable[[], Awaitable[Storage]]


@pytest.fixture(params=sorted(OLD_STEPS))
async def old(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[OldDatabase]:
    driver = request.param
    steps = migrations(driver)[: OLD_STEPS[driver]]
    with monkeypatch.context() as older:
        older.setattr(migrate, "migrations", lambda _driver: steps)
        if driver == "sqlite":
            path = tmp_path / "taproof.db"
            migrate_file(path, NOW)
            connection = apsw.Connection(str(path))
            older.undo()

            async def run(statement: str, *values: Any) -> list[Any]:
                return connection.execute(statement, values).fetchall()

            async def open_store() -> Storage:
                return SqliteStorage.open(path, NOW)

            yield OldDatabase(driver, run, open_store)
            connection.close()
        else:
            with fresh_database() as dsn:
                await migrate_postgres(dsn, NOW)
                older.undo()
                node = await asyncpg.connect(dsn)
                yield OldDatabase(driver, node.fetch, lambda: PostgresStorage.open(dsn, NOW))
                await node.close()


async def with_events(old: OldDatabase, *event_ids: str) -> None:
    """Store a project of `dev_1` and events of it."""
    await old.run(CREATE, "proj_1", "dev_1", "Shop", b"hash", "sk_aaaa…zzzz", b"encrypted", URL, 1, 1, 0, NOW)
    for event_id in event_ids:
        await old.run(RECORD, event_id, "auth.confirmed", b"body", NOW, "proj_1")


async def seen(storage: Storage, event_id: str) -> DeliveryRecord:
    record = await storage.deliveries.read_delivery("dev_1", event_id)
    assert record is not None
    return record


async def test_what_an_older_release_left_is_taken_over(
    old: OldDatabase, new_seed: "Callable[[Storage], Seed]"
) -> None:
    """Events that were due, in hand, delivered and given up: seen, delivered and sent again as any other."""
    await with_events(old, "evt_delivered", "evt_failed", "evt_in_hand")
    assert len(await old.run(CLAIM, NOW + LEASE, NOW, 10)) == 3
    await old.run(FINISH, "delivered", NOW + 1, "evt_delivered", NOW + LEASE)
    await old.run(FINISH, "failed", NOW + 2, "evt_failed", NOW + LEASE)
    await old.run(RECORD, "evt_due", "auth.cancelled", b"body", NOW, "proj_1")
    storage = await old.open()
    seed = new_seed(storage)
    project = await storage.projects.read_project("proj_1")
    assert project is not None
    assert project.webhook_secrets == EncryptedWebhookSecrets(b"encrypted")
    assert (project.webhook_failing_since, project.webhook_off_at) == (None, None)
    found = await storage.deliveries.list_deliveries("proj_1", None, None, None, 10)
    assert {each.event_id: each.state for each in found} == {
        "evt_delivered": "delivered",
        "evt_failed": "failed",
        "evt_in_hand": "due",
        "evt_due": "due",
    }
    assert {(each.attempts, each.interrupted) for each in found} == {((), 0)}
    (due,) = await storage.deliveries.claim_deliveries(NOW, NOW + LEASE, 10)
    assert (due.event.id, due.attempt, due.stage) == ("evt_due", 1, 0)
    assert await seed.attempted(due, "delivered")
    (lapsed,) = await storage.deliveries.claim_deliveries(NOW + LEASE, NOW + 2 * LEASE, 10)
    assert (lapsed.event.id, lapsed.attempt) == ("evt_in_hand", 2)
    assert await seed.attempted(lapsed, "due", due_at=NOW + 9 * LEASE)
    assert (
        (await seen(storage, "evt_in_hand")).interrupted,
        await storage.deliveries.read_oldest_due(NOW + LEASE),
    ) == (1, None)
    for event_id in ("evt_delivered", "evt_failed"):
        assert await storage.deliveries.resend_delivery("dev_1", event_id, NOW + LEASE)
        (again,) = await storage.deliveries.claim_deliveries(NOW + LEASE, NOW + 2 * LEASE, 10)
        assert (again.event.id, again.attempt, again.stage) == (event_id, 2, 0)
        assert (await seen(storage, event_id)).interrupted == 0
    assert await storage.projects.rotate_webhook_secret("dev_1", "proj_1", b"next", NOW, NOW + 1)
    await storage.close()


async def test_nodes_of_both_releases_share_the_events(old: OldDatabase, new_seed: "Callable[[Storage], Seed]") -> None:
    """Neither takes what the other has in hand, whichever claims first; each outcome is written down once."""
    await with_events(old, "evt_1")
    storage = await old.open()
    seed = new_seed(storage)
    assert len(await old.run(CLAIM, NOW + LEASE, NOW, 10)) == 1
    assert await storage.deliveries.claim_deliveries(NOW, NOW + LEASE, 10) == []
    assert await storage.deliveries.read_oldest_due(NOW) is None
    await old.run(RECORD, "evt_2", "auth.confirmed", b"body", NOW, "proj_1")
    (ours,) = await storage.deliveries.claim_deliveries(NOW, NOW + LEASE, 10)
    assert await old.run(CLAIM, NOW + LEASE, NOW + LEASE - 1, 10) == []
    assert len(await old.run(FINISH, "delivered", NOW, "evt_1", NOW + LEASE)) == 1
    assert await seed.attempted(ours, "due", due_at=NOW + 5)
    # An old node makes the next attempt, and its worker is killed: the one after that is the new node's.
    assert [tuple(row) for row in await old.run(CLAIM, NOW + 5 + LEASE, NOW + 5, 10)] == [("evt_2",)]
    assert await storage.deliveries.claim_deliveries(NOW + 5, NOW + LEASE, 10) == []
    (again,) = await storage.deliveries.claim_deliveries(NOW + 5 + LEASE, NOW + 2 * LEASE, 10)
    assert await old.run(FINISH, "failed", NOW + LEASE, "evt_2", NOW + 5 + LEASE) == []
    assert (again.attempt, again.stage) == (3, 2)
    assert await seed.attempted(again, "delivered")
    record = await seen(storage, "evt_2")
    assert [each.number for each in record.attempts] == [1, 3]
    assert record.interrupted == 1
    await storage.close()


async def test_what_an_old_node_ends_is_ended(old: OldDatabase, new_seed: "Callable[[Storage], Seed]") -> None:
    """It empties the URL while a new node sends: the outcome changes nothing, as between nodes of one release."""
    await with_events(old, "evt_1")
    storage = await old.open()
    (ours,) = await storage.deliveries.claim_deliveries(NOW, NOW + LEASE, 10)
    await old.run(END, NOW, "proj_1")
    assert not await new_seed(storage).attempted(ours, "delivered")
    assert (await seen(storage, "evt_1")).state == "ended"
    assert await storage.deliveries.resend_delivery("dev_1", "evt_1", NOW)
    assert len(await storage.deliveries.claim_deliveries(NOW, NOW + LEASE, 10)) == 1
    await storage.close()


async def test_a_webhook_that_an_old_node_sets_is_not_ended(old: OldDatabase) -> None:
    """It does not wait until all of the removed one's deliveries have ended: what comes then must not be lost."""
    await with_events(old, *(f"evt_{number}" for number in range(ENDED_AT_ONCE + 5)))
    storage = await old.open()
    await storage.projects.update_project("dev_1", "proj_1", ProjectChanges(webhook_url=""), NOW)
    await old.run("UPDATE projects SET webhook_url = $1 WHERE id = 'proj_1'", URL)
    await old.run(RECORD, "evt_new", "auth.confirmed", b"body", NOW, "proj_1")
    assert await storage.deliveries.end_deliveries(100) == 0
    assert await storage.projects.update_project("dev_1", "proj_1", ProjectChanges(webhook_url=URL), NOW) is not None
    claimed = await storage.deliveries.claim_deliveries(NOW, NOW + LEASE, 1_000)
    assert "evt_new" in {each.event.id for each in claimed}
    await storage.close()


@pytest.mark.parametrize("old", ["postgres"], indirect=True)
async def test_what_an_old_node_erases_takes_its_attempts_along(
    old: OldDatabase, new_seed: "Callable[[Storage], Seed]"
) -> None:
    """It does not know of attempts: they hold what receivers answered and must not outlive their event."""
    await with_events(old, "evt_1", "evt_2")
    storage = await old.open()
    seed = new_seed(storage)
    held = await storage.deliveries.claim_deliveries(NOW, NOW + LEASE, 10)
    assert await asyncio.gather(*(seed.attempted(each, "failed") for each in held)) == [True, True]
    assert len(await old.run("SELECT * FROM webhook_attempts")) == 2
    await old.run(ERASE, "proj_1")
    assert await old.run("SELECT * FROM webhook_attempts") == []
    await storage.close()


async def test_the_oldest_developer_becomes_the_owner(old: OldDatabase) -> None:
    """Somebody must be able to invite: of equal age it is the first by id, and it stays so with each start."""
    for number, created_at in ((3, NOW + 1), (2, NOW), (1, NOW)):
        await old.run(
            ADD_DEVELOPER, f"dev_{number}", f"{number}@example.com", f"{number}@example.com", "pro", created_at
        )
    for _ in range(2):
        storage = await old.open()
        assert await storage.developers.list_developers() == [
            Developer("dev_1", "1@example.com", "pro", NOW, is_owner=True),
            Developer("dev_2", "2@example.com", "pro", NOW),
            Developer("dev_3", "3@example.com", "pro", NOW + 1),
        ]
        await storage.close()


async def test_a_database_without_developers_gets_no_owner(old: OldDatabase) -> None:
    """Its first one comes by an invitation."""
    storage = await old.open()
    assert await storage.developers.list_developers() == []
    await storage.close()


async def test_an_old_node_goes_on_with_developers(old: OldDatabase) -> None:
    """What it adds is no owner and has no messenger account; it reads what a new node has added."""
    storage = await old.open()
    ada = Developer("dev_1", "ada@example.com", "pro", NOW, is_owner=True, messenger_id="1001", messenger_name="Ada")
    assert await storage.developers.create_developer(ada)
    for number in (2, 3):
        values = (f"dev_{number}", f"{number}@example.com", f"{number}@example.com", "free", NOW)
        assert len(await old.run(ADD_DEVELOPER, *values)) == 1
    listed = [tuple(row) for row in await old.run(LIST_DEVELOPERS)]
    assert listed[0] == ("dev_1", "ada@example.com", "pro", NOW)
    assert await storage.developers.list_developers() == [
        ada,
        Developer("dev_2", "2@example.com", "free", NOW),
        Developer("dev_3", "3@example.com", "free", NOW),
    ]
    await storage.close()


async def test_events_of_an_old_node_name_no_session(old: OldDatabase) -> None:
    """It does not know of the column: they are listed and sent as any other, and found by their id."""
    await with_events(old, "evt_before")
    storage = await old.open()
    await old.run(RECORD, "evt_after", "auth.cancelled", b"body", NOW, "proj_1")
    found = await storage.deliveries.list_deliveries("proj_1", None, None, None, 10)
    assert {each.event_id: each.session_id for each in found} == {"evt_before": None, "evt_after": None}
    assert await storage.deliveries.find_deliveries("proj_1", NOW, "sess_1") == []
    await storage.close()


@pytest.mark.parametrize("old", ["postgres"], indirect=True)
async def test_old_nodes_confirm_through_the_function_as_it_was(
    old: OldDatabase, new_seed: "Callable[[Storage], Seed]"
) -> None:
    """They have prepared the call before the migration replaces the function: it goes on, and names sessions too."""
    await with_events(old)
    await old.run(f"CREATE TABLE sessions_{NOW // DAY} PARTITION OF sessions FOR VALUES IN ({NOW // DAY})")

    async def confirm(session: NewSession, event_id: str) -> None:
        event = ([event_id], ["auth.confirmed"], [b"body"], [NOW], ["proj_1"])
        who = (["1001"], ["Ada"], ["ada"], [NOW])
        (moved,) = await old.run(CONFIRM, [session.key.day], *([each] for each in session.key), [NOW], *who, *event)
        assert tuple(moved) == session.key

    await old.run(
        "INSERT INTO sessions (day, token_hash, id, project_id, status, created_at, expires_at, opener_id) "
        "VALUES ($1, $2, 'sess_before', 'proj_1', 'pending', $3, $4, '1001')",
        NOW // DAY,
        b"before",
        NOW,
        NOW + 1,
    )
    before = NewSession(SessionKey(NOW // DAY, b"before"), "sess_before", "proj_1", NOW, NOW + 1)
    await confirm(before, "evt_before")
    storage = await old.open()
    project = await storage.projects.read_project("proj_1")
    assert project is not None
    after = await new_seed(storage).opened(project)
    await confirm(after, "evt_after")
    found = await storage.deliveries.list_deliveries("proj_1", None, None, None, 10)
    assert {each.event_id: each.session_id for each in found} == {"evt_before": None, "evt_after": after.id}
    assert len(await storage.sessions.list_sessions(["proj_1"], "confirmed", None, 9, NOW, messenger_id="1001")) == 2
    await storage.close()


@pytest.mark.parametrize("old", ["postgres"], indirect=True)
async def test_the_days_of_an_older_release_get_one_index_each(old: OldDatabase) -> None:
    """They are built day by day, before the one of the whole table, which takes them over and builds no second one."""
    today = NOW // DAY
    for day in (today + 1, today - 1, today):
        await old.run(f"CREATE TABLE sessions_{day} PARTITION OF sessions FOR VALUES IN ({day})")
    storage = await old.open()
    await storage.sessions.prepare_days(today, today + 2)
    found = await old.run(
        "SELECT i.indrelid::REGCLASS::TEXT AS name, h.inhparent::REGCLASS::TEXT AS whole, i.indisvalid "
        "FROM pg_index i LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid "
        "WHERE pg_get_indexdef(i.indexrelid) LIKE '%(messenger_id, project_id, status, created_at, id)%' ORDER BY name"
    )
    assert [tuple(row) for row in found] == [
        ("sessions", None, True),
        *((f"sessions_{day}", "sessions_by_messenger", True) for day in range(today - 1, today + 3)),
    ]
    await storage.close()
