"""Counters and histograms for hot paths. Counting costs a fraction of a microsecond, in one process or in several.

Each value is a cell of an array. The library takes a lock for each value, and with several processes it packs each one
into a file. Here, counting is one addition, and a latency is a bisection and two additions. Processes that share a port
map their arrays to files in one directory, and each of them exposes the sums.
"""

import mmap
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final, TypeAlias

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

_FILES: Final = "*.cells"

CellView: TypeAlias = "memoryview[float]"


@dataclass(frozen=True, slots=True)
class SharedMetrics:
    """The directory in which the processes on one port keep their metrics, and the number of this process."""

    directory: Path
    process: int


@dataclass(frozen=True, slots=True)
class CounterForm:
    """A counter with one label, with all of the label's values. Each value has a cell.

    A counter without a label has the label "", with the one value "".
    """

    name: str
    description: str
    label: str
    values: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.values)

    def show(self, cells: CellView) -> Metric:
        """Return the metric with these counts."""
        metric = CounterMetricFamily(self.name, self.description, labels=[self.label] if self.label else None)
        for value, count in zip(self.values, cells, strict=True):
            metric.add_metric([value] if self.label else [], count)
        return metric

    def open(self, cells: CellView) -> dict[str, Callable[[], None]]:
        """Return a function for each value of the label that counts it."""
        return {value: _adder(cells, index) for index, value in enumerate(self.values)}


@dataclass(frozen=True, slots=True)
class HistogramForm:
    """A histogram with the bounds of its buckets (seconds, ascending).

    Each bucket has a cell, whose count is not cumulative. The last two are for larger values and for the sum.
    """

    name: str
    description: str
    bounds: tuple[float, ...]

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.bounds) + 2

    def show(self, cells: CellView) -> Metric:
        """Return the metric with these counts."""
        buckets = list(zip([*map(str, self.bounds), "+Inf"], accumulate(cells[:-1]), strict=True))
        return HistogramMetricFamily(self.name, self.description, buckets, sum_value=cells[-1])

    def open(self, cells: CellView) -> Callable[[float], None]:
        """Return the function that counts a latency in seconds."""
        bounds = self.bounds

        def observe(seconds: float) -> None:
            cells[bisect_left(bounds, seconds)] += 1
            cells[-1] += seconds

        return observe


Form = CounterForm | HistogramForm


class Cells(Collector):
    """The cells of this process, exposed with those of all processes on this port.

    Args:
        forms: the metrics. Processes on one port have the same ones.
        shared: where the other processes are; None if this is the only one.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, forms: Sequence[Form], shared: SharedMetrics | None) -> None:
        self._forms = forms
        self._directory = None if shared is None else shared.directory
        self._cells = _own_cells(sum(form.size for form in forms), shared)

    def of(self, form: Form) -> CellView:
        """Return the cells of one metric."""
        return next(cells for each, cells in self._parts(self._cells) if each is form)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics, with the counts of all processes that have run on this port."""
        cells = self._cells if self._directory is None else _sum_of(self._directory, len(self._cells))
        return [form.show(part) for form, part in self._parts(cells)]

    def _parts(self, cells: CellView) -> Iterable[tuple[Form, CellView]]:
        start = 0
        for form in self._forms:
            yield form, cells[start : start + form.size]
            start += form.size


def _adder(cells: CellView, index: int) -> Callable[[], None]:
    def add() -> None:
        cells[index] += 1

    return add


def _own_cells(number: int, shared: SharedMetrics | None) -> CellView:
    """Return this process's cells. A process that replaces a dead one continues its counts."""
    if shared is None:
        return memoryview(bytearray(8 * number)).cast("d")
    with (shared.directory / f"{shared.process}.cells").open("a+b") as file:
        file.truncate(8 * number)
        return memoryview(mmap.mmap(file.fileno(), 8 * number)).cast("d")


def _sum_of(directory: Path, number: int) -> CellView:
    """Return the sums of the cells of all processes."""
    sums = memoryview(bytearray(8 * number)).cast("d")
    for file in directory.glob(_FILES):
        # The file of a process that is just starting is empty.
        for index, value in enumerate(memoryview(file.read_bytes().ljust(8 * number, b"\0")).cast("d")):
            sums[index] += value
    return sums
