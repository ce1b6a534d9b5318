"""How the generated pages are written: Markdown that MkDocs and code hosts read alike."""

import html
import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return text for a cell of a table: one line, and nothing in it that ends the cell or begins a tag."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    # Between backticks entities would be shown as they are; a pipe must be escaped there too.
    return "".join(each if each.startswith("`") else html.escape(each, quote=False) for each in parts).replace(
        "|", "\\|"
    )


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with an empty line behind it. The cells are Markdown already: see `cell`."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n"
