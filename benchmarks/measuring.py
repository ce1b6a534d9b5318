"""Measure a running server with wrk: requests a second, p99, and the server's CPU time."""

import http.client
import json
import random
import re
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import LOAD_CORE, ROOT, busy_seconds, cpu_seconds, fail
from benchmarks.serving import Target

WARM_UP: Final = 1
"""Seconds of each figure before the first round that counts."""
CONNECTIONS: Final = 64
POOL_SIZE: Final = 2_000
REQUESTS_OF_CYCLE: Final = 4 + 1 / 50
"""See wrk/cycle.lua: one in fifty sign-ins is polled once more."""


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


def write_projects(target: Target, path: Path) -> None:
    """Write the projects to a file, for wrk to create sign-ins in."""
    path.write_text("".join(f"{each}\n" for each in target.projects), encoding="ascii")


def write_pool(target: Target, path: Path, size: int = POOL_SIZE) -> None:
    """Create pending sessions through the API and write them to a file in random order, for wrk to poll."""
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
    lines = []
    for number in range(size):
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


def measure(target: Target, script: str, pool: Path, seconds: int) -> Slice:
    """Run wrk against a server and return its measurements; end the run if an answer was wrong."""
    threads = CONNECTIONS if script == "cycle" else 1  # See wrk/cycle.lua.
    command = ["wrk", f"-t{threads}", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s"]
    command += ["-s", f"benchmarks/wrk/{script}.lua", f"http://127.0.0.1:{target.port}", "--", str(pool)]
    server_before, load_before = cpu_seconds(target.pid), busy_seconds(LOAD_CORE)
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    server_used = cpu_seconds(target.pid) - server_before
    found = re.search(r"^RESULT (.*)$", finished.stdout, re.MULTILINE)
    if finished.returncode != 0 or found is None:
        fail(f"wrk failed:\n{finished.stdout}{finished.stderr}")
    result: dict[str, Any] = json.loads(found[1])
    if result["wrong"] or result["connection_errors"] or not result["requests"]:
        fail(
            f"{script}: {result['wrong']} wrong answers and {result['connection_errors']} connection errors in "
            f"{result['requests']} requests. The first wrong one: {result['first_wrong'] or '-'}"
        )
    elapsed = result["microseconds"] / 1e6
    return Slice(
        requests=result["requests"],
        per_second=result["requests"] / elapsed,
        p99=(result["cycle_p99"] if script == "cycle" else result["p99"]) / 1e3,
        cost=server_used / result["requests"] * 1e6,
        server_busy=server_used / elapsed,
        load_busy=(busy_seconds(LOAD_CORE) - load_before) / elapsed,
        # By requests, so that unfinished sign-ins at the end count by the requests that they made.
        cycles_per_second=result["requests"] / elapsed / REQUESTS_OF_CYCLE if script == "cycle" else 0.0,
    )
