"""The outcome of a part of the benchmark: its figures by name, for the aims and the plot, and its tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measuring import Slice, median


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its heading first, and a note for its readers."""

    title: str
    rows: list[list[str]]
    note: str = ""


@dataclass(slots=True)
class PartOutcome:
    """The measurements. `values` are named `part.figure`; `aims.py` compares them with the aims."""

    values: dict[str, float] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def add(self, other: "PartOutcome") -> None:
        """Add the outcome of another part."""
        self.values |= other.values
        self.tables += other.tables
        self.versions |= other.versions


@dataclass(frozen=True, slots=True)
class Plan:
    """The amount of measuring: seconds of one figure in one round, counted rounds, and sizes of the stores."""

    directory: Path
    seconds: int
    repeat: int
    sessions: int
    many: int
    postgres_many: int
    minutes: int
    """The duration of the part `mixed`."""
    few: int = 10_000


SPEED_HEAD = ["figure", "req/s", "sign-ins/s", "p99 ms", "server µs", "server core", "load core"]


def speed_row(title: str, rounds: Sequence[Slice]) -> list[str]:
    """Return the row of a figure measured by wrk, under SPEED_HEAD."""
    cycles = median(rounds, "cycles_per_second")
    return [
        title,
        f"{median(rounds, 'per_second'):,.0f}",
        f"{cycles:,.0f}" if cycles else "",
        f"{median(rounds, 'p99'):.1f}",
        f"{median(rounds, 'cost'):.0f}",
        f"{median(rounds, 'server_busy'):.0%}",
        f"{median(rounds, 'load_busy'):.0%}",
    ]
