"""Sessions on PostgreSQL: one partition a day, created ahead or on demand, and dropped whole."""

import asyncio

import asyncpg
import pytest
from tests.databases import NOW, new_postgres
from tests.storage.seed import Seed
from tests.waiting import until

from taproof.core.clock import DAY
from taproof.storage.postgres import prompts, statements
from taproof.storage.postgres.partitions import SESSION_TABLES, Partitions
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.queries import prompts as prompt_queries
from taproof.storage.queries import sessions as queries

TODAY = NOW // DAY


async def days(connection: asyncpg.Connection) -> dict[int, bool | None]:
    """Return the tables of days; True for one that is half detached, None for one that is detached."""
    return dict(tuple(row) for row in await connection.fetch(SESSION_TABLES))


async def session_scans(connection: asyncpg.Connection, statement: str, *values: object) -> list[str]:
    """Return how a statement looks at the tables of sessions."""
    lines = await connection.fetch(f"EXPLAIN {statement}", *values)
    return [row[0].strip(" ->") for row in lines if "Scan" in row[0] and "sessions" in row[0]]


@new_postgres  # A used database has statistics, even when it is empty.
async def test_a_statement_walks_down_the_primary_key_of_its_own_days(
    postgres: PostgresStorage, connection: asyncpg.Connection
) -> None:
    """For any number of days and without statistics, no poll locks all partitions or reads a whole day."""
    await postgres.sessions.prepare_days(TODAY - 8, TODAY)
    await connection.execute(f"ALTER TABLE sessions_{TODAY} SET (autovacuum_enabled = off)")
    await connection.execute(
        "INSERT INTO sessions (day, token_hash, id, project_id, status, created_at, expires_at) "
        "SELECT $1, sha256(n::TEXT::BYTEA), n::TEXT, 'p', 'pending', 0, 0 FROM generate_series(1, 10000) n",
        TODAY,
    )
    days, hashes = [TODAY] * 64, [bytes([number]) * 32 for number in range(64)]
    texts, times = ["x"] * 64, [NOW] * 64
    of_many = ([TODAY], days, hashes)
    key, code = (TODAY, hashes[0]), hashes[1]
    for statement, values in (
        (statements.POLL_SESSIONS, of_many),
        (statements.READ_SESSIONS, (*of_many, texts)),
        (statements.OPEN_SESSIONS, (*of_many, times, times, texts, texts)),
        (statements.WITHDRAW_SESSIONS, (*of_many, times, times)),
        (prompts.RECORD_PROMPTS, (*of_many, times, texts, times, texts)),
        (statements.CANCEL_SESSIONS, (*of_many, times, times, texts, texts, texts, hashes, times, texts)),
        (statements.CONSUME_SESSIONS, (*of_many, times)),
        (statements.EXPIRE_ASKED_SESSIONS, (*of_many, times)),
        (statements.AWAIT_RETURN, (NOW, NOW, "1", "x", "x", code, None, *key, NOW)),
        (statements.RENEW_RETURN, (code, "1", *key, NOW)),
        (queries.READ_RETURNING_USER, (*key, code)),
        (queries.SET_HINT, ("opened", *key)),
        (prompt_queries.SET_UNREACHABLE, key),
        (prompt_queries.SET_REACHABLE, ("opened", *key)),
        (f"{prompt_queries.READ_REACHABLE} FOR UPDATE", key),
        (prompt_queries.READ_RENEWAL, (*key, "1")),
        (prompt_queries.RENEW_PROMPT, (1, "1", "en", NOW, "x", *key, 0)),
    ):
        scans = await session_scans(connection, statement, *values)
        assert scans
        assert [scan for scan in scans if f"Index Scan using sessions_{TODAY}_pkey" not in scan] == []


