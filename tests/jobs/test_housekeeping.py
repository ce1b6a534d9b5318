"""The sweeping loop: survives a store that is away, stops when told."""

import asyncio

import pytest
from tests.webhooks.shop import Shop

from taproof.core.errors import StoreUnavailable
from taproof.jobs import housekeeping
from taproof.jobs.housekeeping import sweep_until
from taproof.service import loop as job_loop


async def test_the_loop_writes_down_what_has_expired(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session whose ten minutes are over is counted as expired without anybody reading it."""
    project, _ = await shop.project("")
    await shop.signin.create_session(project.id, public=True)
    shop.clock.now += 600_000
    sweep, stopping = shop.housekeeping.sweep, asyncio.Event()

    async def last_sweep() -> bool:
        stopping.set()
        return await sweep()

    monkeypatch.setattr(shop.housekeeping, "sweep", last_sweep)
    await sweep_until(stopping, shop.housekeeping)
    assert (await shop.storage.counts.read_daily_counts([project.id], 0))[0].expired == 1


async def test_the_loop_goes_on_when_the_store_was_away(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a locked database nor a bug ends all sweeping."""
    monkeypatch.setattr(housekeeping, "_EVERY", 0.0)
    monkeypatch.setattr(job_loop, "_WHEN_STORE_IS_AWAY", 0.0)
    sweep, troubles = shop.housekeeping.sweep, [StoreUnavailable(), LookupError("a bug"), StoreUnavailable()]
    swept = asyncio.Event()

    async def away() -> bool:
        if troubles:
            raise troubles.pop()
        swept.set()
        return await sweep()

    monkeypatch.setattr(shop.housekeeping, "sweep", away)
    stopping = asyncio.Event()
    loop = asyncio.create_task(sweep_until(stopping, shop.housekeeping))
    await swept.wait()
    stopping.set()
    await loop
    assert troubles == []


async def test_the_loop_stops_at_once_when_told(shop: Shop) -> None:
    """Told before it began, it does nothing; told during its pause, it does not wait for the end of it."""
    stopping = asyncio.Event()
    stopping.set()
    await sweep_until(stopping, shop.housekeeping)
