"""Measure the peers, Taproof and the bare ASGI app in the same rounds: what the ratios between them come from."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlencode

from benchmarks.machine import fail, say
from benchmarks.measuring import (
    FIGURES,
    POOL_SIZE,
    WARM_UP,
    FigureName,
    Load,
    Server,
    Slice,
    TaproofLoads,
    alternating,
    measure,
    median,
    median_ratio,
)
from benchmarks.peers.catalog import FLOOR, Dialect, Peer
from benchmarks.peers.running import Running, running
from benchmarks.serving import bare_url
from benchmarks.serving import running as running_taproof
from benchmarks.stores import sqlite_copy

_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_CONTENT_TYPES: Final = {"form": "application/x-www-form-urlencoded", "json": "application/json"}
TAPROOF: Final = "Taproof on SQLite"
Kind = Literal["ours", "durable", "memory", "floor"]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A running server and its loads."""

    name: str
    kind: Kind
    storage: str
    server: Server
    figures: Sequence[FigureName]
    load: Callable[[FigureName], Load]


@dataclass(frozen=True, slots=True)
class Figure:
    """All rounds of one figure of a contestant, and Taproof's in the same rounds."""

    contestant: Contestant
    figure: FigureName
    rounds: Sequence[Slice]
    ours: Sequence[Slice]

    def median(self, field: str) -> float:
        """Return the median of a field over the rounds."""
        return median(self.rounds, field)

    @property
    def ratio(self) -> float:
        """Return how often Taproof's CPU time per request goes into this one's: the median of the rounds' ratios."""
        return median_ratio(self.rounds, self.ours, "cost")


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
        fail(f"POST {message.path} was answered {answer.status}: {content.decode(errors='replace')[:300]}")
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


class PeerLoads:
    """The loads of a peer. It creates pending sign-ins, valid for an hour, for wrk to poll in random order."""

    def __init__(self, server: Running, directory: Path) -> None:
        dialect, pool = server.peer.dialect, directory / "pool.txt"
        lines = [f"{user_code} {device_code}\n" for user_code, device_code in create_sign_ins(server, POOL_SIZE)]
        random.shuffle(lines)
        pool.write_text("".join(lines), encoding="ascii")
        paths = (dialect.create_path, dialect.token_path)
        self._arguments = (str(pool), dialect.body, *paths, dialect.result_field)

    def __call__(self, figure: FigureName) -> Load:
        """Return the load of a figure."""
        return Load(f"device_{figure}", self._arguments)


@contextmanager
def contestants(peers: Sequence[Peer], sessions: int, directory: Path) -> Iterator[list[Contestant]]:
    """Start Taproof on SQLite with stored sessions, the bare ASGI app and the peers, and finally stop them."""
    with ExitStack() as stack:
        url = stack.enter_context(sqlite_copy(sessions, directory, "beside-peers"))
        taproof = stack.enter_context(running_taproof(url))
        bare = stack.enter_context(running_taproof(bare_url(directory), "--bare", "asgi"))
        loads = TaproofLoads(taproof, directory, "taproof")
        found = [
            Contestant(TAPROOF, "ours", "SQLite, synchronous=FULL", taproof, FIGURES, loads),
            # The floors get Taproof's own requests.
            Contestant("bare ASGI app", "floor", "nothing", bare, ("poll",), loads),
        ]
        for number, peer in enumerate(peers):
            own = directory / f"peer-{number}"
            own.mkdir()
            say(f"starting {peer.name}", often=True)
            server = stack.enter_context(running(peer, own))
            kind: Kind = "floor" if peer is FLOOR else "durable" if peer.is_durable else "memory"
            load = loads if peer is FLOOR else PeerLoads(server, own)
            found.append(Contestant(peer.name, kind, peer.storage, server, peer.figures, load))
        yield found


def measure_peers(peers: Sequence[Peer], directory: Path, *, sessions: int, seconds: int, repeat: int) -> list[Figure]:
    """Measure every figure of every contestant in each round, so that other load on the machine affects them equally.

    The peers must be installed (installing.py), and this process must be pinned to the load's core, which wrk inherits.
    """
    with contestants(peers, sessions, directory) as all_of_them:
        rounds: dict[tuple[str, FigureName], list[Slice]] = {
            (each.name, figure): [] for each in all_of_them for figure in each.figures
        }
        for number in range(repeat + 1):
            for figure in FIGURES:
                for each in alternating(all_of_them, number):
                    if figure not in each.figures:
                        continue
                    measured = measure(each.server, each.load(figure), seconds if number else WARM_UP)
                    if number:
                        rounds[each.name, figure].append(measured)
                    cost = f"{measured.cost:,.0f} µs, {measured.per_second:,.0f} req/s"
                    say(f"round {number} of {repeat}: {each.name}, {figure}: {cost}")
    return [
        Figure(each, figure, rounds[each.name, figure], rounds[TAPROOF, figure])
        for each in all_of_them
        for figure in each.figures
    ]
