"""Measures poll, durable create and full cycle beside a bare ASGI app, in one run; see README.md here.

Usage: make bench, or python benchmarks/load.py [--sessions N] [--seconds S] [--repeat R] [--write]. Needs wrk and two
cores. Starts everything on loopback, stops all that it started, and exits with 1 when any answer was wrong.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import apsw

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build" / "bench"
SERVER_CORE: Final = 0
LOAD_CORE: Final = 1
WARM_UP: Final = 1
"""Seconds of each figure before the first round that counts."""
POLL_AIM: Final = 0.6
CREATE_AIM: Final = 4_000
_FIGURES: Final = ("bare", "poll", "create", "cycle")
_TITLES: Final = {
    "bare": "bare ASGI app",
    "poll": "poll",
    "create": "durable create",
    "cycle": "full cycle (4 requests)",
}
_ENOUGH_ROUNDS: Final = 3
_POOL_KEPT: Final = 240
"""Seconds that a pool is polled before a new one is made: a session stays pending for 600."""
_FSYNCS: Final = 100


@dataclass(frozen=True, slots=True)
class Target:
    """A server that listens."""

    port: int
    pid: int
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Slice:
    """One figure in one round: p99 in milliseconds, cost in microseconds, busy as the share of a core."""

    per_second: float
    p99: float
    cost: float
    server_busy: float
    load_busy: float
    cycles_per_second: float


def fail(sentence: str) -> NoReturn:
    """Say why nothing was measured, and end."""
    print(f"\n{sentence}", file=sys.stderr)
    raise SystemExit(1)


def say(progress: str) -> None:
    """Show where the run stands, on one line of a terminal."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{progress}", end="", flush=True)


# ---- what is measured


def prepare_database(sessions: int, path: Path) -> None:
    """Copy the seeded database, making it first unless a fitting one is there. Each run writes to a copy of its own."""
    seeded = BUILD / f"sessions-{sessions}.db"
    command = [sys.executable, "-m", "benchmarks.seed", "--database", str(seeded), "--sessions", str(sessions)]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True)
    shutil.copyfile(seeded, path)
    # What the copy left unwritten would otherwise reach the disk in the middle of a round.
    with path.open("rb") as file:
        os.fsync(file.fileno())


def environment() -> dict[str, str]:
    """Return the environment without settings of the service: those would change what is measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TAPROOF_")}


@contextmanager
def running(database: Path, *options: str) -> Iterator[Target]:
    """Start a server on its core; stop it in the end. It stops by itself should this process die."""
    command = [sys.executable, "-m", "benchmarks.server", "--database", str(database), "--core", str(SERVER_CORE)]
    process = subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl+C is for this process, which then closes the server's standard input.
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        started = process.stdout.readline()
        if not started:
            fail("The server did not start; what it printed above says why.")
        versions = json.loads(started)
        yield Target(versions.pop("port"), process.pid, versions)
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def read_project_ids(database: Path) -> list[str]:
    """Return the projects that the seed made."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [row[0] for row in connection.execute("SELECT id FROM projects ORDER BY id")]
    finally:
        connection.close()


def write_pool(port: int, project_ids: list[str], size: int, path: Path) -> None:
    """Create pending sessions through the API and write them down in random order, for wrk to poll."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    lines = []
    for number in range(size):
        project_id = project_ids[number % len(project_ids)]
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


# ---- measuring


def measure(target: Target, script: str, pool: Path, seconds: int, connections: int) -> Slice:
    """Let wrk run against a server and return what it saw; ends the run when an answer was wrong."""
    threads = connections if script == "cycle" else 1  # See wrk/cycle.lua.
    server_before, load_before = cpu_seconds(target.pid), children_seconds()
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
    command += ["-s", f"benchmarks/wrk/{script}.lua", f"http://127.0.0.1:{target.port}", "--", str(pool)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
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
    server_used = cpu_seconds(target.pid) - server_before
    return Slice(
        per_second=result["requests"] / elapsed,
        p99=(result["cycle_p99"] if script == "cycle" else result["p99"]) / 1e3,
        cost=server_used / result["requests"] * 1e6,
        server_busy=server_used / elapsed,
        load_busy=(children_seconds() - load_before) / elapsed,
        cycles_per_second=result["cycles"] / elapsed,
    )


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used (proc(5): utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    """Return the CPU time of all children that have ended: wrk, between two calls."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_fsync(directory: Path) -> float:
    """Return the median milliseconds of writing 4 KiB and making it durable: what a create waits for."""
    times = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(_FSYNCS):
            before = datetime.now(UTC)
            file.write(bytes(4096))
            os.fsync(file.fileno())
            times.append((datetime.now(UTC) - before).total_seconds())
    return statistics.median(times) * 1e3


def run(given: argparse.Namespace, directory: Path) -> tuple[dict[str, list[Slice]], dict[str, str]]:
    """Measure all figures, round after round; return the rounds of each and the versions."""
    database, pool, projects = directory / "run.db", directory / "pool.txt", directory / "projects.txt"
    prepare_database(given.sessions, database)
    project_ids = read_project_ids(database)
    projects.write_text("".join(f"{each}\n" for each in project_ids), encoding="ascii")
    rounds: dict[str, list[Slice]] = {figure: [] for figure in _FIGURES}
    made = float("-inf")
    with running(directory / "bare.db", "--bare") as bare, running(database) as service:
        for number in range(given.repeat + 1):
            if time.monotonic() - made >= _POOL_KEPT:
                write_pool(service.port, project_ids, given.pool, pool)
                made = time.monotonic()
            # Bare and poll change places from round to round, so that neither always goes first.
            for figure in _FIGURES if number % 2 else ("poll", "bare", "create", "cycle"):
                target = bare if figure == "bare" else service
                script, file = ("poll", pool) if figure in {"bare", "poll"} else (figure, projects)
                measured = measure(target, script, file, given.seconds if number else WARM_UP, given.connections)
                if number:
                    rounds[figure].append(measured)
                    say(f"round {number} of {given.repeat}: {_TITLES[figure]} {measured.per_second:,.0f} req/s")
        say("")
        return rounds, service.versions


