"""The loop of a worker."""

import asyncio

from structlog.testing import capture_logs

from taproof.core.errors import StoreUnavailable
from taproof.service.loop import repeat_until


async def test_an_error_does_not_end_the_loop() -> None:
    """Neither an unavailable store nor a bug ends it, and each is logged. It stops between two steps."""
    stopping = asyncio.Event()
    outcomes: list[Exception | None] = [StoreUnavailable(), LookupError("a bug"), StoreUnavailable(), None]
    steps = 0

    async def step() -> float:
        nonlocal steps
        if (error := outcomes[steps]) is None:
            stopping.set()
        steps += 1
        if error is not None:
            raise error
        return 3_600.0

    with capture_logs() as entries:
        await repeat_until(stopping, "job", step, after_error=0)
        await repeat_until(stopping, "job", step)
    assert steps == len(outcomes)
    assert [each["event"] for each in entries] == ["job.store_unavailable", "job.bug", "job.store_unavailable"]


async def test_a_stop_ends_the_pause() -> None:
    """A loop in a long pause stops immediately when it is told to."""
    stopping, rests = asyncio.Event(), asyncio.Event()

    async def step() -> float:
        rests.set()
        return 3_600.0

    loop = asyncio.create_task(repeat_until(stopping, "job", step))
    await rests.wait()
    stopping.set()
    await asyncio.wait_for(loop, 60)
