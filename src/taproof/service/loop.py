"""Run a worker's loop. It stops only between two steps, and continues after an error, also of the store."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from taproof.core.errors import StoreUnavailable

AFTER_ERROR: Final = 5.0
"""The pause in seconds after an error."""

_log = structlog.get_logger(__name__)


async def repeat_until(
    stopping: asyncio.Event, name: str, step: Callable[[], Awaitable[float]], *, after_error: float = AFTER_ERROR
) -> None:
    """Repeat `step` until `stopping` is set.

    `name` is the loop's name in the log. `step` does a bounded amount of work, and returns the pause in seconds before
    the next step.
    """
    while not stopping.is_set():
        try:
            pause = await step()
        except StoreUnavailable as error:
            _log.warning(f"{name}.store_unavailable", cause=str(error.__cause__))
            pause = after_error
        except Exception as error:  # noqa: BLE001 — a failed step must not end the loop; each failure is logged.
            _log.exception(f"{name}.bug", error=type(error).__name__)
            pause = after_error
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), pause)
