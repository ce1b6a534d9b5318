"""Measure sign-ins through a provider: how many, in what time, and with how much of the server's CPU time."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from aiohttp import ClientSession, ClientTimeout, CookieJar, TCPConnector, TraceConfig, TraceRequestStartParams
from benchmarks.machine import cpu_seconds, percentile, say
from benchmarks.measuring import alternating, median, median_ratio
from benchmarks.openid_provider.flow import Provider, Start, flow
from benchmarks.openid_provider.taproof import taproof
from benchmarks.outcome import Table
from benchmarks.profiles import profile_table, read_shares

_PATIENCE = ClientTimeout(60)


@dataclass(frozen=True, slots=True)
class Slice:
    """The sign-ins of one provider in one round. Times are in milliseconds of whole sign-ins; busy is of a core."""

    per_second: float
    cost: float
    """Milliseconds of the server's CPU time per sign-in."""
    p50: float
    p99: float
    server_busy: float
    requests: float
    """Requests per sign-in."""


@dataclass(frozen=True, slots=True)
class Figure:
    """All rounds of a provider."""

    provider: Provider
    rounds: Sequence[Slice]

    def median(self, field: str) -> float:
        """Return the median of a field over the rounds."""
        return median(self.rounds, field)


async def measure(provider: Provider, flows: int, connections: int) -> Slice:
    """Make this many sign-ins over this many connections, each by a browser without cookies."""
    requests = 0
    times: list[float] = []
    left = flows

    async def count(_: ClientSession, __: SimpleNamespace, ___: TraceRequestStartParams) -> None:
        nonlocal requests
        requests += 1

    trace = TraceConfig()
    trace.on_request_start.append(count)
    connector = TCPConnector(limit=connections)

    async def browse() -> None:
        nonlocal left
        jar = CookieJar(unsafe=True)  # It accepts the cookies of IP addresses.
        async with ClientSession(
            connector=connector, connector_owner=False, cookie_jar=jar, timeout=_PATIENCE, trace_configs=[trace]
        ) as session:
            while left:
                left -= 1
                jar.clear()
                begun = time.perf_counter()
                await flow(session, provider)
                times.append((time.perf_counter() - begun) * 1e3)

    used, begun = cpu_seconds(provider.pid), time.perf_counter()
    async with connector, asyncio.TaskGroup() as browsers:
        for _ in range(connections):
            browsers.create_task(browse())
    used, elapsed = cpu_seconds(provider.pid) - used, time.perf_counter() - begun
    return Slice(
        per_second=flows / elapsed,
        cost=used / flows * 1e3,
        p50=percentile(times, 0.5),
        p99=percentile(times, 0.99),
        server_busy=used / elapsed,
        requests=requests / flows,
    )


async def measure_providers(
    starts: Sequence[Start], directory: Path, *, flows: int, repeat: int, connections: int
) -> list[Figure]:
    """Measure every provider in each round, in alternating order, so that other load affects them equally.

    A round before the first is not counted: it warms up. This process must be pinned to the load's core.
    """
    figures: list[Figure] = []
    async with AsyncExitStack() as stack:
        for number, start in enumerate(starts):
            own = directory / f"provider-{number}"
            own.mkdir()
            figures.append(Figure(await stack.enter_async_context(start(own)), []))
        rounds: list[list[Slice]] = [[] for _ in figures]
        for number in range(repeat + 1):
            for figure, slices in alternating(zip(figures, rounds, strict=True), number):
                measured = await measure(figure.provider, flows, connections)
                if number:
                    slices.append(measured)
                name = figure.provider.name
                say(f"round {number} of {repeat}: {name}, {measured.cost:.2f} ms of CPU time a sign-in", often=True)
    return [Figure(figure.provider, slices) for figure, slices in zip(figures, rounds, strict=True)]


async def profile(sessions: int, directory: Path, *, flows: int, connections: int) -> list[Table]:
    """Sample Taproof in a run of its own, because sampling costs time; return its time by part and by function."""
    path, own = directory / "openid.profile", directory / "profiled"
    own.mkdir()
    async with taproof(sessions, path)(own) as provider:
        await measure(provider, connections, connections)
        os.kill(provider.pid, signal.SIGUSR1)
        await measure(provider, flows, connections)
    title = "Where the time of an OpenID Connect sign-in goes on SQLite"
    return [
        profile_table(title, {"sign-in": read_shares(path)}),
        profile_table(f"{title}, by function", {"sign-in": read_shares(path, "functions")}, "function"),
    ]


HEAD = [
    "provider",
    "storage",
    "server ms",
    "× the first",
    "sign-ins/s",
    "p50 ms",
    "p99 ms",
    "server core",
    "requests each",
]


def figure_rows(figures: Sequence[Figure]) -> list[list[str]]:
    """Return the table of the figures, with its heading."""
    return [
        HEAD,
        *(
            [
                each.provider.name,
                each.provider.storage,
                f"{each.median('cost'):.2f}",
                f"{median_ratio(each.rounds, figures[0].rounds, 'cost'):.2f}",
                f"{each.median('per_second'):,.0f}",
                f"{each.median('p50'):.1f}",
                f"{each.median('p99'):.1f}",
                f"{each.median('server_busy'):.0%}",
                f"{each.median('requests'):.1f}",
            ]
            for each in figures
        ),
    ]
