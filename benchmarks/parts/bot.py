"""Whole sign-ins through the bot: updates over HTTP, with the Bot API server on the other core.

This measures `taproof serve` itself. The Bot API server is the sandbox's, in the process of the load, which also acts
as the clients and the users: create, poll while pending, open the deeplink, tap Confirm, read the proof.
"""

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import uvloop
from benchmarks.bot_api import Phones, bot_api
from benchmarks.client import check_confirmed, connect, create, verify
from benchmarks.commands import Started, taproof_serve
from benchmarks.machine import LOAD_CORE, busy_seconds, cpu_seconds, fail, percentile, say
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.profiles import profile_table, read_shares
from benchmarks.stores import project_ids, sqlite_copy

Updates = Literal["webhook", "polling"]
_AT_ONCE: Final = 48
_ROUND_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class Round:
    """One round; times in milliseconds, costs in milliseconds of CPU time for a whole sign-in, of server and load."""

    per_second: float
    p50: float
    p99: float
    cost: float
    load_cost: float
    server_busy: float
    load_busy: float


async def _sign_in_until(over: float, started: Started, phones: Phones, projects: Iterator[str]) -> list[float]:
    """Sign in repeatedly; return the milliseconds of each sign-in."""
    connection = await connect(started.port)
    times = []
    while (begun := time.perf_counter()) < over:
        project_id, chat = next(projects), phones.take()
        token = await create(connection, project_id)
        if await verify(connection, project_id, token) != {"status": "pending"}:
            fail("A new sign-in is not pending.")
        prompt = await phones.open(chat, token)
        await phones.confirm(chat, prompt, token)
        check_confirmed(await verify(connection, project_id, token), str(chat.person.id))
        times.append((time.perf_counter() - begun) * 1e3)
    connection.close()
    return times


async def _round(started: Started, phones: Phones, projects: Iterator[str], seconds: float) -> Round:
    server_before, load_before, begun = cpu_seconds(started.pid), busy_seconds(LOAD_CORE), time.perf_counter()
    own_before = time.process_time()
    signing_in = (_sign_in_until(begun + seconds, started, phones, projects) for _ in range(_AT_ONCE))
    times = [each for found in await asyncio.gather(*signing_in) for each in found]
    elapsed, used = time.perf_counter() - begun, cpu_seconds(started.pid) - server_before
    return Round(
        len(times) / elapsed,
        percentile(times, 0.5),
        percentile(times, 0.99),
        used / len(times) * 1e3,
        (time.process_time() - own_before) / len(times) * 1e3,
        used / elapsed,
        (busy_seconds(LOAD_CORE) - load_before) / elapsed,
    )


async def _rounds(url: str, projects: list[str], updates: Updates, repeat: int, profile: Path | None) -> list[Round]:
    turns = iter(projects * 1_000_000)
    async with (
        bot_api() as (address, token, phones),
        taproof_serve(url, address, token, projects[0], updates=updates, profile=profile) as started,
    ):
        found = []
        for number in range(repeat + 1):
            measured = await _round(started, phones, turns, _ROUND_SECONDS)
            say(f"bot, {updates}, round {number} of {repeat}: {measured.per_second:,.0f} sign-ins/s")
            if number:
                found.append(measured)
            elif profile is not None:
                # Only after the first updates, which build the models of the Bot API's objects once.
                os.kill(started.pid, signal.SIGUSR1)
        return found


def measure_bot(plan: Plan) -> PartOutcome:
    """Measure with updates by webhook and with polled updates, and profile both."""
    outcome = PartOutcome()
    rows = [["updates by", "sign-ins/s", "p50 ms", "p99 ms", "server ms", "load ms", "server core", "load core"]]
    profiles: dict[str, dict[str, float]] = {}
    functions: dict[str, dict[str, float]] = {}
    with sqlite_copy(plan.sessions, plan.directory, "bot") as url:
        projects = project_ids(url)
        kinds: tuple[Updates, ...] = ("webhook", "polling")
        for updates in kinds:
            rounds = _run(url, projects, updates, plan.repeat)
            middle = {
                field: float(statistics.median(getattr(each, field) for each in rounds))
                for field in Round.__dataclass_fields__
            }
            outcome.values[f"bot.{updates}"] = middle["per_second"]
            row = [updates, f"{middle['per_second']:,.0f}", f"{middle['p50']:.0f}", f"{middle['p99']:.0f}"]
            rows.append(
                [
                    *row,
                    f"{middle['cost']:.2f}",
                    f"{middle['load_cost']:.2f}",
                    *(f"{middle[f'{side}_busy']:.0%}" for side in ("server", "load")),
                ]
            )
            path = plan.directory / f"bot-{updates}.profile"
            _run(url, projects, updates, 1, path)
            profiles[updates], functions[updates] = read_shares(path), read_shares(path, "functions")
    note = (
        f"`taproof serve` on SQLite with {plan.sessions:,} stored sessions; {_AT_ONCE} sign-ins at once. A sign-in is "
        "three requests of the client, two updates, and three calls of the Bot API: the prompt, its outcome, the "
        "answer to the tap. `server ms` and `load ms` are CPU time for a whole sign-in; the load is the Bot API server "
        "too."
    )
    outcome.tables.append(Table("Full cycle over the Bot API", rows, note))
    outcome.tables.append(profile_table("Where the time goes in a cycle over the Bot API", profiles))
    outcome.tables.append(profile_table("The functions that take most of it", functions, "function"))
    return outcome


def _run(url: str, projects: list[str], updates: Updates, repeat: int, profile: Path | None = None) -> list[Round]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_rounds(url, projects, updates, repeat, profile))
