"""Formats strangers' texts and times for the bot's messages."""

import html

from taproof.core.clock import iso8601
from taproof.core.names import isolated_name


def shown_text(text: str) -> str:
    """Return a stranger's text, such as a project's name, for HTML and inside `<code>`.

    `<code>` sets the text apart from the bot's own words, and clients make no links in it. Otherwise a name such as
    `t.me/other_bot` or `@someone` would be a link above the Confirm button.
    """
    return f"<code>{html.escape(isolated_name(text), quote=False)}</code>"


def shown_time(instant: int) -> str:
    """Return a time (ms) as `2026-11-20 22:44 UTC`, isolated so that right-to-left text does not reorder it."""
    written = iso8601(instant)
    return isolated_name(f"{written[:10]} {written[11:16]} UTC")
