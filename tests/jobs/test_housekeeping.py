"""The loop of the sweep; tests/service/test_loop.py tests the behaviour of all loops."""

import asyncio

import pytest
from tests.webhooks.shop import Shop

from taproof.jobs.housekeeping import sweep_until


async def test_the_loop_writes_down_what_has_expired(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session whose ten minutes are over is counted as expired even if nobody reads it."""
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
