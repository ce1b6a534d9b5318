"""Poll, durable create and full cycle of one store with a million sessions, compared with the bare ASGI app."""

import os
import signal
import time
from contextlib import ExitStack
from typing import Final, Literal

from benchmarks.machine import say
from benchmarks.measuring import WARM_UP, Slice, measure, median, median_ratio, write_pool, write_projects
from benchmarks.outcome import SPEED_HEAD, PartOutcome, Plan, Table, speed_row
from benchmarks.profiles import profile_table, read_shares
from benchmarks.serving import Target, bare_url, running
from benchmarks.stores import Postgres, sqlite_copy

Store = Literal["sqlite", "postgres"]
STORES: Final[dict[Store, str]] = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
TITLES: Final = {
    "bare": "bare ASGI app",
    "rsgi": "bare RSGI app",
    "poll": "poll pending",
    "create": "create, durable",
    "cycle": "full cycle (4 requests)",
}
_POOL_KEPT: Final = 240
"""Seconds for which a pool is polled before a new one is created: a session stays pending for 600."""
_STATISTICS_DELAY: Final = 1.5
"""Seconds until PostgreSQL's statistics include all statements."""


def measure_sqlite(plan: Plan) -> PartOutcome:
    """Measure on SQLite."""
    with sqlite_copy(plan.sessions, plan.directory, "speed") as url:
        return _measure(plan, "sqlite", url)


def measure_postgres(plan: Plan, postgres: Postgres) -> PartOutcome:
    """Measure on PostgreSQL, and count the statements of polls."""
    url = postgres.database("speed", plan.sessions)
    outcome = _measure(plan, "postgres", url)
    outcome.versions["PostgreSQL"] = postgres.version
    statements = _statements_per_poll(plan, postgres, url)
    outcome.values["postgres.statements"] = statements
    rows = [["counted", "per poll"], [f"{postgres.evidence}, at 64 connections", f"{statements:.3f}"]]
    note = "What the service does besides, such as sweeping and renewing leases, is in it."
    outcome.tables.append(Table("Statements on PostgreSQL", rows, note))
    return outcome


def _measure(plan: Plan, store: Store, url: str) -> PartOutcome:
    with ExitStack() as stack:
        bare = stack.enter_context(running(bare_url(plan.directory), "--bare", "asgi"))
        rsgi = stack.enter_context(running(bare_url(plan.directory), "--bare", "rsgi"))
        service = stack.enter_context(running(url))
        rounds = _rounds(plan, store, {"bare": bare, "rsgi": rsgi}, service)
    ratio = median_ratio(rounds["poll"], rounds["bare"], "per_second")
    cpu_ratio = median(rounds["bare"], "cost") / median(rounds["poll"], "cost")
    values = {
        **{f"{store}.{figure}": median(rounds[figure], "per_second") for figure in ("bare", "poll", "create")},
        f"{store}.cycle": median(rounds["cycle"], "cycles_per_second"),
        f"{store}.poll_ratio": ratio,
        f"{store}.poll_cpu_ratio": cpu_ratio,
    }
    note = (
        f"{plan.sessions:,} stored sessions. A poll runs at {ratio:.2f} of the bare app; by CPU time of the server, "
        f"which neighbours disturb less, at {cpu_ratio:.2f}."
    )
    rows = [SPEED_HEAD, *(speed_row(TITLES[figure], measured) for figure, measured in rounds.items())]
    tables = [Table(f"{STORES[store]} beside the bare app", rows, note), _profile(plan, store, url)]
    return PartOutcome(values, tables, dict(service.versions))


def _rounds(plan: Plan, store: Store, bare: dict[str, Target], service: Target) -> dict[str, list[Slice]]:
    rounds: dict[str, list[Slice]] = {figure: [] for figure in TITLES}
    pool, projects = plan.directory / "pool.txt", plan.directory / "projects.txt"
    write_projects(service, projects)
    made = float("-inf")
    for number in range(plan.repeat + 1):
        if time.monotonic() - made >= _POOL_KEPT:
            write_pool(service, pool)
            made = time.monotonic()
        # Bare and poll alternate between rounds, so that neither always goes first.
        polls = ("rsgi", "bare", "poll") if number % 2 else ("poll", "bare", "rsgi")
        for figure in (*polls, "create", "cycle"):
            target = bare.get(figure, service)
            script, file = ("poll", pool) if figure in polls else (figure, projects)
            measured = measure(target, script, file, plan.seconds if number else WARM_UP)
            if number:
                rounds[figure].append(measured)
                progress = f"{TITLES[figure]} {measured.per_second:,.0f} req/s"
                say(f"{STORES[store]}, round {number} of {plan.repeat}: {progress}")
    return rounds


def _statements_per_poll(plan: Plan, postgres: Postgres, url: str) -> float:
    """Return how many statements the database ran for each poll at 64 connections."""
    pool = plan.directory / "pool.txt"
    with running(url) as service:
        write_pool(service, pool)
        measure(service, "poll", pool, WARM_UP)
        time.sleep(_STATISTICS_DELAY)
        before = postgres.statements(url)
        measured = measure(service, "poll", pool, plan.seconds)
        time.sleep(_STATISTICS_DELAY)
        return (postgres.statements(url) - before) / measured.requests


def _profile(plan: Plan, store: Store, url: str) -> Table:
    """Sample each figure once more in separate runs, because sampling costs time."""
    pool, projects = plan.directory / "pool.txt", plan.directory / "projects.txt"
    columns: dict[str, dict[str, float]] = {}
    for figure in ("poll", "create", "cycle"):
        say(f"{STORES[store]}: profile of {TITLES[figure]}")
        path = plan.directory / f"{figure}.profile"
        with running(url, "--profile", str(path)) as service:
            write_pool(service, pool)
            os.kill(service.pid, signal.SIGUSR1)
            measure(service, figure, pool if figure == "poll" else projects, plan.seconds)
        columns[figure] = read_shares(path)
    return profile_table(f"Where the time goes on {STORES[store]}", columns)
