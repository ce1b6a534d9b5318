"""Measure running peers with wrk, round after round: requests a second, p99, and the server's CPU time."""

import json
import os
import random
import re
import resource
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from benchmarks.peers.catalog import ROOT, Dialect, FigureName, Peer
from benchmarks.peers.running import Running, running

POOL_SIZE: Final = 2_000
WARM_UP: Final = 1
"""Seconds of each figure before the first round that counts."""
_CYCLE_REQUESTS: Final = 4
"""Create, poll, decide, redeem. Sign-ins a second are a quarter of the requests: unfinished ones count in part."""
_LONGEST: Final = 60
_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_CONTENT_TYPES: Final = {"form": "application/x-www-form-urlencoded", "json": "application/json"}


@dataclass(frozen=True, slots=True)
class Slice:
    """One figure in one round: p99 in milliseconds, cost in microseconds of the server's CPU time per request.

    For a cycle p99 is that of a whole sign-in. Busy is the share of a core.
    """

    per_second: float
    p99: float
    cost: float
    server_busy: float
    load_busy: float
    cycles_per_second: float


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of each field of Slice over the rounds of one figure of one peer."""

    peer: Peer
    figure: FigureName
    per_second: float
    p99: float
    cost: float
    server_busy: float
    load_busy: float
    cycles_per_second: float


@dataclass(frozen=True, slots=True)
class Message:
    """One POST request."""

    path: str
    content_type: str
    body: bytes


def create_message(dialect: Dialect) -> Message:
    """Return the request that starts a sign-in."""
    return _message(dialect, dialect.create_path, {"client_id": "bench", "scope": "openid"})


def token_message(dialect: Dialect, device_code: str) -> Message:
    """Return the request that polls, and that redeems once the sign-in is approved."""
    fields = {"grant_type": _GRANT, "device_code": device_code, "client_id": "bench"}
    return _message(dialect, dialect.token_path, fields)


def decide_message(user_code: str) -> Message:
    """Return the request that approves as the simulated user; only peers started here have this route."""
    body = urlencode({"user_code": user_code, "action": "accept"}).encode()
    return Message("/bench/decide", _CONTENT_TYPES["form"], body)


def _message(dialect: Dialect, path: str, fields: dict[str, str]) -> Message:
    body = json.dumps(fields) if dialect.body == "json" else urlencode(fields)
    return Message(path, _CONTENT_TYPES[dialect.body], body.encode())


def ask(connection: HTTPConnection, message: Message) -> dict[str, Any]:
    """Send one request whose answer must be 200; return its JSON object, or end the run with the answer."""
    connection.request("POST", message.path, message.body, {"Content-Type": message.content_type})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise SystemExit(f"POST {message.path} was answered {answer.status}: {content.decode(errors='replace')[:300]}")
    parsed: dict[str, Any] = json.loads(content)
    return parsed


def create_sign_ins(server: Running, size: int) -> Iterator[tuple[str, str]]:
    """Create sign-ins one by one; yield the user code and the device code of each."""
    connection = HTTPConnection("127.0.0.1", server.ports[0], timeout=30)
    try:
        for _ in range(size):
            created = ask(connection, create_message(server.peer.dialect))
            yield str(created["user_code"]), str(created["device_code"])
    finally:
        connection.close()


def write_pool(server: Running, size: int, path: Path) -> None:
    """Create pending sign-ins, valid for an hour, and write them to a file in random order, for wrk to poll."""
    if server.peer.program == "nginx":  # It stores nothing, so any value works.
        lines = [f"project {number:043d}\n" for number in range(size)]
    else:
        lines = [f"{user_code} {device_code}\n" for user_code, device_code in create_sign_ins(server, size)]
    random.shuffle(lines)
    path.write_text("".join(lines), encoding="ascii")


def measure(server: Running, figure: FigureName, pool: Path, seconds: int, connections: int) -> Slice:
    """Run wrk against a server and return its measurements; end the run if an answer was wrong.

    A peer too slow for one whole sign-in gets twice the time until it finishes one: its redeems are checked too.
    """
    while True:
        server_before, load_before = _server_seconds(server.pids), _children_seconds()
        result = _run_wrk(server, figure, pool, seconds, connections)
        server_used = _server_seconds(server.pids) - server_before
        load_used = _children_seconds() - load_before
        if figure != "cycle" or result["cycles"]:
            break
        if seconds > _LONGEST:
            raise SystemExit(f"{server.peer.name} finished no sign-in in {seconds} seconds.")
        seconds *= 2
    elapsed = result["microseconds"] / 1e6
    per_second = result["requests"] / elapsed
    return Slice(
        per_second=per_second,
        p99=(result["cycle_p99"] if figure == "cycle" else result["p99"]) / 1e3,
        cost=server_used / result["requests"] * 1e6,
        server_busy=server_used / elapsed,
        load_busy=load_used / elapsed,
        cycles_per_second=per_second / _CYCLE_REQUESTS if figure == "cycle" else 0.0,
    )


def _run_wrk(server: Running, figure: FigureName, pool: Path, seconds: int, connections: int) -> dict[str, Any]:
    peer = server.peer
    threads = connections if figure == "cycle" else 1  # See wrk/device_cycle.lua.
    script, arguments = f"device_{figure}", [str(pool)]
    if peer.program == "nginx":
        script = "poll"  # The floor gets Taproof's own requests.
    else:
        dialect = peer.dialect
        arguments += [dialect.body, dialect.create_path, dialect.token_path, dialect.result_field]
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
    command += ["-s", f"benchmarks/wrk/{script}.lua", server.url, "--", *arguments]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.search(r"^RESULT (.*)$", finished.stdout, re.MULTILINE)
    if finished.returncode != 0 or found is None:
        raise SystemExit(f"{peer.name}, {figure}: wrk failed:\n{finished.stdout}{finished.stderr}")
    result: dict[str, Any] = json.loads(found[1])
    if result["wrong"] or result["connection_errors"] or not result["requests"]:
        raise SystemExit(
            f"{peer.name}, {figure}: {result['wrong']} wrong answers and {result['connection_errors']} connection "
            f"errors in {result['requests']} requests. The first wrong one: {result['first_wrong'] or '-'}"
        )
    return result


def _server_seconds(pids: Sequence[int]) -> float:
    """Return the CPU time that processes and their children have used (proc(5): utime and stime)."""
    used = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        used += _server_seconds([int(each) for each in children])
    return used


def _children_seconds() -> float:
    """Return the CPU time of all children that have ended, which is wrk between two calls."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def median_figure(peer: Peer, figure: FigureName, rounds: Sequence[Slice]) -> Figure:
    """Return the medians over the rounds, field by field."""
    fields = Slice.__dataclass_fields__
    medians = {field: float(statistics.median(getattr(each, field) for each in rounds)) for field in fields}
    return Figure(peer, figure, **medians)


