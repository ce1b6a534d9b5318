"""Report in the metrics whether sign-ins can work in this process, as /readyz does."""

import asyncio
from collections.abc import Callable
from typing import Final, get_args

from taproof.api.health import Readiness
from taproof.http.metrics import ReadyCheck

_EVERY: Final = 5.0
"""Seconds between two checks: short for an alert, and next to nothing for the store."""


async def watch_readiness(readiness: Readiness, show: Callable[[ReadyCheck, int], None]) -> None:
    """Check and report until cancelled. `show` is called with each check, and 1 if it passed or 0."""
    while True:
        missing = await readiness.missing()
        for check in get_args(ReadyCheck):
            show(check, check not in missing)
        await asyncio.sleep(_EVERY)
