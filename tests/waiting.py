"""Wait for a condition. If it does not become true in time, fail with what was expected and what was seen."""

import asyncio
import inspect
import linecache
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

PATIENCE: Final = 120.0
"""Seconds. A machine ten times slower than the developers' meets every condition sooner."""


async def until(condition: Callable[[], object], what: str = "", patience: float = PATIENCE) -> Any:
    """Wait until a condition's value is true, and return it. Coroutine functions are awaited.

    Raises:
        AssertionError: it is not true in time; with `what`, or the caller's line.
    """
    value: object = None
    pause = 0.001
    try:
        async with asyncio.timeout(patience):
            while True:
                found = condition()
                value = await found if inspect.isawaitable(found) else found
                if value:
                    return value
                await asyncio.sleep(pause)
                pause = min(1.5 * pause, 0.05)
    except TimeoutError as error:
        raise _failure(inspect.currentframe(), what, patience, value) from error


def wait_until(condition: Callable[[], object], what: str = "", patience: float = PATIENCE) -> Any:
    """Wait as `until` does, without an event loop."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise _failure(inspect.currentframe(), what, patience, value)
        time.sleep(0.02)
    return value


def _failure(waiter: FrameType | None, what: str, patience: float, value: object) -> AssertionError:
    if waiter is not None and waiter.f_back is not None and not what:
        call = inspect.getframeinfo(waiter.f_back)
        last = call.positions and call.positions.end_lineno
        lines = range(call.lineno, (last or call.lineno) + 1)
        what = " ".join(linecache.getline(call.filename, line).strip() for line in lines)
    return AssertionError(f"not within {patience:g} s: {what}; last seen: {value!r}")
