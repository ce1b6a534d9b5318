"""The guard of the event loop does not report what other processes cause."""

import asyncio
import multiprocessing
import os
from collections.abc import Iterator

import pytest
from tests.test_loop_guard import compute, reports_of


def spin() -> None:
    while True:
        pass


@pytest.fixture
def starved() -> Iterator[None]:
    """Keep each processor of this machine busy with two other processes."""
    context = multiprocessing.get_context("spawn")
    neighbours = [context.Process(target=spin, daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for each in neighbours:
        each.start()
    yield
    for each in neighbours:
        each.kill()
        each.join()
        each.close()


def test_a_starved_machine(starved: None) -> None:
    """Steps of 20 ms are not reported on a machine whose processors are busy, although they take much longer there."""

    async def work() -> None:
        for _ in range(50):
            compute(20)
            await asyncio.sleep(0.002)

    assert reports_of(work) == []
