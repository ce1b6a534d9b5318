"""Fills a database with finished sign-ins: 90 days of them over 20 projects, with the counts that belong to them.

Usage: python -m benchmarks.seed --database FILE --sessions N. A file that already holds exactly this is left as it is.

Schema, developer and projects are made by the service itself; the sessions are written straight into its tables. None
of them is pending: a session is that for ten minutes only, so the pending ones are made by the run that polls them.
"""

import argparse
import asyncio
import hashlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import apsw
from benchmarks.server import bench_settings

from taproof.app import open_services
from taproof.core.clock import DAY, MINUTE, SECOND, day_number, system_clock
from taproof.core.session_state import SESSION_LIFETIME
from taproof.storage.migrate import migrations

DAYS: Final = 90
PROJECTS: Final = 20
_MARK: Final = "benchmark_seed"
_STATUSES: Final = ("used", "confirmed", "cancelled", "expired")
_SHARES: Final = (62, 3, 6, 29)
"""Percent of the sessions: most are used, many are never acted on, a few are confirmed but never read."""
_OPENED_BEFORE_EXPIRY: Final = 0.35

_INSERT: Final = """
INSERT INTO sessions (day, token_hash, id, project_id, status, created_at, expires_at, opened_at, opener_id,
  confirmed_at, cancelled_at, used_at, messenger_id, messenger_name, messenger_username)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_COUNT: Final = """
INSERT INTO user_days (developer_id, messenger_id, day, project_id)
SELECT DISTINCT p.developer_id, s.messenger_id, s.day, s.project_id
FROM sessions s JOIN projects p ON p.id = s.project_id WHERE s.messenger_id IS NOT NULL ORDER BY 1, 2, 3, 4;

INSERT INTO daily_counts (project_id, day, requested, opened, confirmed, used, cancelled, expired)
SELECT project_id, day, COUNT(*), COUNT(opened_at), COUNT(confirmed_at), SUM(status = 'used'),
  SUM(status = 'cancelled'), SUM(status = 'expired')
FROM sessions GROUP BY project_id, day;

UPDATE daily_counts SET unique_users = found.all_users, latest_users = found.latest FROM (
  SELECT project_id, day, COUNT(*) AS all_users, SUM(day = last) AS latest FROM (
    SELECT project_id, day, MAX(day) OVER (PARTITION BY project_id, messenger_id) AS last FROM user_days)
  GROUP BY project_id, day) AS found
WHERE daily_counts.project_id = found.project_id AND daily_counts.day = found.day;

INSERT INTO daily_users (developer_id, day, unique_users, latest_users)
SELECT developer_id, day, COUNT(*), SUM(day = last) FROM (
  SELECT developer_id, day, MAX(day) OVER (PARTITION BY developer_id, messenger_id) AS last
  FROM (SELECT DISTINCT developer_id, messenger_id, day FROM user_days))
