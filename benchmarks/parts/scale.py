"""Poll and create with many stored sessions and with few: does a sign-in cost more as the store grows?"""

from contextlib import ExitStack
from typing import Final

from benchmarks.machine import say
from benchmarks.measuring import (
    WARM_UP,
    FigureName,
    Slice,
    TaproofLoads,
    alternating,
    measure,
    median_ratio,
)
from benchmarks.outcome import SPEED_HEAD, PartOutcome, Plan, Table, speed_row
from benchmarks.parts.speed import STORES, Store
from benchmarks.serving import running
from benchmarks.stores import Postgres, sqlite_copy

_FIGURES: Final[tuple[FigureName, ...]] = ("poll", "create")


def measure_scale(plan: Plan, postgres: Postgres | None) -> PartOutcome:
    """Measure on SQLite, and on PostgreSQL if it is available; a size of 0 leaves a store out."""
    outcome = PartOutcome()
    if plan.many:
        with (
            sqlite_copy(plan.few, plan.directory, "few") as few,
            sqlite_copy(plan.many, plan.directory, "many") as many,
        ):
            _measure(plan, outcome, "sqlite", {plan.few: few, plan.many: many})
    if postgres is not None and plan.postgres_many:
        urls = {size: postgres.database(f"scale_{size}", size) for size in (plan.few, plan.postgres_many)}
        _measure(plan, outcome, "postgres", urls)
    return outcome


def _measure(plan: Plan, outcome: PartOutcome, store: Store, urls: dict[int, str]) -> None:
    rounds: dict[tuple[int, FigureName], list[Slice]] = {(size, figure): [] for figure in _FIGURES for size in urls}
    with ExitStack() as stack:
        services = {size: stack.enter_context(running(url)) for size, url in urls.items()}
        loads = {size: TaproofLoads(service, plan.directory, str(size)) for size, service in services.items()}
        for number in range(plan.repeat + 1):
            for size, figure in alternating(rounds, number):
                measured = measure(services[size], loads[size](figure), plan.seconds if number else WARM_UP)
                if number:
                    rounds[size, figure].append(measured)
            say(f"{STORES[store]}, few against many, round {number} of {plan.repeat}")
    few, many = urls
    notes = []
    for figure in _FIGURES:
        # This is the time of one request, so the ratio is inverted compared with requests a second.
        ratio = median_ratio(rounds[few, figure], rounds[many, figure], "per_second")
        cpu_ratio = median_ratio(rounds[many, figure], rounds[few, figure], "cost")
        outcome.values[f"scale.{store}.{figure}"] = ratio
        notes.append(f"a {figure} takes {ratio:.2f} of the time ({cpu_ratio:.2f} of the server's CPU time)")
    rows = [SPEED_HEAD, *(speed_row(f"{figure}, {size:,}", slices) for (size, figure), slices in rounds.items())]
    note = f"With {many:,} stored sessions against {few:,}: {'; '.join(notes)}."
    outcome.tables.append(Table(f"{STORES[store]} with few and with many stored sessions", rows, note))
