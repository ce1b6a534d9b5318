"""Write the results: RESULTS.md with its tables, and results.svg with a plot of the speeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.aims import aim_rows
from benchmarks.outcome import PartOutcome, Plan

_OURS: Final = "#2563eb"
_FLOOR: Final = "#9ca3af"
_PEER: Final = "#d6b25e"
_PANELS: Final = {
    "poll": "poll pending, requests/s",
    "create": "create, requests/s",
    "cycle": "full cycle, sign-ins/s",
}
Bar = tuple[str, float, str]


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
    """Return the bars of a panel: a label, a value, a colour. Ours first, then peers and the floor, each by value."""
    ours: list[Bar] = [
        (f"Taproof on {store}", outcome.values[f"{name}.{figure}"], _OURS)
        for name, store in (("sqlite", "SQLite"), ("postgres", "PostgreSQL"))
        if f"{name}.{figure}" in outcome.values
    ]
    if figure == "cycle" and "bot.webhook" in outcome.values:
        ours.append(
            ("Taproof, over the Bot API", max(outcome.values["bot.webhook"], outcome.values["bot.polling"]), _OURS)
        )
    prefix = f"peers.{figure}."
    others: list[Bar] = []
    for name, value in outcome.values.items():
        if name.startswith(prefix):
            kind, _, peer = name.removeprefix(prefix).partition(".")
            others.append((peer, value, _FLOOR if kind == "floor" else _PEER))
    if figure == "poll" and "sqlite.bare" in outcome.values:
        others.append(("bare ASGI app", outcome.values["sqlite.bare"], _FLOOR))
    return ours + sorted(others, key=lambda bar: -bar[1])


def plot(outcome: PartOutcome, path: Path) -> bool:
    """Draw a panel of bars for each figure; return False if there is nothing to draw."""
    import matplotlib as mpl  # noqa: PLC0415 — it takes a second, and memory that the load could use.

    mpl.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    panels = {title: found for figure, title in _PANELS.items() if (found := bars(outcome, figure))}
    if not panels:
        return False
    # Text stays text, so that the file is small and searchable; the same figures give the same file.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "taproof", "font.size": 9})
    heights = [len(found) + 1 for found in panels.values()]
    figure, all_axes = plt.subplots(
        len(panels), 1, figsize=(8, 0.3 * sum(heights)), height_ratios=heights, layout="constrained", squeeze=False
    )
    for axes, (title, found) in zip(all_axes[:, 0], panels.items(), strict=True):
        labels, values, colors = zip(*reversed(found), strict=True)
        drawn = axes.barh(range(len(found)), values, color=colors, height=0.72)
        axes.bar_label(drawn, labels=[f"{value:,.0f}" for value in values], padding=3)
        axes.set_yticks(range(len(found)), labels)
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_xlim(0, max(values) * 1.12)
        axes.xaxis.set_visible(False)
        axes.tick_params(left=False)
        axes.spines[:].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    # Its lines end with spaces, which style checkers refuse.
    path.write_text("\n".join(line.rstrip() for line in path.read_text("utf-8").splitlines()) + "\n", encoding="utf-8")
    return True
