"""Fill a SQLite database with finished sign-ins: 90 days over 20 projects, with the matching counters.

Usage: python -m benchmarks.seed --database FILE --sessions N. A file that already has exactly this content is kept.

The service creates the schema, the developer and the projects; the sessions are written directly into its tables. None
is pending, because a session is pending for ten minutes only: each run creates those that it polls. `stores.py` writes
the same into PostgreSQL.
"""

import argparse
import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Final

import apsw
from benchmarks.server import DEVELOPER, bench_settings

from taproof.core.accounts import Actor
from taproof.core.clock import DAY, day_number, system_clock
from taproof.core.identifiers import ALPHABET
from taproof.core.projects import ProjectChanges
from taproof.core.session_state import SESSION_LIFETIME
from taproof.runtime.services import open_services
from taproof.storage.migrate import migrations

DAYS: Final = 90
PROJECTS: Final = 20
SLOTS: Final = 1_000
"""The projects are spread over this many slots by their shares, so that a random slot picks a project."""
USERS: Final = 1_000_000
_MARK: Final = "benchmark_seed"
ID_TIME: Final = " || ".join(
    f"substr('{ALPHABET}', CAST(created_at / {62**place} % 62 AS INTEGER) + 1, 1)" for place in reversed(range(7))
)
"""The beginning of a session's id, used to find it: see `new_session_id`. An expression for both stores."""

# Of a hundred sessions 62 are used, 3 confirmed and unread, 6 cancelled, 29 expired; a third of these were opened.
# MATERIALIZED, because random() would be evaluated again at each use of its column; CROSS JOIN keeps the order.
_INSERT: Final = f"""
INSERT INTO sessions (day, token_hash, id, project_id, status, created_at, expires_at, opened_at, opener_id,
  confirmed_at, cancelled_at, used_at, messenger_id, messenger_name, messenger_username)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count),
drawn AS MATERIALIZED (
  SELECT randomblob(32) AS token_hash, lower(hex(randomblob(10))) AS id, abs(random() % {SLOTS}) AS slot,
    abs(random() % 100) AS lot, :day * {DAY} + abs(random() % {DAY - SESSION_LIFETIME}) AS created_at,
    5000 + abs(random() % 60000) AS later, abs(random() % 1000000) / 1000000.0 AS u
  FROM numbers),
sorted AS MATERIALIZED (
  SELECT d.*, CASE WHEN lot < 62 THEN 'used' WHEN lot < 65 THEN 'confirmed' WHEN lot < 71 THEN 'cancelled'
    ELSE 'expired' END AS status, lot < 81 AS is_opened, lot < 65 AS is_confirmed,
    CAST(1000000000 + CAST(u * u * {USERS} AS INTEGER) AS TEXT) AS user
  FROM drawn d ORDER BY token_hash)
SELECT :day, token_hash, 'sess_' || {ID_TIME} || id, p.project_id, status, created_at, created_at + {SESSION_LIFETIME},
  CASE WHEN is_opened THEN created_at + later - 3000 END, CASE WHEN is_opened THEN user END,
  CASE WHEN is_confirmed THEN created_at + later END, CASE WHEN status = 'cancelled' THEN created_at + later END,
  CASE WHEN status = 'used' THEN created_at + later + 1000 END,
  CASE WHEN is_confirmed THEN user END, CASE WHEN is_confirmed THEN 'User ' || user END,
  CASE WHEN is_confirmed THEN 'user' || user END
FROM sorted s CROSS JOIN slots p ON p.slot = s.slot"""  # noqa: S608 — built from constants only.
COUNT: Final = """
INSERT INTO user_days (developer_id, messenger_id, day, project_id)
SELECT DISTINCT p.creator_id, s.messenger_id, s.day, s.project_id
FROM sessions s JOIN projects p ON p.id = s.project_id WHERE s.messenger_id IS NOT NULL ORDER BY 1, 2, 3, 4;

UPDATE user_days SET messenger_name = found.name, messenger_username = found.username, first_at = found.first_at,
  last_at = found.last_at, sign_ins = found.sign_ins FROM (
  SELECT p.creator_id AS developer_id, s.project_id, s.messenger_id, MAX(s.day) AS day, MAX(s.messenger_name) AS name,
    MAX(s.messenger_username) AS username, MIN(s.confirmed_at) AS first_at, MAX(s.confirmed_at) AS last_at,
    COUNT(*) AS sign_ins
  FROM sessions s JOIN projects p ON p.id = s.project_id WHERE s.messenger_id IS NOT NULL
  GROUP BY p.creator_id, s.project_id, s.messenger_id) AS found
WHERE user_days.developer_id = found.developer_id AND user_days.messenger_id = found.messenger_id
  AND user_days.day = found.day AND user_days.project_id = found.project_id;

INSERT INTO daily_counts (project_id, day, requested, opened, confirmed, used, cancelled, expired)
SELECT project_id, day, COUNT(*), COUNT(opened_at), COUNT(confirmed_at), COUNT(used_at), COUNT(cancelled_at),
  SUM(CASE WHEN status = 'expired' THEN 1 ELSE 0 END)
FROM sessions GROUP BY project_id, day;

UPDATE daily_counts SET unique_users = found.all_users, latest_users = found.latest FROM (
  SELECT project_id, day, COUNT(*) AS all_users, SUM(CASE WHEN day = last THEN 1 ELSE 0 END) AS latest FROM (
    SELECT project_id, day, MAX(day) OVER (PARTITION BY project_id, messenger_id) AS last FROM user_days) AS seen
  GROUP BY project_id, day) AS found
WHERE daily_counts.project_id = found.project_id AND daily_counts.day = found.day;

INSERT INTO daily_users (developer_id, day, unique_users, latest_users)
SELECT developer_id, day, COUNT(*), SUM(CASE WHEN day = last THEN 1 ELSE 0 END) FROM (
  SELECT developer_id, day, MAX(day) OVER (PARTITION BY developer_id, messenger_id) AS last
  FROM (SELECT DISTINCT developer_id, messenger_id, day FROM user_days) AS days) AS seen
GROUP BY developer_id, day;"""
"""The counters that belong to the sessions, for both stores."""


