"""Mixed load at a moderate rate for a long time: does the memory of a process grow?

Clients create, poll, wait, are confirmed and redeem, and some of them leave. A developer reads the API meanwhile.
"""

import asyncio
import random
import statistics
import time
from itertools import count
from typing import Any, Final

import uvloop
from aiohttp import ClientSession
from benchmarks.client import Connection, check_confirmed, connect, create, verify
from benchmarks.machine import BenchmarkFailed, cpu_seconds, fail, resident_megabytes, say
from benchmarks.openid_provider.taproof import access_token
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.server import bench_settings
from benchmarks.serving import Target, running
from benchmarks.stores import sqlite_copy

from taproof.runtime.services import open_services

_PER_SECOND: Final = 25
"""Sign-ins that begin in a second."""
_READS_PER_SECOND: Final = 5
_THINKING: Final = (0.5, 3.0)
"""Seconds from the opened link to the tap."""
_POLLED_EVERY: Final = 0.5
_WAIT: Final = 30
_LEAVE: Final = 10
"""Of so many clients one leaves while it waits, and one after its first poll."""
_SAMPLED_EVERY: Final = 60.0
_LEAST_SAMPLES: Final = 20
_PAGES: Final = ("me", "projects", "sessions?limit=50", "sessions?status=used", "analytics?days=30")

Sample = tuple[float, float]
"""Seconds since the start, and MB of resident memory."""


def measure_mixed(plan: Plan) -> PartOutcome:
    """Measure on SQLite."""
    with sqlite_copy(plan.sessions, plan.directory, "mixed") as url:
        token = asyncio.run(_create_token(url))
        with running(url) as target, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            before = cpu_seconds(target.pid)
            samples, sign_ins = runner.run(_mix(target, token, plan.minutes * 60))
            busy = (cpu_seconds(target.pid) - before) / (plan.minutes * 60)
    settled = [sample for sample in samples if sample[0] >= plan.minutes * 6]
    hours, memory = [seconds / 3600 for seconds, _ in settled], [megabytes for _, megabytes in settled]
    growth = statistics.linear_regression(hours, memory).slope
    rows = [
        ["minutes", "sign-ins", "MB after a tenth", "MB at the end", "most MB", "growth, MB/h", "server core"],
        [
            f"{plan.minutes}",
            f"{sign_ins:,}",
            f"{memory[0]:.1f}",
            f"{memory[-1]:.1f}",
            f"{max(memory):.1f}",
            f"{growth:+.1f}",
            f"{busy:.0%}",
        ],
    ]
    note = (
        f"One process on SQLite with {plan.sessions:,} stored sessions. {_PER_SECOND} sign-ins a second begin: half of "
        f"the clients wait, half poll. One in {_LEAVE} leaves while it waits, and one after its first poll. "
        f"{_READS_PER_SECOND} pages of the developer API are read in a second. Memory is resident (VmRSS), in MB of "
        f"1,000,000 bytes, in {len(samples)} samples. Growth is the slope of the least-squares line after the first "
        "tenth."
    )
    return PartOutcome(tables=[Table("Memory under mixed load", rows, note)], versions=dict(target.versions))


async def _create_token(url: str) -> str:
    async with open_services(bench_settings(url, 1)) as services:
        return await access_token(services)


async def _mix(target: Target, token: str, seconds: float) -> tuple[list[Sample], int]:
    """Keep up the load for this long; return the samples of the memory, and how many sign-ins began."""
    begun, sign_ins = time.perf_counter(), 0
    every = min(_SAMPLED_EVERY, seconds / _LEAST_SAMPLES)
    try:
        async with ClientSession(headers={"Authorization": f"Bearer {token}"}) as session, asyncio.TaskGroup() as tasks:
            sampling = tasks.create_task(_sample(target, begun, every, seconds))
            reading = tasks.create_task(_read(session, target))
            for sign_ins in count():
                await asyncio.sleep(max(0.0, begun + sign_ins / _PER_SECOND - time.perf_counter()))
                if sampling.done():
                    break
                tasks.create_task(_sign_in(target, sign_ins))
            reading.cancel()
    except* BenchmarkFailed as failures:
        fail(str(failures.exceptions[0]))
    return sampling.result(), sign_ins


async def _sample(target: Target, begun: float, every: float, seconds: float) -> list[Sample]:
    samples: list[Sample] = []
    for number in range(1, round(seconds / every) + 1):
        await asyncio.sleep(max(0.0, begun + number * every - time.perf_counter()))
        samples.append((number * every, resident_megabytes(target.pid)[0]))
        say(f"mixed load: {samples[-1][1]:.1f} MB after {samples[-1][0] / 60:.1f} of {seconds / 60:.0f} minutes")
    return samples


async def _read(session: ClientSession, target: Target) -> None:
    """Read the pages of the developer API in turn, until it is cancelled."""
    for number in count():
        page = _PAGES[number % len(_PAGES)]
        async with session.get(f"http://127.0.0.1:{target.port}/api/v1/dev/{page}") as answer:
            content = await answer.text()
        if answer.status != 200:
            fail(f"GET {page} was answered {answer.status}: {content[:300]}")
        await asyncio.sleep(1 / _READS_PER_SECOND)


async def _sign_in(target: Target, number: int) -> None:
    project_id = target.projects[number % len(target.projects)]
    client = await connect(target.port)
    try:
        token = await create(client, project_id)
        await _expect_pending(client, project_id, token)
        if number % _LEAVE == 0:
            return
        waits = number % 2 == 1
        waiting = asyncio.create_task(verify(client, project_id, token, _WAIT)) if waits else None
        if waiting is not None and number % _LEAVE == 1:
            await _think()
            waiting.cancel()
            return
        deciding = asyncio.create_task(_decide(target, token))
        answer = await (waiting or _poll(client, project_id, token))
        check_confirmed(answer, await deciding)
    finally:
        client.close()


async def _think() -> None:
    await asyncio.sleep(random.uniform(*_THINKING))  # noqa: S311 — no secret.


async def _expect_pending(client: Connection, project_id: str, token: str) -> None:
    if await verify(client, project_id, token) != {"status": "pending"}:
        fail("A new sign-in is not pending.")


async def _poll(client: Connection, project_id: str, token: str) -> dict[str, Any]:
    """Poll until the sign-in is no longer pending; return the answer."""
    while (answer := await verify(client, project_id, token)) == {"status": "pending"}:  # noqa: ASYNC110
        await asyncio.sleep(_POLLED_EVERY)
    return answer


async def _decide(target: Target, token: str) -> str:
    """Open the link, think, and tap Confirm, as a simulated user; return that user's id."""
    phone = await connect(target.port)
    try:
        await phone.post("/bench/open", {"session_token": token})
        await _think()
        return str((await phone.post("/bench/confirm", {"session_token": token}))["messenger_id"])
    finally:
        phone.close()
