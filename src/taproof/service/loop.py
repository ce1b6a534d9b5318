"""Run a worker's loop: it stops between two steps, and goes on after a failed step or while the store is away."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from taproof.core.errors import StoreUnavailable

_WHEN_STORE_IS_AWAY: Final = 5.0

_log = structlog.get_logger(__name__)


async def repeat_until(stopping: asyncio.Event, name: str, step: Callable[[], Awaitable[float]]) -> None:
    """Do `step` again and again until `stopping` is set; each returns the seconds to pause before the next.

    Args:
        stopping: the step under way is finished first.
        name: what the log calls this loop.
        step: one bounded piece of work.
    """
    while not stopping.is_set():
        try:
            pause = await step()
        except StoreUnavailable as error:
            _log.warning(f"{name}.store_unavailable", cause=str(error.__cause__))
            pause = _WHEN_STORE_IS_AWAY
        except Exception as error:  # noqa: BLE001 — one bad step must not end the loop; it is logged each time.
            _log.exception(f"{name}.bug", error=type(error).__name__)
            pause = _WHEN_STORE_IS_AWAY
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), pause)
