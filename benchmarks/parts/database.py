"""Measure the cost of a sign-in for the database: its CPU time, write-ahead log, and stored bytes.

Sign-ins run through the use cases that the API and the bot call, in this process. CPU time is that of PostgreSQL's
processes alone, so a busy machine changes it little. The other figures are counted by the databases themselves.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import apsw
from benchmarks.machine import fail, say
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.seed import USERS
from benchmarks.sender import AT_ONCE, at_once
from benchmarks.server import DEVELOPER, bench_settings
from benchmarks.stores import Postgres
from tests.postgres_server import PostgresServer, execute

from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.core.service_bot import SERVICE_BOT
from taproof.runtime.services import Services, open_services
from taproof.service.housekeeping import Housekeeping

_SIGN_INS: Final = 10_000
_POLLS: Final = 20_000
_PROJECTS: Final = 20
_WEBHOOK: Final = "https://example.com/hook"
_UPDATES: Final = itertools.count(1)
_OLD_UPDATES: Final = 20_000
_ADD_OLD: Final = "INSERT INTO bot_updates SELECT 1, n, 0, 1 FROM generate_series(1, 20000) n"
_KEPT: Final = {"sessions": "90 days", "webhook_events": "90 days", "user_days": "91 days", "bot_updates": "2 days"}
"""How long the rows of a sign-in are kept, by table: docs/how-to/gdpr.md."""
_BREATH: Final = 0.02
"""Seconds between two sweeps while there is more to erase, as in `src/taproof/jobs/housekeeping.py`."""
_WAL: Final = """
SELECT wal_bytes::BIGINT, wal_fpi, wal_records, COALESCE((to_jsonb(w)->>'wal_sync')::FLOAT, 'NaN')
FROM pg_stat_wal w"""
_SIZES: Final = """
SELECT CASE WHEN relname LIKE 'sessions_%' THEN 'sessions' ELSE relname END AS part,
  SUM(pg_table_size(oid))::BIGINT, SUM(pg_indexes_size(oid))::BIGINT
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace GROUP BY part"""


def _housekeeping(services: Services) -> Housekeeping:
    return Housekeeping(services.storage, services.encryptor, system_clock, system_entropy, 90)


async def _make_projects(services: Services, webhook_url: str) -> list[str]:
    """Create projects; return their ids."""
    known = {each.email: each for each in await services.developers.list_developers()}
    developer = known.get(DEVELOPER) or await services.developers.create_developer(DEVELOPER, "business")
    changes = ProjectChanges(name="Shop", webhook_url=webhook_url)
    actor = Actor(developer, "command_line")
    return [(await services.projects.create_project(actor, changes))[0].id for _ in range(_PROJECTS)]


async def _handle(services: Services, act: Awaitable[Any]) -> Any:
    """Claim and finish a bot update, as the bot does around each act of a user."""
    number, now = next(_UPDATES), system_clock()
    await services.storage.bots.claim_update(SERVICE_BOT, number, now, 0)
    seen = await act
    await services.storage.bots.finish_update(SERVICE_BOT, number)
    return seen


def _new_user() -> str:
    """Return a new id that sorts at a random place among the seeded ones, as the ids of real users do."""
    drawn = int.from_bytes(os.urandom(8))
    return f"{10**9 + drawn % USERS}{drawn // USERS % 10_000:04}"


async def _sign_in(services: Services, project_id: str, user: str) -> None:
    """Create a session, open and confirm it as a new user, and read the proof."""
    token = (await services.sign_in_sessions.create_session(project_id, public=True)).session_token
    await _handle(services, services.decisions.open_session(token, user))
    identity = MessengerIdentity(user, f"User {user}", f"user{user}")
    await _handle(services, services.decisions.confirm_session(token, identity))
    if (await services.sign_in_sessions.verify_session(project_id, token, public=True)).proof is None:
        fail("A confirmed sign-in gave no proof.")


async def _run(url: str, figure: str, count: int, *, together: int = AT_ONCE, webhook_url: str = "") -> None:
    """Run this many calls of a figure: sign-ins, creates, or polls."""
    async with open_services(bench_settings(url, 1)) as services:
        await _housekeeping(services).sweep()  # Creates today's partition.
        projects = await _make_projects(services, webhook_url)
        create, verify = services.sign_in_sessions.create_session, services.sign_in_sessions.verify_session
        token = (await create(projects[0], public=True)).session_token
        calls: dict[str, Callable[[int], Awaitable[Any]]] = {
            "sign-in": lambda number: _sign_in(services, projects[number % _PROJECTS], _new_user()),
            "create": lambda number: create(projects[number % _PROJECTS], public=True),
            "poll": lambda _: verify(projects[0], token, public=True),
        }
        await at_once(calls[figure], count, together)


async def _erase(url: str) -> float:
    """Return how many old bot updates a second the housekeeping erases while it has nothing else to do."""
    async with open_services(bench_settings(url, 1)) as services:
        housekeeping = _housekeeping(services)
        begun = time.perf_counter()
        while await housekeeping.sweep():  # noqa: ASYNC110 — the pauses belong to the figure.
            await asyncio.sleep(_BREATH)
        return _OLD_UPDATES / (time.perf_counter() - begun)


def _cpu(server: PostgresServer) -> float:
    """Return the CPU seconds that a server's processes have used, with those that have ended (proc(5): stat)."""
    directory = execute(server.dsn(), "SHOW data_directory").strip()
    first = int((Path(directory) / "postmaster.pid").read_text("ascii").split("\n", 1)[0])
    children = Path(f"/proc/{first}/task/{first}/children").read_text("ascii").split()
    seconds = 0
    for pid in (str(first), *children):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        seconds += sum(map(int, fields[11:15]))
    return seconds / os.sysconf("SC_CLK_TCK")