def project_slots(project_ids: list[str]) -> list[str]:
    """Return a project for each slot; earlier projects get more slots."""
    weights = [1 / (place + 1) for place in range(len(project_ids))]
    bounds = [sum(weights[: place + 1]) / sum(weights) * SLOTS for place in range(len(weights))]
    places = [next(place for place, bound in enumerate(bounds) if slot < bound + 1e-6) for slot in range(SLOTS)]
    return [project_ids[place] for place in places]


async def make_projects(database_url: str) -> list[str]:
    """Create the schema, the developer and the projects with the service; return the projects' ids."""
    async with open_services(bench_settings(database_url, 1)) as services:
        developer = await services.developers.create_developer(DEVELOPER, "business")
        made = [
            await services.projects.create_project(
                Actor(developer, "command_line"), ProjectChanges(name=f"Project {number}")
            )
            for number in range(1, PROJECTS + 1)
        ]
        return [project.id for project, _ in made]


def day_counts(sessions: int) -> list[tuple[int, int]]:
    """Return the seeded days, and the number of sessions of each. Today is not among them."""
    first = day_number(system_clock()) - DAYS
    return [(first + n, sessions * (n + 1) // DAYS - sessions * n // DAYS) for n in range(DAYS)]


def fingerprint(sessions: int) -> bytes:
    """Return the identity of a matching file: this script, the schema and the number of sessions."""
    parts = [Path(__file__).read_text(encoding="utf-8"), str(sessions), *(step.sql for step in migrations("sqlite"))]
    return hashlib.sha256("\0".join(parts).encode()).digest()


def fits(database: Path, sessions: int) -> bool:
    """Return whether the file has exactly the content that `seed` would write."""
    if not database.exists():
        return False
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute("SELECT value FROM metadata WHERE name = ?", (_MARK,)).fetchall()
    except apsw.Error:
        return False
    finally:
        connection.close()
    return found == [(fingerprint(sessions),)]


def seed(database: Path, sessions: int) -> None:
    """Write a new file. It gets its name only when it is complete, so that an interrupted one is never reused."""
    draft = database.with_name(f"{database.name}.draft")
    for leftover in (draft, draft.with_name(f"{draft.name}-wal"), draft.with_name(f"{draft.name}-shm")):
        leftover.unlink(missing_ok=True)
    project_ids = asyncio.run(make_projects(f"sqlite:///{draft}"))
    connection = apsw.Connection(str(draft))
    # Nobody else reads the draft, and after a power cut it would be written again: no journal, no fsync.
    connection.execute(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
        "PRAGMA cache_size = -524288; PRAGMA temp_store = MEMORY; PRAGMA threads = 2"
    ).fetchall()
    _write_sessions(connection, project_ids, sessions)
    _say("counting")
    connection.execute(f"BEGIN; {COUNT} COMMIT")
    connection.execute("INSERT INTO metadata (name, value) VALUES (?, ?)", (_MARK, fingerprint(sessions)))
    # A file without a log can be copied; the service sets its own mode when it opens the copy.
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    connection.close()
    draft.replace(database)


def _write_sessions(connection: apsw.Connection, project_ids: list[str], sessions: int) -> None:
    # Rows in the order of the primary key, and the other indexes at the end, save most of the work.
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'sessions' AND sql IS NOT NULL"
    ).fetchall()
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    connection.execute("CREATE TEMP TABLE slots (slot INTEGER PRIMARY KEY, project_id TEXT)")
    connection.executemany("INSERT INTO slots VALUES (?, ?)", enumerate(project_slots(project_ids)))
    for number, (day, count) in enumerate(day_counts(sessions), 1):
        if count:
            connection.execute(_INSERT, {"day": day, "count": count})
        _say(f"{number * 100 // DAYS:3d} %")
    _say("indexing")
    for _, statement in indexes:
        connection.execute(str(statement))


def _say(progress: str) -> None:
    if sys.stdout.isatty():
        print(f"\r\x1b[KWriting stored sessions: {progress}", end="", flush=True)


def main() -> None:
    """Read the arguments; write the file unless it matches."""
    parser = argparse.ArgumentParser(description="Fill a database with finished sign-ins; see benchmarks/README.md.")
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--sessions", type=int, required=True)
    given = parser.parse_args()
    if not fits(given.database, given.sessions):
        given.database.parent.mkdir(parents=True, exist_ok=True)
        print(f"Writing {given.sessions:,} stored sessions, once.", flush=True)
        seed(given.database, given.sessions)
        _say("\r")
        print(f"Written: {given.database.stat().st_size >> 20} MiB.")


if __name__ == "__main__":
    main()
