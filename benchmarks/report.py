"""Write the results: RESULTS.md with its tables, and results.svg with a plot of the CPU times."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.aims import aim_rows
from benchmarks.outcome import PartOutcome, Plan

_OURS: Final = "#2563eb"
_FLOOR: Final = "#9ca3af"
_PEER: Final = "#d6b25e"
_COLORS: Final = {"ours": _OURS, "floor": _FLOOR}
_PANELS: Final = {
    "poll": ("poll pending", "requests/s"),
    "create": ("create", "requests/s"),
    "cycle": ("full cycle", "sign-ins/s"),
}
_PEERS: Final = re.compile(r"peers\.(poll|create|cycle)\.(\w+)\.(.+)\.cost")


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure of one contestant: microseconds of the server's CPU time per request, and how many in a second."""

    label: str
    cost: float
    rate: float
    color: str


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown, aligned for reading in a terminal too."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def tables_text(outcome: PartOutcome) -> str:
    """Return the tables with their notes."""
    return "\n\n".join(
        "\n\n".join(filter(None, (f"## {each.title}", markdown(each.rows), each.note))) for each in outcome.tables
    )


def aims_text(outcome: PartOutcome) -> str:
    """Return the aims with the measured values; empty if none was measured."""
    rows = aim_rows(outcome.values)
    return f"## Aims\n\n{markdown(rows)}" if len(rows) > 1 else ""


def run_text(outcome: PartOutcome, plan: Plan, facts: dict[str, str]) -> str:
    """Return the method, the versions and the machine."""
    parts = "; ".join(f"{name} {value}" for name, value in (outcome.versions | facts).items())
    return (
        f"## The run\n\nMedians of {plan.repeat} rounds of {plan.seconds} s where nothing else is said; every answer "
        f"was checked.\n\n{parts}."
    )


def bars(outcome: PartOutcome, figure: str) -> list[Bar]:
    """Return the bars of a panel, the cheapest first. All of them were measured in the same rounds."""
    found = []
    for name, cost in outcome.values.items():
        matched = _PEERS.fullmatch(name)
        if matched is not None and matched[1] == figure:
            rate = outcome.values[name.removesuffix(".cost") + ".rate"]
            found.append(Bar(matched[3], cost, rate, _COLORS.get(matched[2], _PEER)))
    return sorted(found, key=lambda bar: bar.cost)


def plot(outcome: PartOutcome, path: Path) -> bool:
    """Draw a panel of bars for each figure; return False if there is nothing to draw."""
    import matplotlib as mpl  # noqa: PLC0415 — it takes a second, and memory that the load could use.

    mpl.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    panels = {titles: found for figure, titles in _PANELS.items() if (found := bars(outcome, figure))}
    if not panels:
        return False
    # Text stays text, so that the file is small and searchable; the same figures give the same file.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "taproof", "font.size": 9})
    heights = [len(found) + 1 for found in panels.values()]
    figure, all_axes = plt.subplots(
        len(panels), 1, figsize=(8, 0.3 * sum(heights)), height_ratios=heights, layout="constrained", squeeze=False
    )
    for axes, ((title, unit), found) in zip(all_axes[:, 0], panels.items(), strict=True):
        found.reverse()  # The first bar is the lowest.
        costs = [bar.cost for bar in found]
        drawn = axes.barh(range(len(found)), costs, color=[bar.color for bar in found], height=0.72)
        axes.bar_label(drawn, labels=[f"{bar.cost:,.0f} µs ({bar.rate:,.0f} {unit})" for bar in found], padding=3)
        axes.set_yticks(range(len(found)), [bar.label for bar in found])
        axes.set_title(f"{title}, CPU time of the server per request", loc="left", fontweight="bold")
        axes.set_xlim(0, max(costs) * 1.35)
        axes.xaxis.set_visible(False)
        axes.tick_params(left=False)
        axes.spines[:].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    # Its lines end with spaces, which style checkers refuse.
    path.write_text("\n".join(line.rstrip() for line in path.read_text("utf-8").splitlines()) + "\n", encoding="utf-8")
    return True
