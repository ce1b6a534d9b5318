"""Print the output of commands: tables for people, tab-separated lines for pipes, JSON for programs."""

import contextlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import typer

from taproof.core.names import visible_name

_SHOWN_ONCE: Final = "Keep this secret, like a password. It is not shown again."
_COLOURS: Final = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "problem": typer.colors.RED}

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

Item = Mapping[str, Any]
Column = str | Callable[[Item], Any]
"""The field of an item that a column shows, or a function that returns the value to show."""


def print_json(answer: Any) -> None:
    """Print one JSON document. Releases may add fields, but never remove one."""
    typer.echo(json.dumps(answer, indent=2))


def to_the_minute(time: str) -> str:
    """Return an ISO 8601 time in the format of tables: `2026-11-20 08:15Z`."""
    return f"{time[:10]} {time[11:16]}Z"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Print rows under their column names, or the sentence `empty` if there are no rows.

    Without a terminal, a row is one line with tabs, so that `cut` and `awk` get complete values.
    """
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            typer.echo("\t".join(row))
    elif not rows:
        typer.echo(empty)
    else:
        _print_rich_table(columns, rows)


def print_items(columns: Mapping[str, Column], items: Sequence[Item], *, empty: str) -> None:
    """Print objects of an answer as a table, or the sentence `empty`. The answer may come from a hostile service."""
    rows = [
        [_cell(item.get(column) if isinstance(column, str) else column(item)) for column in columns.values()]
        for item in items
    ]
    print_table(list(columns), rows, empty=empty)


def print_fields(fields: Item) -> None:
    """Print one object of an answer, with complete times: a field on each line."""
    rows = [(visible_name(name), value if _is_time(value) else _cell(value)) for name, value in fields.items()]
    print_table(("field", "value"), rows, empty="")


def print_next_page(answer: Item) -> None:
    """Say on stderr how to continue a list that has more items."""
    if answer.get("next_cursor"):
        # People paste it, so their shell must not interpret it.
        typer.echo(f"For more, add: --cursor {shlex.quote(_cell(answer['next_cursor']))}", err=True)


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def _cell(value: Any) -> str:
    """Return a JSON value as safe text on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_time(value):
        return to_the_minute(value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = " ".join(value)
    return visible_name(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _print_rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 — only a terminal needs it, and it is slow to import.
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    least = 0
    for column, *cells in zip(columns, *rows, strict=True):
        # People copy ids from the table, so only names are wrapped, even if a line becomes wider than the terminal.
        texts = [column, *cells]
        width = 8 if column == "name" else max(map(len, " ".join(texts).split()))
        least += width + 2
        table.add_column(column, overflow="fold", min_width=width, no_wrap=all(len(text) <= width for text in texts))
    for row in rows:
        table.add_row(*row)
    # Names may contain square brackets, which are not markup.
    console = Console(markup=False, highlight=False, emoji=False)
    console.width = max(console.width, least)
    console.print(table, crop=False)


def print_secrets(lines: Sequence[tuple[str, str]], advice: str = _SHOWN_ONCE) -> None:
    """Print the advice, then each secret on its own line."""
    typer.echo(advice)
    for label, secret in lines:
        typer.echo(f"\n  {label}\n  {secret}")
    typer.echo()


@contextlib.contextmanager
def show_status(text: str) -> Iterator[Callable[[str], None]]:
    """Show what a command does, on stderr if that is a terminal; yield a function that replaces the text."""
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.console import Console  # noqa: PLC0415 — slow, and only a terminal needs it.

    with Console(stderr=True).status(text) as status:
        yield status.update


def print_finding(status: str, name: str, detail: str, advice: str) -> None:
    """Print one finding of the doctor, and the advice below it."""
    typer.echo(f"{typer.style(f'{status:<8}', fg=_COLOURS[status])} {name}: {detail}")
    if advice:
        typer.echo(f"         -> {advice}")
