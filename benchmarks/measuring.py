"""Measure a running server with wrk: requests a second, p99, and the server's CPU time."""

import http.client
import json
import random
import re
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar

from benchmarks.machine import LOAD_CORE, ROOT, busy_seconds, cpu_seconds, fail
from benchmarks.serving import Target

T = TypeVar("T")
FigureName = Literal["poll", "create", "cycle"]
FIGURES: Final[tuple[FigureName, ...]] = ("poll", "create", "cycle")
WARM_UP: Final = 1
"""Seconds of each figure before the first round that counts."""
CONNECTIONS: Final = 64
POOL_SIZE: Final = 2_000
_POOL_KEPT: Final = 240
"""Seconds for which a pool is polled before a new one is created: a session stays pending for 600."""
_LONGEST: Final = 60
_REQUESTS_OF_CYCLE: Final = {"cycle": 4 + 1 / 50, "device_cycle": 4}
"""By the script. See wrk/cycle.lua: one in fifty sign-ins is polled once more."""


class Server(Protocol):
    """A server that listens on 127.0.0.1."""

    @property
    def port(self) -> int:
        """Return the port for the load."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the processes whose CPU time is the server's, without their children."""


@dataclass(frozen=True, slots=True)
class Load:
    """A script of wrk/, and its arguments."""

    script: str
    arguments: tuple[str, ...]

    @property
    def is_cycle(self) -> bool:
        """Return whether the script makes whole sign-ins."""
        return self.script in _REQUESTS_OF_CYCLE


@dataclass(frozen=True, slots=True)
class Slice:
    """One figure in one round: p99 in milliseconds, cost in microseconds of the server's CPU time per request.

    For a cycle p99 is that of a whole sign-in. Busy is the share of a core: of the server's core the server's own, of
    the load's core that of wrk, PostgreSQL and everything else on it.
    """

    requests: int
    per_second: float
    p99: float
    cost: float
    server_busy: float
    load_busy: float
    cycles_per_second: float


def median(rounds: Sequence[object], field: str) -> float:
    """Return the median of a field over the rounds."""
    return float(statistics.median(getattr(each, field) for each in rounds))


def median_ratio(rounds: Sequence[object], others: Sequence[object], field: str) -> float:
    """Return the median of the rounds' ratios. Other load on the machine affects both sides of a round alike."""
    pairs = zip(rounds, others, strict=True)
    return float(statistics.median(getattr(each, field) / getattr(other, field) for each, other in pairs))


def alternating(contestants: Iterable[T], number: int) -> list[T]:
    """Return the order of a round: from the first to the last and back in turn, so that nobody always goes first."""
    return list(contestants) if number % 2 else list(contestants)[::-1]


class TaproofLoads:
    """The loads of a Taproof server. Its pending sessions are created anew before they expire."""

    def __init__(self, target: Target, directory: Path, name: str) -> None:
        self._target = target
        self._projects = directory / f"projects-{name}.txt"
        self._projects.write_text("".join(f"{each}\n" for each in target.projects), encoding="ascii")
        self._pool = directory / f"pool-{name}.txt"
        self._made = float("-inf")

    def __call__(self, figure: FigureName) -> Load:
        """Return the load of a figure."""
        if figure != "poll":
            return Load(figure, (str(self._projects),))
        if time.monotonic() - self._made >= _POOL_KEPT:
            _write_pool(self._target, self._pool)
            self._made = time.monotonic()
        return Load("poll", (str(self._pool),))


def _write_pool(target: Target, path: Path) -> None:
    """Create pending sessions through the API and write them to a file in random order, for wrk to poll."""
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
    lines = []
    for number in range(POOL_SIZE):
        project_id = target.projects[number % len(target.projects)]
        body = json.dumps({"project_id": project_id})
        connection.request("POST", "/api/v1/generate/public", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            fail(f"The pool could not be made: {answer.status} {content.decode(errors='replace')}")
        lines.append(f"{project_id} {json.loads(content)['session_token']}\n")
    connection.close()
    random.shuffle(lines)
    path.write_text("".join(lines), encoding="ascii")


def measure(server: Server, load: Load, seconds: int) -> Slice:
    """Run wrk against a server and return the measurements; end the run if an answer was wrong.

    A server too slow for one whole sign-in gets twice the time until it finishes one.
    """
    while True:
        server_before, load_before = cpu_seconds(*server.pids), busy_seconds(LOAD_CORE)
        result = _run_wrk(server.port, load, seconds)
        server_used = cpu_seconds(*server.pids) - server_before
        load_used = busy_seconds(LOAD_CORE) - load_before
        if result["cycles"] or not load.is_cycle:
            break
        if seconds > _LONGEST:
            fail(f"{load.script}: no sign-in was finished in {seconds} seconds.")
        seconds *= 2
    elapsed = result["microseconds"] / 1e6
    per_second = result["requests"] / elapsed
    return Slice(
        requests=result["requests"],
        per_second=per_second,
        p99=(result["cycle_p99"] if load.is_cycle else result["p99"]) / 1e3,
        cost=server_used / result["requests"] * 1e6,
        server_busy=server_used / elapsed,
        load_busy=load_used / elapsed,
        # By requests, so that unfinished sign-ins at the end count by the requests that they made.
        cycles_per_second=per_second / _REQUESTS_OF_CYCLE[load.script] if load.is_cycle else 0.0,
    )


def _run_wrk(port: int, load: Load, seconds: int) -> dict[str, Any]:
    threads = CONNECTIONS if load.is_cycle else 1  # See wrk/cycle.lua.
    command = ["wrk", f"-t{threads}", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s"]
    command += ["-s", f"benchmarks/wrk/{load.script}.lua", f"http://127.0.0.1:{port}", "--", *load.arguments]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.search(r"^RESULT (.*)$", finished.stdout, re.MULTILINE)
    if finished.returncode != 0 or found is None:
        fail(f"wrk failed with {load.script}:\n{finished.stdout}{finished.stderr}")
    result: dict[str, Any] = json.loads(found[1])
    if result["wrong"] or result["connection_errors"] or not result["requests"]:
        fail(
            f"{load.script}: {result['wrong']} wrong answers and {result['connection_errors']} connection errors in "
            f"{result['requests']} requests. The first wrong one: {result['first_wrong'] or '-'}"
        )
    return result
