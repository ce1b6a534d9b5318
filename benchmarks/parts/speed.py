"""Poll, durable create and full cycle of one store with a million sessions, compared with the bare ASGI app."""

import os
import signal
import time
from contextlib import ExitStack
from typing import Final, Literal

from benchmarks.machine import say
from benchmarks.measuring import (
    FIGURES,
    WARM_UP,
    FigureName,
    Slice,
    TaproofLoads,
    alternating,
    measure,
    median,
    median_ratio,
)
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
        bare_rsgi = stack.enter_context(running(bare_url(plan.directory), "--bare", "rsgi"))
        service = stack.enter_context(running(url))
        rounds = _rounds(plan, store, {"bare": bare, "rsgi": bare_rsgi}, service)
    rsgi, ratio = (median_ratio(rounds["poll"], rounds[floor], "cost") for floor in ("rsgi", "bare"))
    values = {f"{store}.poll_cost_ratio": ratio, f"{store}.cycle_cost": median(rounds["cycle"], "cost")}
    note = (
        f"{plan.sessions:,} stored sessions. A poll costs {ratio:.2f} of the server's CPU time of the bare ASGI app, "
        f"and {rsgi:.2f} of that of the bare RSGI app: medians of the rounds' ratios."
    )
    rows = [SPEED_HEAD, *(speed_row(TITLES[figure], measured) for figure, measured in rounds.items())]
    tables = [Table(f"{STORES[store]} beside the bare app", rows, note), _profile(plan, store, url)]
    return PartOutcome(values, tables, dict(service.versions))


def _rounds(plan: Plan, store: Store, bare: dict[str, Target], service: Target) -> dict[str, list[Slice]]:
    rounds: dict[str, list[Slice]] = {figure: [] for figure in TITLES}
    loads = TaproofLoads(service, plan.directory, store)
    polls: list[tuple[str, FigureName]] = [("bare", "poll"), ("rsgi", "poll"), ("poll", "poll")]
    for number in range(plan.repeat + 1):
        for title, figure in (*alternating(polls, number), ("create", "create"), ("cycle", "cycle")):
            measured = measure(bare.get(title, service), loads(figure), plan.seconds if number else WARM_UP)
            if number:
                rounds[title].append(measured)
                progress = f"{TITLES[title]} {measured.cost:,.0f} µs, {measured.per_second:,.0f} req/s"
                say(f"{STORES[store]}, round {number} of {plan.repeat}: {progress}")
    return rounds


def _statements_per_poll(plan: Plan, postgres: Postgres, url: str) -> float:
    """Return how many statements the database ran for each poll at 64 connections."""
    with running(url) as service:
        load = TaproofLoads(service, plan.directory, "statements")("poll")
        measure(service, load, WARM_UP)
        time.sleep(_STATISTICS_DELAY)
        before = postgres.statements(url)
        measured = measure(service, load, plan.seconds)
        time.sleep(_STATISTICS_DELAY)
        return (postgres.statements(url) - before) / measured.requests


def _profile(plan: Plan, store: Store, url: str) -> Table:
    """Sample each figure once more in separate runs, because sampling costs time."""
    columns: dict[str, dict[str, float]] = {}
    for figure in FIGURES:
        say(f"{STORES[store]}: profile of {TITLES[figure]}")
        path = plan.directory / f"{figure}.profile"
        with running(url, "--profile", str(path)) as service:
            load = TaproofLoads(service, plan.directory, "profile")(figure)
            os.kill(service.pid, signal.SIGUSR1)
            measure(service, load, plan.seconds)
        columns[figure] = read_shares(path)
    return profile_table(f"Where the time goes on {STORES[store]}", columns)