GROUP BY developer_id, day;"""


def fingerprint(sessions: int) -> bytes:
    """Return what a fitting file is known by: this script, the schema and the number of sessions."""
    parts = [Path(__file__).read_text(encoding="utf-8"), str(sessions), *(step.sql for step in migrations("sqlite"))]
    return hashlib.sha256("\0".join(parts).encode()).digest()


def fits(database: Path, sessions: int) -> bool:
    """Tell whether the file holds exactly what `seed` would write."""
    if not database.exists():
        return False
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute("SELECT value FROM marks WHERE name = ?", (_MARK,)).fetchall()
    except apsw.Error:
        return False
    finally:
        connection.close()
    return found == [(fingerprint(sessions),)]


def seed(database: Path, sessions: int) -> None:
    """Write the file anew. It gets its name only when it is whole, so that an interrupted one is never reused."""
    draft = database.with_name(f"{database.name}.draft")
    for leftover in (draft, draft.with_name(f"{draft.name}-wal"), draft.with_name(f"{draft.name}-shm")):
        leftover.unlink(missing_ok=True)
    project_ids = asyncio.run(_make_projects(draft))
    connection = apsw.Connection(str(draft))
    # Nobody else reads the draft, and after a power cut it would be made again: no journal, no waiting for the disk.
    connection.execute(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
        "PRAGMA cache_size = -262144"
    )
    _write_sessions(connection, project_ids, sessions)
    _say("counting")
    connection.execute(f"BEGIN; {_COUNT} COMMIT")
    connection.execute("INSERT INTO marks (name, value) VALUES (?, ?)", (_MARK, fingerprint(sessions)))
    # One file without a log beside it can be copied; the service sets its own mode when it opens the copy.
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    draft.replace(database)


async def _make_projects(database: Path) -> list[str]:
    async with open_services(bench_settings(database, 1)) as services:
        developer = await services.developers.create_developer("benchmark@localhost", "business")
        made = [
            await services.projects.create_project(
                developer, f"Project {number}", webhook_url="", public_access=True, collect_phone=False
            )
            for number in range(1, PROJECTS + 1)
        ]
        return [project.id for project, _ in made]


def _write_sessions(connection: apsw.Connection, project_ids: list[str], sessions: int) -> None:
    # Rows come in the order of the primary key and the other indexes are built at the end: both spare most of the work.
    indexes: list[tuple[Any, ...]] = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'sessions' AND sql IS NOT NULL"
    ).fetchall()
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    chance = random.Random(sessions)  # noqa: S311 — made-up sessions, the same ones each time.
    today = day_number(system_clock())
    for number in range(DAYS):
        count = sessions * (number + 1) // DAYS - sessions * number // DAYS
        rows = sorted(_rows(chance, today - DAYS + number, project_ids, count))
        with connection:
            connection.executemany(_INSERT, rows)
        _say(f"{(number + 1) * 100 // DAYS:3d} %")
    _say("indexing")
    for _, statement in indexes:
        connection.execute(statement)


def _rows(chance: random.Random, day: int, project_ids: list[str], count: int) -> Iterator[tuple[Any, ...]]:
    """Yield the sessions of one day. Earlier projects have more of them, and most users come again."""
    weights = [1 / (place + 1) for place in range(len(project_ids))]
    projects = chance.choices(project_ids, weights, k=count)
    statuses = chance.choices(_STATUSES, _SHARES, k=count)
    for project_id, status in zip(projects, statuses, strict=True):
        created_at = day * DAY + int(chance.random() * (DAY - SESSION_LIFETIME))
        decided_at = created_at + 5 * SECOND + int(chance.random() * MINUTE)
        user = str(1_000_000_000 + int(chance.random() ** 2 * 200_000))
        opened = status != "expired" or chance.random() < _OPENED_BEFORE_EXPIRY
        confirmed = status in {"used", "confirmed"}
        yield (
            day,
            chance.randbytes(32),
            f"sess_{chance.getrandbits(88):022x}",
            project_id,
            status,
            created_at,
            created_at + SESSION_LIFETIME,
            decided_at - 3 * SECOND if opened else None,
            user if opened else None,
            decided_at if confirmed else None,
            decided_at if status == "cancelled" else None,
            decided_at + SECOND if status == "used" else None,
            user if confirmed else None,
            f"User {user}" if confirmed else None,
            f"user{user}" if confirmed else None,
        )


def _say(progress: str) -> None:
    if sys.stdout.isatty():
        print(f"\r\x1b[KWriting stored sessions: {progress}", end="", flush=True)


def main() -> None:
    """Read the arguments; write the file if it does not fit."""
    parser = argparse.ArgumentParser(description="Fill a database with finished sign-ins; see benchmarks/README.md.")
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--sessions", type=int, required=True)
    given = parser.parse_args()
    if not fits(given.database, given.sessions):
        given.database.parent.mkdir(parents=True, exist_ok=True)
        print(
            f"Writing {given.sessions:,} stored sessions, once; this takes about half a minute for a million.",
            flush=True,
        )
        seed(given.database, given.sessions)
        _say("\r")
        print(f"Written: {given.database.stat().st_size >> 20} MiB.")


if __name__ == "__main__":
    main()
