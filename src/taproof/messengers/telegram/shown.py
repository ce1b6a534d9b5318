"""How what other people wrote, and times, stand in the bot's messages."""

import html

from taproof.core.clock import iso8601
from taproof.core.names import isolated_name


def shown_project(name: str) -> str:
    """Return a project's name for HTML.

    It stands in `<code>`, which sets it off from the bot's own words, and in which clients make no links: a name
    such as `t.me/other_bot` or `@someone` would be one tap away from the Confirm button otherwise.
    """
    return f"<code>{html.escape(isolated_name(name), quote=False)}</code>"


def shown_time(instant: int) -> str:
    """Return a time (ms) as `2026-11-20 22:44 UTC`, isolated so that no right-to-left text reorders it."""
    written = iso8601(instant)
    return isolated_name(f"{written[:10]} {written[11:16]} UTC")
