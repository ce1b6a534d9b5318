"""Ten thousand clients that wait in one process: its memory, and the time from a tap to the client's answer."""

import asyncio
import resource
import statistics
import time
from collections import deque
from typing import Final

import uvloop
from benchmarks.client import Connection, check_confirmed, connect, create, verify
from benchmarks.machine import cpu_seconds, fail, percentile, resident_megabytes, say
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.serving import Target, running
from benchmarks.stores import Postgres, sqlite_copy

CLIENTS: Final = 10_000
_AT_ONCE: Final = 100
"""Connections opened at the same time: fewer than the server's backlog."""
_TAPS: Final = 500
_TAPS_PER_SECOND: Final = 100
_TAPPERS: Final = 8
_WAIT: Final = 30


class Crowd:
    """Clients that wait for their sign-in and then start the next one, so that their number stays constant."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.waiting = 0
        self.requests = 0
        self._open: deque[str] = deque()
        """Tokens of sessions whose clients wait."""
        self._tapped: dict[str, asyncio.Future[tuple[float, dict[str, object]]]] = {}
        self._clients: list[asyncio.Task[None]] = []

    async def gather(self) -> None:
        """Open all connections and let each client wait."""
        gate = asyncio.Semaphore(_AT_ONCE)
        for number in range(CLIENTS):
            self._clients.append(asyncio.create_task(self._wait_on(number, gate)))
        while self.waiting < CLIENTS:
            self.check()
            await asyncio.sleep(0.1)

    def check(self) -> None:
        """End the run if a client has failed."""
        for client in self._clients:
            if client.done() and not client.cancelled():
                client.result()
                fail("A waiting client ended by itself.")

    async def _wait_on(self, number: int, gate: asyncio.Semaphore) -> None:
        project_id = self._target.projects[number % len(self._target.projects)]
        async with gate:
            connection = await connect(self._target.port)
            token = await create(connection, project_id)
        while True:
            tapped = self._tapped[token] = asyncio.get_running_loop().create_future()
            self._open.append(token)
            self.waiting += 1
            answer: dict[str, object] = {"status": "pending"}
            while answer == {"status": "pending"}:
                answer = await verify(connection, project_id, token, _WAIT)
                self.requests += 1
            self.waiting -= 1
            tapped.set_result((connection.answered_at, answer))
            token = await create(connection, project_id)

    async def tap(self, tapper: Connection) -> float:
        """Confirm the session that waits longest; return the milliseconds until its client has the answer."""
        token = self._open.popleft()
        await tapper.post("/bench/open", {"session_token": token})
        tapped_at = time.perf_counter()
        decided = await tapper.post("/bench/confirm", {"session_token": token})
        answered_at, answer = await self._tapped.pop(token)
        check_confirmed(answer, decided["messenger_id"])
        return (answered_at - tapped_at) * 1e3

    async def leave(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)


async def _taps(crowd: Crowd, target: Target) -> list[float]:
    """Tap at a steady rate, even if the answers do not keep up."""
    tappers = [await connect(target.port) for _ in range(_TAPPERS)]
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for each in tappers:
        free.put_nowait(each)

    async def tap() -> float:
        tapper = await free.get()
        try:
            return await crowd.tap(tapper)
        finally:
            free.put_nowait(tapper)

    begun = time.perf_counter()
    tasks = []
    for number in range(_TAPS):
        await asyncio.sleep(max(0.0, begun + number / _TAPS_PER_SECOND - time.perf_counter()))
        tasks.append(asyncio.create_task(tap()))
    found = await asyncio.gather(*tasks)
    for each in tappers:
        each.close()
    return found


async def _measure(plan: Plan, target: Target, store: str) -> tuple[PartOutcome, list[str]]:
    crowd = Crowd(target)
    try:
        return await _measure_crowd(plan, crowd, target, store)
    finally:
        await crowd.leave()


async def _measure_crowd(plan: Plan, crowd: Crowd, target: Target, store: str) -> tuple[PartOutcome, list[str]]:
    before, _ = resident_megabytes(target.pid)
    await crowd.gather()
    rounds, memory = [], 0.0
    cpu_before, began = cpu_seconds(target.pid), time.perf_counter()
    for number in range(plan.repeat + 1):
        found = await _taps(crowd, target)
        crowd.check()
        if crowd.waiting < CLIENTS - _TAPS:
            fail(f"Only {crowd.waiting:,} of {CLIENTS:,} clients wait.")
        memory = max(memory, resident_megabytes(target.pid)[0])
        if number:
            rounds.append(found)
        say(f"{store}: {crowd.waiting:,} clients wait, taps, round {number} of {plan.repeat}")
    busy = (cpu_seconds(target.pid) - cpu_before) / (time.perf_counter() - began)
    p50, p99 = (statistics.median(percentile(found, share) for found in rounds) for share in (0.5, 0.99))
    name = store.lower()
    values = {f"crowd.{name}.memory": memory, f"crowd.{name}.p50": p50, f"crowd.{name}.p99": p99}
    row = [store, f"{before:.0f}", f"{memory:.0f}", f"{p50:.1f}", f"{p99:.1f}", f"{busy:.0%}"]
    return PartOutcome(values), row


def measure_crowd(plan: Plan, postgres: Postgres | None) -> PartOutcome:
    """Measure on SQLite, and on PostgreSQL if it is available."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CLIENTS + 1_000:
        fail(f"{CLIENTS:,} clients need as many file descriptors, and `ulimit -Hn` is {hard:,}.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    outcome = PartOutcome()
    rows = [["store", "MB before", "MB, all waiting", "tap p50 ms", "tap p99 ms", "server core"]]
    with sqlite_copy(plan.sessions, plan.directory, "crowd") as url:
        _add(plan, outcome, rows, url, "SQLite")
    if postgres is not None:
        _add(plan, outcome, rows, postgres.database("speed", plan.sessions), "PostgreSQL")
    note = (
        f"{CLIENTS:,} connections, each with a wait of {_WAIT} s for a session of its own, renewed when it is over. "
        f"{_TAPS_PER_SECOND} taps a second, and whoever is answered begins the next sign-in. Memory is resident "
        f"(VmRSS), in MB of 1,000,000 bytes; p50 and p99 are medians of {plan.repeat} rounds of {_TAPS} taps."
    )
    outcome.tables.append(Table(f"{CLIENTS:,} clients waiting in one process", rows, note))
    return outcome


def _add(plan: Plan, outcome: PartOutcome, rows: list[list[str]], url: str, store: str) -> None:
    say(f"{store}: {CLIENTS:,} clients connect")
    with running(url) as target, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found, row = runner.run(_measure(plan, target, store))
    outcome.add(found)
    rows.append(row)