@new_postgres
async def test_a_sweep_reads_only_the_overdue_sessions_of_a_day(
    postgres: PostgresStorage, connection: asyncpg.Connection
) -> None:
    """The sweep runs every second, when nearly all sessions of a day are decided."""
    await postgres.sessions.prepare_days(TODAY - 8, TODAY)
    scans = await session_scans(connection, statements.EXPIRE_SESSIONS, TODAY, NOW, 100)
    expected = [f"Index Scan using sessions_{TODAY}_{index}" for index in ("expires_at_idx", "pkey")]
    assert sorted(scan.partition(" on ")[0] for scan in scans) == expected


async def test_a_day_in_use_is_dropped_later(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: Seed
) -> None:
    """A day that a backup reads keeps its table; polls of other days do not wait; the next sweep drops the day."""
    project = await seed.project()
    await seed.session(project, at=(TODAY - 100) * DAY)
    today = await seed.session(project)
    async with connection.transaction():
        await connection.fetch("SELECT * FROM sessions")
        sweep = asyncio.create_task(Partitions(postgres.database, patience=2).drop(TODAY - 90, 100))
        await until(lambda: connection.fetchval("SELECT 1 FROM pg_locks WHERE NOT granted"))
        assert await postgres.sessions.poll_session(today.key) is not None
        assert not sweep.done()
        assert await sweep == 0
    assert await postgres.sessions.purge_sessions(TODAY - 90, 100) == 1
    assert await days(connection) == {TODAY: False}
    assert (await postgres.counts.read_daily_counts([project.id], 0))[0].requested == 1


async def test_what_a_kill_left_half_dropped_is_dropped(
    postgres: PostgresStorage, dsn: str, connection: asyncpg.Connection
) -> None:
    """If the process was killed between the two steps of detaching, or before the drop, the next sweep continues."""
    await postgres.sessions.prepare_days(TODAY - 100, TODAY - 98)
    await connection.execute(f"ALTER TABLE sessions DETACH PARTITION sessions_{TODAY - 98} CONCURRENTLY")
    victim, reader = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    async with reader.transaction():
        await reader.fetch("SELECT * FROM sessions")
        detach = f"ALTER TABLE sessions DETACH PARTITION sessions_{TODAY - 99} CONCURRENTLY"
        work = asyncio.create_task(victim.execute(detach))
        while (await days(connection))[TODAY - 99] is not True:  # noqa: ASYNC110 — the server tells nobody.
            await asyncio.sleep(0.01)
        await connection.execute("SELECT pg_terminate_backend($1)", victim.get_server_pid())
        with pytest.raises(asyncpg.PostgresConnectionError):
            await work
    await reader.close()
    assert await days(connection) == {TODAY - 100: False, TODAY - 99: True, TODAY - 98: None}
    assert await postgres.sessions.purge_sessions(TODAY - 90, 100) == 3
    assert await days(connection) == {}


async def test_a_purge_drops_whole_days_until_the_limit(postgres: PostgresStorage, seed: Seed) -> None:
    """Each step is bounded: a node that was down for a month does not drop all of it at once."""
    project = await seed.project()
    for day in (TODAY - 93, TODAY - 92, TODAY - 91):
        for _ in range(2):
            await seed.session(project, at=day * DAY)
    assert [await postgres.sessions.purge_sessions(TODAY - 90, 3) for _ in range(3)] == [4, 2, 0]


async def test_days_are_made_while_another_is_vacuumed(
    postgres: PostgresStorage, connection: asyncpg.Connection
) -> None:
    """A VACUUM of one day, which may take hours, does not keep other days from being created."""
    await postgres.sessions.prepare_days(TODAY, TODAY)
    async with connection.transaction():
        # What VACUUM and ANALYZE take.
        await connection.execute(f"LOCK TABLE sessions_{TODAY} IN SHARE UPDATE EXCLUSIVE MODE")
        async with asyncio.timeout(60):
            await postgres.sessions.prepare_days(TODAY + 1, TODAY + 2)
    assert {TODAY, TODAY + 1, TODAY + 2} <= set(await days(connection))
