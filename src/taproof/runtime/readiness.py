"""Report in the metrics whether sign-ins can work in this process: the store answers, and the bot's name is known."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from taproof.http.metrics import ReadyCheck

_EVERY: Final = 5.0
"""Seconds between two checks: short for an alert, and next to nothing for the store."""


async def watch_readiness(
    ping: Callable[[], Awaitable[None]], makes_links: Callable[[], bool], show: Callable[[ReadyCheck, int], None]
) -> None:
    """Check and report until cancelled.

    Args:
        ping: returns when the store answers; raises when it does not.
        makes_links: returns whether links can be made; True on a node that makes none.
        show: called with each check, and 1 if it passed or 0.
    """
    while True:
        show("bot_name", makes_links())
        try:
            await ping()
        except Exception:  # noqa: BLE001 — after any error, the store is not ready; its callers log the reason.
            show("store", 0)
        else:
            show("store", 1)
        await asyncio.sleep(_EVERY)