# ---- telling


def median(rounds: list[Slice], field: str) -> float:
    """Return the median of a field over the rounds."""
    return float(statistics.median(getattr(each, field) for each in rounds))


def table(rounds: dict[str, list[Slice]]) -> list[list[str]]:
    """Return the table, its head first."""
    rows = [["figure", "req/s", "p99 ms", "ratio to bare", "aim", "met?", "server µs", "server core", "load core"]]
    for figure in _FIGURES:
        pairs = zip(rounds[figure], rounds["bare"], strict=True)
        ratio = statistics.median(each.per_second / bare.per_second for each, bare in pairs)
        per_second = median(rounds[figure], "per_second")
        aim, met = "", ""
        if figure == "poll":
            aim, met = f"ratio ≥ {POLL_AIM}", "yes" if ratio >= POLL_AIM else "no"
        elif figure == "create":
            aim, met = f"≥ {CREATE_AIM:,} req/s", "yes" if per_second >= CREATE_AIM else "no"
        row = [_TITLES[figure], f"{per_second:,.0f}", f"{median(rounds[figure], 'p99'):.1f}", f"{ratio:.2f}", aim, met]
        busy = [f"{median(rounds[figure], side):.0%}" for side in ("server_busy", "load_busy")]
        rows.append([*row, f"{median(rounds[figure], 'cost'):.0f}", *busy])
    return rows


def markdown(rows: list[list[str]]) -> str:
    """Return the table as Markdown, aligned so that it reads as well in a terminal."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def machine(fsync: float) -> dict[str, str]:
    """Return what of the machine the figures depend on."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    wrk = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout.split(" [")[0]
    cpu = found[1] if found else "unknown"
    return {"wrk": wrk.removeprefix("wrk "), "CPU": f"{cpu}, one core each side", "4 KiB fsync": f"{fsync:.2f} ms"}


def report(given: argparse.Namespace, rounds: dict[str, list[Slice]], facts: dict[str, str]) -> str:
    """Return everything that is printed in the end."""
    cycles = median(rounds["cycle"], "cycles_per_second")
    by_cost = median(rounds["bare"], "cost") / median(rounds["poll"], "cost")
    return (
        f"{markdown(table(rounds))}\n\n"
        f"Full cycles: {cycles:,.0f} whole sign-ins a second; the p99 of that row is a whole sign-in's. By CPU time of "
        f"the server, which neighbours disturb less, a poll runs at {by_cost:.2f} of the bare app.\n\n"
        f"{given.sessions:,} stored sessions, {given.pool:,} pending ones polled, {given.connections} connections, "
        f"median of {given.repeat} rounds of {given.seconds} s each; every answer was checked.\n\n"
        + "; ".join(f"{name} {value}" for name, value in facts.items())
        + ".\n"
    )


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure Taproof beside a bare ASGI app; see benchmarks/README.md.")
    add = parser.add_argument
    add("--sessions", type=int, default=1_000_000, help="stored sessions (default: 1,000,000)")
    add("--seconds", type=int, default=2, help="seconds of one figure in one round, at most 60 (default: 2)")
    add("--repeat", type=int, default=9, help="rounds that count, of which the median is taken (default: 9)")
    add("--connections", type=int, default=64, help="connections kept open by wrk (default: 64)")
    add("--pool", type=int, default=2_000, help="pending sessions that polls are spread over, 1,000 or more")
    add("--write", action="store_true", help="write benchmarks/RESULTS.md")
    given = parser.parse_args()
    if min(given.sessions, given.seconds, given.repeat, given.connections) < 1 or given.seconds > 60:
        parser.error("--sessions, --seconds (at most 60), --repeat and --connections must be positive")
    if given.pool < 1_000:
        parser.error("--pool must be at least 1,000")
    if given.write and given.repeat < _ENOUGH_ROUNDS:
        parser.error(f"--write needs --repeat {_ENOUGH_ROUNDS} or more")
    return given


def main() -> None:
    """Measure, print, and write the results down when asked to."""
    given = arguments()
    if not {SERVER_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        fail("Two cores are needed, 0 for the server and 1 for the load, and this process may not use both.")
    if shutil.which("wrk") is None:
        fail("wrk is missing: run `make bench`, or install Debian's package wrk.")
    os.sched_setaffinity(0, {LOAD_CORE})  # wrk inherits it; each server takes its own core.
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="run-") as directory:
        fsync = measure_fsync(Path(directory))
        rounds, versions = run(given, Path(directory))
    text = report(given, rounds, versions | machine(fsync))
    print(text)
    if given.write:
        date = f"{datetime.now(UTC):%Y-%m-%d}"
        head = f"# Results of {date}\n\nMade by `make bench`; README.md says what each figure is.\n\n"
        (ROOT / "benchmarks" / "RESULTS.md").write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