def measure_peers(
    peers: Sequence[Peer],
    directory: Path,
    *,
    seconds: int,
    repeat: int,
    connections: int,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Figure]:
    """Measure every figure of every peer in each round, all started at once, so that other load affects them equally.

    The peers must be installed (installing.py), and this process must be pinned to the load's core, which wrk inherits.
    `tell` receives the progress.
    """
    rounds: dict[tuple[Peer, FigureName], list[Slice]] = {(peer, each): [] for peer in peers for each in peer.figures}
    with ExitStack() as stack:
        servers: list[tuple[Running, Path]] = []
        for number, peer in enumerate(peers):
            own = directory / f"peer-{number}"
            own.mkdir()
            server = stack.enter_context(running(peer, own))
            tell(f"making sign-ins to poll: {peer.name}")
            write_pool(server, POOL_SIZE, own / "pool.txt")
            servers.append((server, own / "pool.txt"))
        for number in range(repeat + 1):
            for server, pool in servers:
                for figure in server.peer.figures:
                    measured = measure(server, figure, pool, seconds if number else WARM_UP, connections)
                    if number:
                        rounds[server.peer, figure].append(measured)
                    tell(f"round {number} of {repeat}: {server.peer.name}, {figure} {measured.per_second:,.0f} req/s")
    return [median_figure(peer, figure, slices) for (peer, figure), slices in rounds.items()]
