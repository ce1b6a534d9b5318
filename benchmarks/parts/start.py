"""Measure how soon `taproof serve` answers after its start, and its memory when idle."""

import asyncio
import statistics
from typing import Final

from benchmarks.bot_api import bot_api
from benchmarks.commands import taproof_serve
from benchmarks.machine import resident_megabytes, say
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.stores import project_ids, sqlite_copy

_STARTS: Final = 5
_IDLE_SECONDS: Final = 3
"""Seconds that it is left alone before its memory is read."""


async def _measure(url: str) -> tuple[list[float], list[float], list[float]]:
    answered, created, memory = [], [], []
    for number in range(_STARTS):
        async with (
            bot_api() as (address, token, _),
            taproof_serve(url, address, token, project_ids(url)[0], updates="polling") as started,
        ):
            answered.append(started.answered)
            created.append(started.created)
            await asyncio.sleep(_IDLE_SECONDS)
            memory.append(resident_megabytes(started.pid)[0])
        say(f"start {number + 1} of {_STARTS}: {started.answered:.2f} s")
    return answered, created, memory


def measure_start(plan: Plan) -> PartOutcome:
    """Measure with the store that the other parts use."""
    with sqlite_copy(plan.sessions, plan.directory, "start") as url:
        answered, created, memory = asyncio.run(_measure(url))
    found = {"start.seconds": answered, "start.created": created, "start.memory": memory}
    middle = {name: statistics.median(measured) for name, measured in found.items()}
    rows = [
        ["figure", "median", "least", "most"],
        ["start to first answer, s", f"{middle['start.seconds']:.2f}", f"{min(answered):.2f}", f"{max(answered):.2f}"],
        [
            "start to first created sign-in, s",
            f"{middle['start.created']:.2f}",
            f"{min(created):.2f}",
            f"{max(created):.2f}",
        ],
        ["resident memory, idle, MB", f"{middle['start.memory']:.0f}", f"{min(memory):.0f}", f"{max(memory):.0f}"],
    ]
    note = (
        f"{_STARTS} starts of `taproof serve` on SQLite with {plan.sessions:,} stored sessions and a bot that polls, "
        "its program files in the page cache. The first answer is that of a poll, which asks the store, tried every "
        "5 ms; a created sign-in needs the bot's user name too, for which the bot is imported. Memory is looked at "
        f"{_IDLE_SECONDS} s later."
    )
    return PartOutcome(middle, [Table("Start and idle memory", rows, note)])
