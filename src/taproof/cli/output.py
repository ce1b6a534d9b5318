"""What commands print: tables for people, tab-separated lines for pipes, JSON for programs."""

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer

SHOWN_ONCE: Final = "Keep what follows like a password: it is shown this once and never again."
_COLOURS: Final = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "problem": typer.colors.RED}


def print_json(answer: Any) -> None:
    """Print one JSON document. Its fields are kept from release to release, and new ones may come."""
    typer.echo(json.dumps(answer, indent=2))


def to_the_minute(time: str) -> str:
    """Return a time in ISO 8601 as tables show it: `2026-11-20 08:15Z`."""
    return f"{time[:10]} {time[11:16]}Z"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Print rows under their column names; `empty` says what to do when there are none.

    Away from a terminal a row is one line with tabs, however long, so that nothing is cut off for `cut` and `awk`.
    """
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            typer.echo("\t".join(row))
    elif not rows:
        typer.echo(empty)
    else:
        _print_rich_table(columns, rows)


def _print_rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 — only a terminal needs it, and it is slow to import.
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    least = 0
    for column, *cells in zip(columns, *rows, strict=True):
        # Ids are copied from here, so no word is broken, even where a line gets wider than the terminal; names are.
        texts = [column, *cells]
        width = 8 if column == "name" else max(map(len, " ".join(texts).split()))
        least += width + 2
        table.add_column(column, overflow="fold", min_width=width, no_wrap=all(len(text) <= width for text in texts))
    for row in rows:
        table.add_row(*row)
    # A name in square brackets is a name, not markup.
    console = Console(markup=False, highlight=False, emoji=False)
    console.width = max(console.width, least)
    console.print(table, crop=False)


def print_secrets(advice: str, lines: Sequence[tuple[str, str]]) -> None:
    """Print how to keep secrets, and below that each on a line of its own."""
    typer.echo(advice)
    for label, secret in lines:
        typer.echo(f"\n  {label}\n  {secret}")
    typer.echo()


def print_finding(status: str, name: str, detail: str, advice: str) -> None:
    """Print one line of the doctor's report, and below it what to do."""
    typer.echo(f"{typer.style(f'{status:<8}', fg=_COLOURS[status])} {name}: {detail}")
    if advice:
        typer.echo(f"         -> {advice}")
