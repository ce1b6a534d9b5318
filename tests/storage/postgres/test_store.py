"""The PostgreSQL store only: schemas, addresses, lost connections, deadlocks, signals, late statements."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.databases import NOW, expired_event, new_postgres
from tests.postgres_server import PostgresServer, execute
from tests.storage.conformance.test_decisions import cancel, watching
from tests.storage.seed import Seed, present
from tests.waiting import until

from taproof.core.clock import DAY
from taproof.core.errors import StoreUnavailable
from taproof.core.projects import ProjectChanges
from taproof.core.sessions import ReturnPolicy
from taproof.storage import migrate
from taproof.storage.migrate import Migration, MigrationChanged, migrations
from taproof.storage.postgres import statements
from taproof.storage.postgres.connection import PostgresTooOld, migrate_database
from taproof.storage.postgres.store import PostgresStorage

LATEST = len(migrations("postgres"))


@new_postgres
async def test_nodes_that_start_at_once_migrate_once(dsn: str) -> None:
    """One node applies each step, the others wait for it; the next start changes nothing."""
    found = await asyncio.gather(*(migrate_database(dsn, NOW) for _ in range(5)))
    assert [before for before, _ in found].count(0) == 1
    assert {after for _, after in found} == {LATEST}
    assert await migrate_database(dsn, NOW) == (LATEST, LATEST)


@new_postgres
async def test_a_changed_migration_is_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another history than this release's, no missing step is applied, and a failed step is rolled back."""
    first = Migration(1, "one", "CREATE TABLE one (x INTEGER)")

    def with_migrations(*steps: Migration) -> None:
        monkeypatch.setattr(migrate, "migrations", lambda _driver: list(steps))

    with_migrations(first, Migration(2, "two", "CREATE TABLE two (x INTEGER); SELECT 1 / 0"))
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate_database(dsn, NOW)
    with_migrations(
        replace(first, sql="CREATE TABLE one (y INTEGER)"), Migration(2, "two", "CREATE TABLE two (x TEXT)")
    )
    with pytest.raises(MigrationChanged):
        await migrate_database(dsn, NOW)
    with_migrations(first, Migration(2, "two", "CREATE TABLE two (x INTEGER)"))
    assert await migrate_database(dsn, NOW + 5) == (1, 2)
    assert execute(dsn, "SELECT version, applied_at FROM schema_migrations ORDER BY 1").split() == [
        "1|2026-11-20T22:44:03.127Z",
        "2|2026-11-20T22:44:03.132Z",
    ]


@new_postgres
async def test_a_newer_schema_is_left_as_it_is(dsn: str) -> None:
    """Old nodes run on the new schema during a rolling deploy."""
    await migrate_database(dsn, NOW)
    execute(dsn, "INSERT INTO schema_migrations VALUES (9000, 'later', 'checksum', '2030')")
    assert await migrate_database(dsn, NOW) == (9000, 9000)
    store = await PostgresStorage.open(dsn, NOW)
    assert await store.metadata.claim_mark("works", b"yes") == b"yes"
    await store.close()


