"""Measure everything in one run and write RESULTS.md and results.svg; see README.md here.

Usage: make bench, or python -m benchmarks.all in the project's root; --help lists the options. Needs wrk and two
cores. Starts everything on loopback, stops everything that it started, and exits with 1 if any answer was wrong.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.machine import BUILD, LOAD_CORE, ROOT, SERVER_CORE, BenchmarkFailed, facts, fail, measure_fsync, say
from benchmarks.outcome import PartOutcome, Plan
from benchmarks.parts.bot import measure_bot
from benchmarks.parts.console import measure_console
from benchmarks.parts.crowd import measure_crowd
from benchmarks.parts.database import measure_database
from benchmarks.parts.mixed import measure_mixed
from benchmarks.parts.openid import measure_openid
from benchmarks.parts.peers import measure_all_peers
from benchmarks.parts.race import measure_race
from benchmarks.parts.scale import measure_scale
from benchmarks.parts.speed import measure_postgres, measure_sqlite
from benchmarks.parts.start import measure_start
from benchmarks.parts.taps import measure_taps
from benchmarks.parts.webhooks import measure_webhooks
from benchmarks.peers.installing import install
from benchmarks.report import aims_text, plot, run_text, tables_text
from benchmarks.stores import Postgres, running_postgres

_ENOUGH_ROUNDS: Final = 3
RESULTS: Final = ROOT / "benchmarks" / "RESULTS.md"
PLOT: Final = ROOT / "benchmarks" / "results.svg"

Part = Callable[[Plan, Postgres], PartOutcome]
PARTS: Final[dict[str, Part]] = {
    "sqlite": lambda plan, _: measure_sqlite(plan),
    "postgres": measure_postgres,
    "peers": lambda plan, _: measure_all_peers(plan),
    "openid": lambda plan, _: measure_openid(plan),
    "bot": lambda plan, _: measure_bot(plan),
    "taps": measure_taps,
    "crowd": measure_crowd,
    "database": measure_database,
    "webhooks": measure_webhooks,
    "console": measure_console,
    "scale": measure_scale,
    "start": lambda plan, _: measure_start(plan),
    "mixed": lambda plan, _: measure_mixed(plan),
    "race": lambda plan, postgres: measure_race(plan, postgres, with_peers=True),
}
_ON_REQUEST: Final = {"mixed"}
"""Parts that run only if they are named."""
_NEED_PEERS: Final = {"peers", "openid", "race"}


def run(parts: list[str], plan: Plan) -> tuple[PartOutcome, dict[str, str]]:
    """Measure the parts one after the other; return their outcome and the facts about the machine."""
    outcome = PartOutcome()
    if _NEED_PEERS & set(parts):
        say("installing the peers")
        install()
    os.sched_setaffinity(0, {LOAD_CORE})  # wrk and PostgreSQL inherit this; each server is pinned to its own core.
    fsync = measure_fsync(plan.directory)
    with ExitStack() as stack:
        postgres = stack.enter_context(running_postgres())
        for part in parts:
            begun = time.monotonic()
            measured = PARTS[part](plan, postgres)
            say("")
            seconds = time.monotonic() - begun
            print(f"\n{tables_text(measured)}\n\n({part}: measured in {seconds:.0f} s)\n", flush=True)
            outcome.add(measured)
    return outcome, facts(fsync)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure Taproof and its peers; see benchmarks/README.md.")
    add = parser.add_argument
    add(
        "--only",
        nargs="+",
        choices=list(PARTS),
        metavar="PART",
        help=f"some of: {', '.join(PARTS)}; nothing is written",
    )
    add("--quick", action="store_true", help="1 s, 3 rounds, 100,000 and 1,000,000 sessions; nothing is written")
    add("--seconds", type=int, help="seconds of one figure in one round, at most 60 (default: 2)")
    add("--repeat", type=int, help="rounds that count, of which the median is taken (default: 5)")
    add("--sessions", type=int, help="stored sessions (default: 1,000,000)")
    add("--many", type=int, help="stored sessions of the part `scale` on SQLite (default: 10,000,000; 0: leave it out)")
    add("--postgres-many", type=int, help="the same on PostgreSQL (default: that of --many)")
    add("--minutes", type=int, default=60, help="minutes of the part `mixed`, which runs only if named (default: 60)")
    given = parser.parse_args()
    defaults = (1, 3, 100_000, 1_000_000) if given.quick else (2, 5, 1_000_000, 10_000_000)
    for name, default in zip(("seconds", "repeat", "sessions", "many"), defaults, strict=True):
        if getattr(given, name) is None:
            setattr(given, name, default)
    if given.postgres_many is None:
        given.postgres_many = given.many
    if min(given.sessions, given.seconds, given.repeat, given.minutes) < 1 or given.seconds > 60 or given.many < 0:
        parser.error("--sessions, --seconds (at most 60), --repeat and --minutes must be positive")
    return given


def main() -> None:
    """Measure, print, and write the results if everything was measured."""
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that everything that was started is stopped.
    try:
        if not {SERVER_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
            fail("Two cores are needed, 0 for the server and 1 for the load, and this process may not use both.")
        if shutil.which("wrk") is None:
            fail("wrk is missing: run `make bench`, or install Debian's package wrk.")
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD, prefix="run-") as directory:
            sizes = (given.sessions, given.many, given.postgres_many)
            plan = Plan(Path(directory), given.seconds, given.repeat, *sizes, given.minutes)
            outcome, machine = run(given.only or [part for part in PARTS if part not in _ON_REQUEST], plan)
        print(f"\n{aims_text(outcome)}\n\n{run_text(outcome, plan, machine)}")
        if given.only or given.quick or given.repeat < _ENOUGH_ROUNDS:
            plot(outcome, BUILD / PLOT.name)
        elif plot(outcome, PLOT):
            head = (
                f"# Results of {datetime.now(UTC):%Y-%m-%d}\n\n"
                "Made by `make bench`; README.md says what each figure is.\n\n"
                "![CPU time beside the peers](results.svg)"
            )
            sections = (head, aims_text(outcome), tables_text(outcome), run_text(outcome, plan, machine))
            RESULTS.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    except BenchmarkFailed as failure:
        print(f"\n{failure}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
