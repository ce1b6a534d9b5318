"""Sweeps once a second; goes on at once, letting requests in between, while there is more to do."""

import asyncio
import contextlib
from typing import Final

import structlog

from taproof.core.errors import StoreUnavailable
from taproof.service.housekeeping import Housekeeping

_EVERY: Final = 1.0
_WHEN_STORE_IS_AWAY: Final = 5.0
_BREATH: Final = 0.02

_log = structlog.get_logger(__name__)


async def sweep_until(stopping: asyncio.Event, housekeeping: Housekeeping) -> None:
    """Sweep until `stopping` is set; the batch under way is finished."""
    while not stopping.is_set():
        try:
            more = await housekeeping.sweep()
            pause = _BREATH if more else _EVERY
        except StoreUnavailable as error:
            _log.warning("housekeeping.store_unavailable", cause=str(error.__cause__))
            pause = _WHEN_STORE_IS_AWAY
        except Exception as error:  # noqa: BLE001 — one bad batch must not end all sweeping; it is logged each time.
            _log.exception("housekeeping.bug", error=type(error).__name__)
            pause = _WHEN_STORE_IS_AWAY
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), pause)
