"""Tables of a server's CPU time by part and function, from the samples that `sampling.py` takes."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.outcome import Table

_SHOWN: Final = 10
_NOTE: Final = (
    "Share of the server's CPU time, by samples. Each counts for the innermost part of Taproof or library in the "
    "stack; the event loop's own time counts for what it calls next."
)


def read_shares(path: Path, kind: str = "parts") -> dict[str, float]:
    """Return the share of each part, or of each of the most frequent functions, in all samples."""
    counted: dict[str, dict[str, int]] = json.loads(path.read_text(encoding="utf-8"))
    total = sum(counted["parts"].values())
    return {name: count / total for name, count in counted[kind].items()}


def profile_table(title: str, columns: Mapping[str, Mapping[str, float]], what: str = "part") -> Table:
    """Return a table with a column for each load, the largest parts or functions first."""
    parts: Counter[str] = Counter()
    for shares in columns.values():
        for part, share in shares.items():
            parts[part] += round(share * 1_000_000)
    rows = [[what, *columns]]
    for part, _ in parts.most_common(_SHOWN):
        rows.append([part, *(f"{shares.get(part, 0.0):.0%}" for shares in columns.values())])
    return Table(title, rows, _NOTE)
