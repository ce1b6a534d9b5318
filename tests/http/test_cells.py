"""Cells count as the Prometheus library's own metrics do, for one process and for all processes on a port."""

from pathlib import Path
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest

from taproof.http.cells import Cells, CounterForm, HistogramForm, SharedMetrics

BOUNDS: Final = (0.005, 0.25, 1.0)
FIRST: Final = HistogramForm("first_seconds", "First.", BOUNDS)
COUNTER: Final = CounterForm("polls_total", "Polls.", "status", ("pending", "used"))
SECOND: Final = HistogramForm("second_seconds", "Second.", (0.1,))
FORMS: Final = (FIRST, COUNTER, SECOND)
SECONDS: Final = st.sampled_from([0.0, *BOUNDS]) | st.integers(0, 2**20).map(lambda number: number / 2**18)
"""Values that include the bucket bounds. All their sums are exact."""


def shown(cells: Cells) -> str:
    registry = CollectorRegistry()
    registry.register(cells)
    return generate_latest(registry).decode()


@given(st.lists(SECONDS, max_size=20), st.lists(st.sampled_from(COUNTER.values)), st.lists(SECONDS, max_size=20))
def test_they_show_what_the_library_shows(first: list[float], statuses: list[str], second: list[float]) -> None:
    """Counts, buckets and sums equal the library's, also for a value that equals a bound."""
    cells = Cells(FORMS, None)
    registry = CollectorRegistry()
    disable_created_metrics()  # type: ignore[no-untyped-call]
    theirs = Histogram(FIRST.name, FIRST.description, buckets=FIRST.bounds, registry=registry)
    counter = Counter(COUNTER.name, COUNTER.description, [COUNTER.label], registry=registry)
    others = Histogram(SECOND.name, SECOND.description, buckets=SECOND.bounds, registry=registry)
    for form, histogram, values in ((FIRST, theirs, first), (SECOND, others, second)):
        observe = form.open(cells.of(form))
        for value in values:
            observe(value)
            histogram.observe(value)
    for status in COUNTER.values:
        counter.labels(status)
    count = COUNTER.open(cells.of(COUNTER))
    for status in statuses:
        count[status]()
        counter.labels(status).inc()
    assert shown(cells) == generate_latest(registry).decode()


def test_processes_on_one_port_show_their_sums(tmp_path: Path) -> None:
    """Each process shows the counts of all. One that replaces a dead process continues its counts."""
    alone = Cells(FORMS, None)
    processes = [Cells(FORMS, SharedMetrics(tmp_path, number)) for number in (1, 2)]
    processes.append(Cells(FORMS, SharedMetrics(tmp_path, 2)))
    for number, process in enumerate(processes):
        for cells in (process, alone):
            FIRST.open(cells.of(FIRST))(number / 8)
            COUNTER.open(cells.of(COUNTER))["used"]()
            SECOND.open(cells.of(SECOND))(number / 8)
    (tmp_path / "3.cells").touch()  # A process that is just starting.
    assert {shown(process) for process in processes} == {shown(alone)}