class _Meter:
    """Runs calls on a database of PostgreSQL, and returns what each of them cost."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    def _read(self, url: str) -> list[float]:
        wal, images, records, syncs = execute(url, _WAL).strip().split("|")
        return [_cpu(self._postgres.server), float(wal), float(images), float(records), float(syncs)]

    def row(self, title: str, url: str, figure: str, count: int, **how: Any) -> list[str]:
        """Return a row of the table."""
        say(f"database: {title}")
        before, calls = self._read(url), self._postgres.statements(url)
        asyncio.run(_run(url, figure, count, **how))
        cpu, wal, images, records, syncs = (
            (after - earlier) / count for after, earlier in zip(self._read(url), before, strict=True)
        )
        statements = (self._postgres.statements(url) - calls) / count
        counted = f"{cpu * 1e6:,.0f}", f"{wal:,.0f}", f"{images:.2f}", f"{records:.1f}", f"{syncs:.3f}"
        return [title, *counted, f"{statements:.2f}"]


def measure_database(plan: Plan, postgres: Postgres) -> PartOutcome:
    """Measure on PostgreSQL; on SQLite only what stays stored."""
    meter = _Meter(postgres)
    empty, full = postgres.database("day_empty", 0), postgres.database("day_full", plan.sessions, today=True)
    day = f"day of {plan.sessions:,}"

    def checkpoint() -> None:
        execute(full, "CHECKPOINT")

    rows = [["calls", "CPU µs", "WAL bytes", "page images", "WAL records", "WAL syncs", "statements"]]
    rows.append(meter.row("sign-in, empty day", empty, "sign-in", _SIGN_INS))
    execute(empty, "VACUUM")
    stored, packed = _stored(empty), _stored(full)["sessions"]
    rows.append(meter.row("sign-in, empty day, one at a time", empty, "sign-in", _SIGN_INS // 10, together=1))
    rows.append(meter.row("sign-in with a webhook event", empty, "sign-in", _SIGN_INS, webhook_url=_WEBHOOK))
    stored["webhook_events"] = _stored(empty)["webhook_events"]
    checkpoint()
    rows.append(meter.row(f"sign-in, {day}, after a checkpoint", full, "sign-in", _SIGN_INS))
    rows.append(meter.row(f"sign-in, {day}, later", full, "sign-in", _SIGN_INS))
    execute(full, "ALTER SYSTEM SET wal_compression = on")
    execute(full, "SELECT pg_reload_conf()")
    checkpoint()
    rows.append(meter.row(f"sign-in, {day}, after a checkpoint, wal_compression", full, "sign-in", _SIGN_INS))
    rows.append(meter.row(f"create, {day}", full, "create", _SIGN_INS))
    rows.append(meter.row(f"poll, {day}", full, "poll", _POLLS))
    execute(empty, _ADD_OLD)
    erased = asyncio.run(_erase(empty))
    note = (
        f"Per call, {AT_ONCE} at once unless the row says otherwise. A sign-in is a create, an open, a confirm, the "
        "read of the proof, and the claims of two bot updates, by a user who has not signed in before. CPU is that of "
        "PostgreSQL's processes. A page image is the whole page that PostgreSQL logs at its first change after a "
        f"checkpoint. The full day has {plan.sessions:,} sessions in today's partition. The housekeeping erased "
        f"{erased:,.0f} old bot updates a second, one sweep after the other."
    )
    tables = [Table("What a sign-in costs PostgreSQL", rows, note), _sizes(plan, stored, packed)]
    return PartOutcome({"database.erased": erased}, tables)


def _stored(url: str) -> dict[str, tuple[int, int]]:
    """Return the bytes of each table and of its indexes."""
    lines = (line.split("|") for line in execute(url, _SIZES).splitlines())
    return {name: (int(table), int(indexes)) for name, table, indexes in lines}


def _sizes(plan: Plan, stored: dict[str, tuple[int, int]], packed: tuple[int, int]) -> Table:
    rows = [["stored", "table", "indexes", "kept for"]]
    packed_bytes = [f"{each / plan.sessions:,.0f}" for each in packed]
    rows.append(["PostgreSQL, sessions, packed", *packed_bytes, "90 days"])
    for name, kept in _KEPT.items():
        table, indexes = stored[name]
        rows.append([f"PostgreSQL, {name}", f"{table / _SIGN_INS:,.0f}", f"{indexes / _SIGN_INS:,.0f}", kept])
    path = plan.directory / "sizes.db"
    asyncio.run(_run(f"sqlite:///{path}", "sign-in", _SIGN_INS))
    connection = apsw.Connection(str(path))
    pages, size = (int(str(connection.pragma(name))) for name in ("page_count", "page_size"))
    connection.close()
    rows.append(["SQLite, everything", f"{pages * size / _SIGN_INS:,.0f}", "", ""])
    note = (
        f"Bytes for each of {_SIGN_INS:,} sign-ins of different users, after VACUUM on PostgreSQL. Each change of a "
        "session leaves an old version in the table and in the indexes, which VACUUM frees for others. `packed` is the "
        "seeded day, whose sessions were written once. A user who signs in twice on one day at one project has one row "
        "in `user_days`."
    )
    return Table("What stays stored of a sign-in", rows, note)