@new_postgres
async def test_a_server_that_is_too_old_is_refused(dsn: str) -> None:
    """An old server cannot drop a day without blocking everybody, so the start fails and changes nothing."""
    with pytest.raises(PostgresTooOld, match="14 or newer"):
        await migrate_database(dsn, NOW, oldest_server=999)
    assert execute(dsn, "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'").strip() == "0"


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("postgresql://ada:s3cret@127.0.0.1:1/taproof", "refused the connection"),
        ("postgresql://ada:s3cret@nowhere.invalid/taproof", "cannot be resolved"),
        ("postgresql://ada:1/s3cret@127.0.0.1/taproof", "Write %40"),
        ("postgresql://ada:s3/cret@127.0.0.1/taproof", "Write %40"),
        ("postgresql://ada:s3cret@127.0.0.1:port/taproof", "cannot be read"),
        ("postgresql://ada:s3cret@127.0.0.1/taproof?sslmode=s3cret", "sslmode .* must be disable, allow,"),
        ("postgresql://ada:s3cret@127.0.0.1/taproof?sslmode=verify-full", "sslrootcert=FILE"),
    ],
)
async def test_an_address_that_does_not_work_is_refused_with_a_sentence(
    address: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence says what to check, and contains no part of the password, however it was mistyped."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(StoreUnavailable, match=sentence) as caught:
        await PostgresStorage.open(address, NOW)
    assert "TAPROOF_DATABASE_URL" in caught.value.sentence
    assert "cret" not in caught.value.sentence
    with pytest.raises(StoreUnavailable):
        await migrate_database(address, NOW)


async def test_what_the_server_refuses_is_named(dsn: str) -> None:
    """The sentence names the refused database, user or parameter, but never its value."""
    for address, sentence in (
        (f"{dsn}_missing", "no such database"),
        (dsn.replace("postgres@", "nobody:s3cret@"), "refuses this user"),
        (f"{dsn}?sslmode=require", "does not offer TLS"),
        (f"{dsn}?sslmod=s3cret", "does not know: sslmod. Did you mean sslmode"),
        (f"{dsn}?options=-c%20work_mem%3Ds3cret", "does not accept a setting in options .*: work_mem"),
        (f"{dsn}?options=-c%20work_men%3Ds3cret", "does not know a setting in options .*: work_men"),
    ):
        for attempt in (PostgresStorage.open, migrate_database):
            with pytest.raises(StoreUnavailable, match=sentence) as caught:
                await attempt(address, NOW)
            assert "cret" not in caught.value.sentence


@new_postgres
async def test_a_user_who_may_not_make_tables_is_told_the_way_out(dsn: str) -> None:
    """Without the right to create tables, or without a schema, the sentence has the SQL that fixes it."""
    execute(dsn, "DROP SCHEMA public CASCADE")
    with pytest.raises(StoreUnavailable, match="ALTER DATABASE <database> OWNER TO <user>"):
        await migrate_database(dsn, NOW)


async def test_a_connection_that_was_cut_is_replaced(
    postgres: PostgresStorage, other_node: PostgresStorage, dsn: str, seed: Seed
) -> None:
    """Calls in progress get StoreUnavailable; the next call works."""
    session = await seed.session(await seed.project())
    for _ in range(3):
        calls = [asyncio.create_task(postgres.sessions.read_session(session.key)) for _ in range(20)]
        execute(dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'taproof'")
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(each, StoreUnavailable) for each in outcomes if isinstance(each, BaseException))
        with contextlib.suppress(StoreUnavailable):
            await postgres.ping()
        for store in (postgres, other_node):
            for _ in range(20):
                with contextlib.suppress(StoreUnavailable):
                    await store.ping()
            assert await store.sessions.poll_session(session.key) is not None


async def test_a_server_that_stops_and_starts() -> None:
    """Each call immediately gets StoreUnavailable and no other error; then everything works again by itself."""
    server = PostgresServer()
    try:
        store = await PostgresStorage.open(server.dsn(), NOW)
        seed = Seed(store)
        project = await seed.project()
        session = await seed.opened(project)
        await asyncio.to_thread(server.stop, "immediate")
        for call in (
            store.ping(),
            store.sessions.poll_session(session.key),
            store.sessions.read_session(session.key),
            store.sessions.create_session(seed.new_session(project), public=True),
            store.sessions.confirm_session(session.key, seed.identity("1001"), NOW, seed.event(project)),
            store.sessions.consume_session(session.key, NOW),
            store.sessions.list_sessions([project.id], None, None, 5, NOW),
            store.sessions.expire_sessions(NOW, 5, expired_event),
            store.sessions.purge_sessions(0, 5),
            store.bots.claim_update(1, 1, NOW, 0),
            store.leases.hold_lease("lead", "me", NOW, NOW + 1),
            store.projects.update_project(project.developer_id, project.id, ProjectChanges(name="New"), NOW),
        ):
            with pytest.raises(StoreUnavailable) as caught:
                await call
            assert caught.value.__cause__ is not None
        await asyncio.to_thread(server.start)
        assert await store.sessions.confirm_session(session.key, seed.identity("1001"), NOW, seed.event(project))
        await store.close()
    finally:
        server.close()


async def test_a_standby_is_no_place_to_write(dsn: str, postgres: PostgresStorage, seed: Seed) -> None:
    """After a fail-over, the old primary refuses writes: calls get StoreUnavailable.

    The store then finds the new primary.
    """
    project = await seed.project()
    database = dsn.rpartition("/")[2]
    execute(dsn, f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    execute(dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'taproof'")
    for _ in range(10):
        with contextlib.suppress(StoreUnavailable):
            await postgres.ping()
    with pytest.raises(StoreUnavailable):
        await postgres.sessions.create_session(seed.new_session(project), public=True)
    with pytest.raises(StoreUnavailable, match="read-only"):
        await PostgresStorage.open(dsn, NOW)
    execute(dsn, "SET default_transaction_read_only = off", f"ALTER DATABASE {database} RESET ALL")
    # One more may fail: a connection that was opened before the fail-over was over.
    for _ in range(2):
        with contextlib.suppress(StoreUnavailable):
            await postgres.sessions.create_session(seed.new_session(project), public=True)
    assert await postgres.sessions.create_session(seed.new_session(project), public=True)


async def test_a_caller_that_goes_away_harms_nobody(postgres: PostgresStorage, seed: Seed) -> None:
    """Half of all callers are cancelled at random moments: the others get answers, and no connection is lost."""
    project = await seed.project()
    session = await seed.session(project)
    for turn in range(60):
        reads = [
            postgres.sessions.read_session(session.key) if number % 4 < 2 else postgres.ping() for number in range(16)
        ]
        calls = [asyncio.ensure_future(read) for read in reads]
        for _ in range(turn % 12):
            await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert not [each for each in outcomes if isinstance(each, Exception)]
        assert not [each for each in outcomes[1::2] if isinstance(each, BaseException)]
    await asyncio.wait_for(asyncio.gather(*(postgres.ping() for _ in range(50))), 5)


async def test_batches_of_two_nodes_never_wait_in_a_circle(
    postgres: PostgresStorage, other_node: PostgresStorage, dsn: str, seed: Seed
) -> None:
    """The same sessions, people and counters in opposite orders, with sweeps between: no deadlock is ever found."""
    ada = await seed.developer()
    projects = [await seed.project(ada, webhook_url="https://example.com/") for _ in range(3)]
    for turn in range(6):
        new = [await seed.session(projects[number % 3], at=NOW - number % 2 * DAY) for number in range(24)]
        both = [(postgres, each) for each in new] + [(other_node, each) for each in new[::-1]]
        openers = [f"{number % 5}" for number in range(len(both))]
        await asyncio.gather(
            *(
                store.sessions.open_session(each.key, opener, each.created_at)
                for (store, each), opener in zip(both, openers, strict=True)
            )
        )
        steps: list[Coroutine[Any, Any, object]] = []
        for number, (store, each) in enumerate(both):
            seen = present(await postgres.sessions.read_session(each.key))
            assert seen.opener_id is not None
            event = seed.event(replace(projects[0], id=each.project_id))
            if (number + turn) % 3:
                identity = seed.identity(seen.opener_id)
                steps.append(store.sessions.confirm_session(each.key, identity, each.created_at, event))
            else:
                steps.append(store.sessions.cancel_session(each.key, seen.opener_id, each.created_at, event))
        steps += [store.sessions.expire_sessions(NOW + DAY, 5, expired_event) for store in (postgres, other_node)]
        if turn == 4:
            await postgres.projects.delete_project(ada.id, projects[2].id)
            steps += [store.projects.purge_deleted_projects(40) for store in (postgres, other_node)]
            projects[2] = projects[1]
        await asyncio.gather(*steps)
        await asyncio.gather(*(store.sessions.consume_session(each.key, NOW) for store, each in both))
    assert execute(dsn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").strip() == "0"


@pytest.mark.parametrize("decision", ["cancel_session", "report_session"])
async def test_a_decision_locks_the_counts_before_the_project(
    postgres: PostgresStorage, dsn: str, seed: Seed, decision: str
) -> None:
    """A decision that waits for the day's counts holds no lock on its project, so it cannot deadlock with a confirm."""
    project = await seed.project(await seed.developer(), webhook_url="https://example.com/")
    session = await seed.opened(project, user="7")
    event = seed.event(project, "auth.cancelled")
    holder, prober = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    try:
        async with holder.transaction():
            await holder.execute("SELECT 1 FROM daily_counts WHERE project_id = $1 FOR UPDATE", project.id)
            decide: Callable[..., Coroutine[Any, Any, object]] = getattr(postgres.sessions, decision)
            values = {"pending": [event]} if decision == "report_session" else event
            deciding = asyncio.ensure_future(decide(session.key, "7", NOW, values))
            await until(lambda: prober.fetchval("SELECT 1 FROM pg_locks WHERE NOT granted"))
            async with prober.transaction():
                assert await prober.fetch("SELECT id FROM projects WHERE id = $1 FOR UPDATE NOWAIT", project.id)
        assert await deciding
    finally:
        await holder.close()
        await prober.close()
    assert await postgres.deliveries.claim_deliveries(NOW, NOW + DAY, 5)


async def test_decisions_are_heard_by_every_node(
    postgres: PostgresStorage, other_node: PostgresStorage, dsn: str, seed: Seed
) -> None:
    """Decisions also arrive after the listener's connection was cut; invalid signals are ignored."""
    project = await seed.project()
    async with watching(other_node.sessions.watch_decisions, seed, project) as watch:
        for junk in ("", "x", "1:zz", ":00", "9:9"):
            execute(dsn, f"NOTIFY taproof_decisions, '{junk}'")
        assert await watch.hears(*await asyncio.gather(*(cancel(seed, project) for _ in range(130))))
        execute(dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'taproof'")
        await watch.warm_up(project)


async def test_a_creation_that_outlives_its_project_leaves_nothing(
    postgres: PostgresStorage, dsn: str, seed: Seed
) -> None:
    """A creation on another node, in progress while the project was deleted and purged, is erased in the last pass."""
    project = await seed.project(webhook_url="https://example.com/")
    await postgres.sessions.prepare_days(NOW // DAY, NOW // DAY)
    node = await asyncpg.connect(dsn)
    async with node.transaction():
        values = (
            [NOW // DAY],
            [b"h" * 32],
            ["sess_late"],
            [NOW],
            [NOW + 1],
            [None],
            [0],
            *([None],) * 4,
            [project.id],
            [1],
        )
        assert await node.fetch(statements.CREATE_SESSIONS, *values)
        assert await postgres.projects.delete_project(project.developer_id, project.id)
        await seed.purge_projects()
    await node.close()
    left = "SELECT COUNT(*) FROM {}"
    tables = ("sessions", "daily_counts", "deleted_projects")
    assert execute(dsn, *(left.format(table) for table in tables)).split() == ["1"] * 3
    execute(dsn, "UPDATE deleted_projects SET deleted_at = deleted_at - INTERVAL '61 seconds'")
    await seed.purge_projects()
    assert execute(dsn, *(left.format(table) for table in tables)).split() == ["0"] * 3


async def test_a_value_that_fits_no_column_is_a_bug_and_no_outage(postgres: PostgresStorage, seed: Seed) -> None:
    """If it counted as an outage, it would be retried forever; the other items of the batch succeed."""
    project = await seed.project()
    good, bad = seed.new_session(project), seed.new_session(project)._replace(expires_at=2**70)
    outcomes = await asyncio.gather(
        *(postgres.sessions.create_session(each, public=True) for each in (good, bad)), return_exceptions=True
    )
    assert isinstance(outcomes[0], ReturnPolicy)
    assert isinstance(outcomes[1], asyncpg.DataError | ValueError)
