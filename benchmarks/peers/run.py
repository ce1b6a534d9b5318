"""Measure only the peers beside Taproof, and race them; `make bench` includes the same. See README.md here.

Usage: python -m benchmarks.peers.run [--seconds S] [--repeat R] [--sessions N] [--only NAME], in the project's root.
"""

import argparse
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.machine import BUILD, LOAD_CORE, SERVER_CORE, BenchmarkFailed, say
from benchmarks.peers.catalog import FLOOR, PEERS, Peer, versions
from benchmarks.peers.installing import install
from benchmarks.peers.measuring import Figure, measure_peers
from benchmarks.peers.race import Race, race
from benchmarks.report import markdown

TITLES = {"poll": "poll pending", "create": "create", "cycle": "full cycle (4 requests)"}


def race_all(peers: Sequence[Peer], directory: Path) -> dict[tuple[Peer, int], Race | None]:
    """Race each peer in one process and in two; None if two have no shared store."""
    outcomes: dict[tuple[Peer, int], Race | None] = {}
    for number, peer in enumerate(peers):
        for processes in (1, 2):
            if processes > peer.most_processes:
                outcomes[peer, processes] = None
                continue
            say(f"race: {peer.name}, processes: {processes}", often=True)
            own = directory / f"race-{number}-{processes}"
            own.mkdir()
            outcomes[peer, processes] = race(peer, processes, own)
    return outcomes


def racers(peers: Sequence[Peer]) -> list[Peer]:
    """Return the peers to race, each once: the race itself sets the number of processes."""
    return [peer for peer in peers if peer.processes == 1 and peer is not FLOOR]


HEAD = ["who", "storage", "figure", "server µs", "× Taproof", "req/s", "cycles/s", "p99 ms", "server core", "load core"]


def figure_rows(figures: Sequence[Figure]) -> list[list[str]]:
    """Return the table of the figures, with its heading."""
    rows = [HEAD]
    for each in figures:
        cycles = f"{each.median('cycles_per_second'):,.0f}" if each.figure == "cycle" else ""
        row = [each.contestant.name, each.contestant.storage, TITLES[each.figure], f"{each.median('cost'):,.0f}"]
        row += [f"{each.ratio:.2f}", f"{each.median('per_second'):,.0f}", cycles, f"{each.median('p99'):.1f}"]
        rows.append([*row, *(f"{each.median(f'{side}_busy'):.0%}" for side in ("server", "load"))])
    return rows


def race_rows(outcomes: dict[tuple[Peer, int], Race | None]) -> list[list[str]]:
    """Return the table of the race, with its heading."""
    rows = [["peer", "processes", "attempts", "more than one result", "exactly one", "none", "results in all"]]
    for (peer, processes), outcome in outcomes.items():
        cells = ["not possible: memory is not shared", "", "", "", ""]
        if outcome is not None:
            numbers = (outcome.attempts, outcome.doubled, outcome.single, outcome.none, outcome.results)
            cells = [str(each) for each in numbers]
        rows.append([peer.name, str(processes), *cells])
    return rows


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure the peers of Taproof; see benchmarks/peers/README.md.")
    add = parser.add_argument
    add("--seconds", type=int, default=2, help="seconds of one figure in one round, at most 60 (default: 2)")
    add("--repeat", type=int, default=3, help="rounds that count, of which the median is taken (default: 3)")
    add("--sessions", type=int, default=10_000, help="sessions that Taproof has stored (default: 10,000)")
    add("--only", metavar="NAME", default="", help="only the peers that have this in their name")
    given = parser.parse_args()
    if min(given.seconds, given.repeat, given.sessions) < 1 or given.seconds > 60:
        parser.error("--seconds (at most 60), --repeat and --sessions must be positive")
    given.peers = [peer for peer in (*PEERS, FLOOR) if given.only in peer.name]
    if not given.peers:
        parser.error(f"--only: no peer has that in its name; there are {'; '.join(peer.name for peer in PEERS)}")
    return given


def main() -> None:
    """Install, measure, race, print."""
    given = arguments()
    if not {SERVER_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise SystemExit(
            "Two cores are needed, 0 for the server and 1 for the load, and this process may not use both."
        )
    BUILD.mkdir(parents=True, exist_ok=True)
    install()
    os.sched_setaffinity(0, {LOAD_CORE})  # wrk inherits this; each peer gets its own core.
    directory = Path(tempfile.mkdtemp(dir=BUILD, prefix="peers-"))
    try:
        figures = measure_peers(
            given.peers, directory, sessions=given.sessions, seconds=given.seconds, repeat=given.repeat
        )
        outcomes = race_all(racers(given.peers), directory)
    except BenchmarkFailed as failure:
        raise SystemExit(f"\n{failure}") from failure
    finally:
        shutil.rmtree(directory)
    say("")
    print(f"{markdown(figure_rows(figures))}\n")
    if outcomes:
        print(f"{markdown(race_rows(outcomes))}\n")
    found = {name: value for peer in given.peers for name, value in versions(peer).items()}
    print("; ".join(f"{name} {value}" for name, value in found.items()) + ".")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
