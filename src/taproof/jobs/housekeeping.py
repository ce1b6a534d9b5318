"""Delete expired data once a second. If more is left, continue after a short pause that lets requests run."""

import asyncio
from typing import Final

from taproof.service.housekeeping import Housekeeping
from taproof.service.loop import repeat_until

_EVERY: Final = 1.0
_BREATH: Final = 0.02


async def sweep_until(stopping: asyncio.Event, housekeeping: Housekeeping) -> None:
    """Sweep until `stopping` is set, then finish the current batch."""

    async def sweep() -> float:
        return _BREATH if await housekeeping.sweep() else _EVERY

    await repeat_until(stopping, "housekeeping", sweep)
