"""Format generated pages as Markdown that MkDocs and code hosts read alike."""

import html
import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return text for a table cell: one line, with everything escaped that would end the cell or begin a tag."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    # Code shows entities literally, so only its pipes are escaped.
    return "".join(each if each.startswith("`") else html.escape(each, quote=False) for each in parts).replace(
        "|", "\\|"
    )


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table followed by an empty line. The cells must already be Markdown: see `cell`."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n"
