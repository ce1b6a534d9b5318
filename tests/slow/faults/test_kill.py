"""Killing one of the processes of a service (SIGKILL), again and again, loses and duplicates nothing."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.conftest import Figure
from tests.e2e.conftest import StartService
from tests.faults.http_load import http_loaded
from tests.faults.load import PATIENCE
from tests.faults.place import Place


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


async def replaced(supervisor: int, victim: int) -> None:
    """Wait until there are two processes again, without the killed one."""
    async with asyncio.timeout(PATIENCE):
        while victim in children(supervisor) or len(children(supervisor)) < 2:  # noqa: ASYNC110 — nobody tells.
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
async def test_a_killed_process_of_a_service(
    place: Place, start_service: StartService, figure: Figure, *, soak: bool
) -> None:
    """Over HTTP, where 200 acknowledges a step, the other process keeps serving and the killed one is replaced."""
    service = start_service(place, "--workers", "2")
    async with http_loaded(place, service) as load:
        # No more kills: the service waits longer after each one before it starts a new process.
        for _ in range(6 if soak else 2):
            await load.until_signed_in(15)
            victim = children(service.process.pid)[0]
            os.kill(victim, signal.SIGKILL)
            await load.until_signed_in(15)
            await replaced(service.process.pid, victim)
        assert load.refused == 0
    figure("connections lost", load.lost)
    figure("sessions", len(load.ledger.steps))
    for step in ("created", "confirmed", "proof"):
        assert load.ledger.count(step) > 30
