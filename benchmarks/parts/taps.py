"""Measure from the tap to the answer of a client that waits with `wait`: on both stores, in one process and across two.

And how many requests a sign-in takes then. A tap is the call of the use case that the bot makes when Confirm is tapped;
the time runs from sending it until the waiting client has the whole answer, with identity and proof.
"""

import asyncio
import random
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import uvloop
from benchmarks.client import Connection, check_confirmed, connect, create, verify
from benchmarks.machine import fail, percentile, say
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.parts.speed import STORES, Store
from benchmarks.serving import Target, running
from benchmarks.stores import Postgres, sqlite_copy

_SIGN_INS: Final = 400
_AT_ONCE: Final = 8
_THINKING: Final = (0.03, 0.12)
"""Seconds between the start of the wait and the tap."""
_WAIT: Final = 30
_SLOW_SIGN_INS: Final = 20
_SLOW_THINKING: Final = 33.0
"""Longer than one call may wait, so it takes one more request."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """One sign-in: milliseconds from the tap to the answer, and the requests that the client made."""

    milliseconds: float
    requests: int


async def sign_in(client: Connection, tapper: Connection, project_id: str, thinking: float) -> SignedIn:
    """Sign in as a waiting client, while the tap comes elsewhere; every answer is checked."""
    begun = client.requests
    token = await create(client, project_id)
    await tapper.post("/bench/open", {"session_token": token})
    waiting = asyncio.create_task(verify(client, project_id, token, _WAIT))
    over = time.perf_counter() + thinking
    while (left := over - time.perf_counter()) > 0:
        done, _ = await asyncio.wait([waiting], timeout=left)
        if done:
            if waiting.result() != {"status": "pending"}:
                fail(f"A wait ended before the tap with {waiting.result()}")
            waiting = asyncio.create_task(verify(client, project_id, token, _WAIT))
    tapped_at = time.perf_counter()
    decided = await tapper.post("/bench/confirm", {"session_token": token})
    check_confirmed(await waiting, decided["messenger_id"])
    answered_at, requests = client.answered_at, client.requests - begun
    if await verify(client, project_id, token) != {"status": "used"}:
        fail("A sign-in that was read once can be read again.")
    return SignedIn((answered_at - tapped_at) * 1e3, requests)


async def sign_ins(waiting_at: Target, tapped_at: Target, count: int, thinking: tuple[float, float]) -> list[SignedIn]:
    """Sign in this many times, several at once: clients wait on one process, taps reach the other."""
    left = iter(range(count))
    found: list[SignedIn] = []

    async def one_after_the_other() -> None:
        client, tapper = await connect(waiting_at.port), await connect(tapped_at.port)
        for number in left:
            project_id = waiting_at.projects[number % len(waiting_at.projects)]
            found.append(await sign_in(client, tapper, project_id, random.uniform(*thinking)))  # noqa: S311 — when people tap.
        client.close()
        tapper.close()

    await asyncio.gather(*(one_after_the_other() for _ in range(min(count, _AT_ONCE))))
    return found


async def hint(client: Connection, tapper: Connection, project_id: str, thinking: float) -> float:
    """Return the milliseconds from opening a link elsewhere to the hint at a waiting client, which is checked."""
    token = await create(client, project_id)
    waiting = asyncio.create_task(verify(client, project_id, token, _WAIT, seen_hint="waiting"))
    await asyncio.sleep(thinking)
    opened_at = time.perf_counter()
    await tapper.post("/bench/open", {"session_token": token})
    if await waiting != {"status": "pending", "hint": "opened"}:
        fail(f"An opened link was told to the waiting client as {waiting.result()}")
    return (client.answered_at - opened_at) * 1e3


async def hints(waiting_at: Target, opened_at: Target, count: int) -> list[float]:
    """Open this many links, several at once: clients wait on one process, links are opened at the other."""
    left = iter(range(count))
    found: list[float] = []

    async def one_after_the_other() -> None:
        client, tapper = await connect(waiting_at.port), await connect(opened_at.port)
        for number in left:
            project_id = waiting_at.projects[number % len(waiting_at.projects)]
            found.append(await hint(client, tapper, project_id, random.uniform(*_THINKING)))  # noqa: S311 — when people tap.
        client.close()
        tapper.close()

    await asyncio.gather(*(one_after_the_other() for _ in range(_AT_ONCE)))
    return found


def measure_taps(plan: Plan, postgres: Postgres | None) -> PartOutcome:
    """Measure on SQLite, and on PostgreSQL if it is available."""
    outcome = PartOutcome()
    rows = [["store", "processes", "p50 ms", "p99 ms", "slowest ms", "requests per sign-in"]]
    hint_rows = [["store", "processes", "p50 ms", "p99 ms", "slowest ms"]]
    for store in STORES:
        with ExitStack() as stack:
            if store == "sqlite":
                url = stack.enter_context(sqlite_copy(plan.sessions, plan.directory, "taps"))
            elif postgres is None:
                continue
            else:
                url = postgres.database("speed", plan.sessions)
            first = stack.enter_context(running(url))
            second = stack.enter_context(running(url))
            rows += [_measure(plan, outcome, store, first, tapped_at) for tapped_at in (first, second)]
            hint_rows += [_measure_hints(plan, outcome, store, first, opened_at) for opened_at in (first, second)]
            if store == "sqlite":
                rows.append(_measure_slow(outcome, first))
    note = (
        f"{_AT_ONCE} sign-ins at once, each tapped {_THINKING[0] * 1e3:.0f} to {_THINKING[1] * 1e3:.0f} ms after the "
        f"wait began; p50 and p99 are medians of {plan.repeat} rounds of {_SIGN_INS}. Two processes: clients wait at "
        f"one, taps come in at the other. Requests are the client's: create, and verify until it has the proof."
    )
    outcome.tables.append(Table("From the tap to the waiting client", rows, note))
    hint_note = "As above, with `hints` and `seen_hint`: from opening the link to the hint `opened`."
    outcome.tables.append(Table("From the opened link to the waiting client", hint_rows, hint_note))
    return outcome


def _measure(plan: Plan, outcome: PartOutcome, store: Store, waiting_at: Target, tapped_at: Target) -> list[str]:
    processes = 1 if waiting_at is tapped_at else 2
    rounds = []
    for number in range(plan.repeat + 1):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found = runner.run(sign_ins(waiting_at, tapped_at, _SIGN_INS if number else _SIGN_INS // 4, _THINKING))
        if number:
            rounds.append(found)
        say(f"{STORES[store]}, {processes} process(es), taps, round {number} of {plan.repeat}")
    times = [[each.milliseconds for each in found] for found in rounds]
    p50 = statistics.median(percentile(each, 0.5) for each in times)
    p99 = statistics.median(percentile(each, 0.99) for each in times)
    requests = statistics.mean(each.requests for found in rounds for each in found)
    outcome.values |= {f"taps.{store}.{processes}.p50": p50, f"taps.{store}.{processes}.p99": p99}
    outcome.values["taps.requests"] = max(requests, outcome.values.get("taps.requests", 0.0))
    return [STORES[store], str(processes), f"{p50:.1f}", f"{p99:.1f}", f"{max(map(max, times)):.1f}", f"{requests:.2f}"]


def _measure_hints(plan: Plan, outcome: PartOutcome, store: Store, waiting_at: Target, opened_at: Target) -> list[str]:
    processes = 1 if waiting_at is opened_at else 2
    rounds = []
    for number in range(plan.repeat + 1):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found = runner.run(hints(waiting_at, opened_at, _SIGN_INS if number else _SIGN_INS // 4))
        if number:
            rounds.append(found)
        say(f"{STORES[store]}, {processes} process(es), hints, round {number} of {plan.repeat}")
    p50, p99 = (statistics.median(percentile(each, share) for each in rounds) for share in (0.5, 0.99))
    outcome.values[f"hints.{store}.{processes}.p50"] = p50
    return [STORES[store], str(processes), f"{p50:.1f}", f"{p99:.1f}", f"{max(map(max, rounds)):.1f}"]


def _measure_slow(outcome: PartOutcome, service: Target) -> list[str]:
    """Sign in with users who take longer than one wait lasts."""
    say(f"taps {_SLOW_THINKING:.0f} s after the wait began")

    async def all_at_once() -> list[SignedIn]:
        single = [sign_ins(service, service, 1, (_SLOW_THINKING, _SLOW_THINKING)) for _ in range(_SLOW_SIGN_INS)]
        return [each for found in await asyncio.gather(*single) for each in found]

    found = asyncio.run(all_at_once())
    times = [each.milliseconds for each in found]
    requests = statistics.mean(each.requests for each in found)
    outcome.values["taps.slow_requests"] = requests
    title = f"{STORES['sqlite']}, tapped after {_SLOW_THINKING:.0f} s"
    return [title, "1", f"{percentile(times, 0.5):.1f}", "", f"{max(times):.1f}", f"{requests:.2f}"]
