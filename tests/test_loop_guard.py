"""The guard reports steps that hold the event loop, with their stack."""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable

from tests.loop_guard import LIMIT, TICK, Guard, GuardedLoop

Work = Callable[[], Awaitable[None]]


def reports_of(work: Work) -> list[str]:
    """Run a function on a guarded loop, and return the reports."""
    reports: list[str] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, GuardedLoop)
        loop.guard.arm(reports.append)
        await asyncio.sleep(0)
        await work()

    with asyncio.Runner(loop_factory=GuardedLoop) as runner:
        runner.run(run())
    return reports


def compute(milliseconds: float) -> None:
    """Use this much processor time, however long it takes."""
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        pass


def has_stack(guard: Guard) -> bool:
    """Return whether the second thread has sampled the stack of the current step."""
    return guard.watched.step == guard.step and bool(guard.watched.stacks)


def compute_until_seen() -> None:
    """Use more than the limit, until the second thread, which may wait for a processor, has sampled the stack."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, GuardedLoop)
    guard, end = loop.guard, time.thread_time_ns() + 2 * LIMIT
    while time.thread_time_ns() < end or not has_stack(guard):
        sum(range(10_000))


def read(pipe: int) -> None:
    """Wait for a writer."""
    os.read(pipe, 1)


class Protocol(asyncio.Protocol):
    """A protocol whose methods, called by a transport outside of callbacks, take a given time."""

    def __init__(self, milliseconds: float) -> None:
        self.milliseconds = milliseconds
        self.calls = 0

    def data_received(self, _data: bytes) -> None:
        self.calls += 1
        compute(self.milliseconds)


async def receive(protocol: Protocol, times: int) -> None:
    """Let a transport call a protocol this many times."""
    reader, writer = os.pipe()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(reader, "rb"))
    for call in range(times):
        os.write(writer, b"x")
        while protocol.calls == call:  # noqa: ASYNC110 — a callback after each call is what this makes.
            await asyncio.sleep(0)
    os.close(writer)
    transport.close()


def test_a_busy_step() -> None:
    """A step that uses too much of the processor is reported with the name of the function."""

    async def work() -> None:
        compute_until_seen()

    (report,) = reports_of(work)
    assert "in work\n" in report
    assert "in compute_until_seen\n" in report


def test_a_timer() -> None:
    """A delayed callback is a step like any other."""

    async def work() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.call_later(0, compute_until_seen)
        loop.call_at(loop.time(), compute_until_seen)
        loop.call_later(0.01, done.set_result, None)
        await done

    assert ["in compute_until_seen\n" in report for report in reports_of(work)] == [True, True]


def test_a_call_into_c() -> None:
    """A C function that does not release the interpreter is reported at the line that called it."""

    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, GuardedLoop)
        guard, before = loop.guard, time.thread_time_ns()
        # The second thread may have to wait for a processor before it can take the stack of this step.
        while time.thread_time_ns() - before <= LIMIT or not has_stack(guard):
            sorted(range(1 << 20, 0, -1), key=float)

    (report,) = reports_of(work)
    assert "sorted(" in report


def test_a_protocol() -> None:
    """Calls of a transport between two callbacks are steps."""

    async def work() -> None:
        await receive(Protocol(60), 1)

    (report,) = reports_of(work)
    assert "a transport" in report
    assert "in data_received\n" in report


def test_a_blocking_call() -> None:
    """A call that blocks without using the processor is reported once the guard has seen it long enough."""
    reader, writer = os.pipe()
    reading = threading.Event()
    guards: list[Guard] = []

    def release() -> None:
        reading.wait()
        (guard,) = guards
        while guard.watched.step != guard.step or guard.watched.blocked <= LIMIT:
            time.sleep(TICK / 1e9)
        os.write(writer, b"x")

    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, GuardedLoop)
        guards.append(loop.guard)
        reading.set()
        read(reader)

    # It starts before the loop does: start() blocks until the thread runs, which takes long on a busy machine.
    releasing = threading.Thread(target=release)
    releasing.start()
    (report,) = reports_of(work)
    releasing.join()
    os.close(reader)
    os.close(writer)
    assert "in read\n" in report


def test_an_idle_loop() -> None:
    """Waiting for events is not a step."""

    async def work() -> None:
        await asyncio.sleep(0.3)

    assert reports_of(work) == []


def test_many_short_steps() -> None:
    """A loop that is always busy with short steps is not reported."""

    async def work() -> None:
        for _ in range(100):
            compute(2)
            await asyncio.sleep(0)
        await asyncio.gather(*(asyncio.to_thread(time.sleep, 0.002) for _ in range(50)))
        await receive(Protocol(2), 100)

    assert reports_of(work) == []
