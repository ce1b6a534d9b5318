"""The race: several callers redeem each approved sign-in at the same instant. Only one of them may get a result."""

import json
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import LOAD_CORE, SERVER_CORE
from benchmarks.peers.catalog import Dialect, Peer
from benchmarks.peers.measuring import Message, ask, create_sign_ins, decide_message, token_message
from benchmarks.peers.running import running

ATTEMPTS: Final = 200
REDEEMS: Final = 8


@dataclass(frozen=True, slots=True)
class Race:
    """The number of attempts that gave more than one result, exactly one, and none."""

    attempts: int
    doubled: int
    single: int
    none: int
    results: int
    """The total over all attempts."""


def race(peer: Peer, processes: int, directory: Path) -> Race:
    """Start a peer with this many processes, approve the attempts, and redeem each several times at once.

    Two processes may use both cores, as in production; ValueError if the peer cannot run with so many.
    """
    cores = (SERVER_CORE,) if processes == 1 else (SERVER_CORE, LOAD_CORE)
    with running(peer, directory, processes=processes, cores=cores) as server:
        approved = list(create_sign_ins(server, ATTEMPTS))
        connection = HTTPConnection("127.0.0.1", server.ports[0], timeout=30)
        for user_code, _ in approved:
            ask(connection, decide_message(user_code))
        connection.close()
        redeems = [token_message(peer.dialect, device_code) for _, device_code in approved]
        return contend(server.ports, redeems, lambda status, body: _is_result(peer.dialect, status, body))


def contend(ports: Sequence[int], redeems: Sequence[Message], is_result: Callable[[int, bytes], bool]) -> Race:
    """Send each redeem over eight connections at once, spread over the ports, and count the results.

    `is_result` returns whether an answer is a result or a refusal, and ends the run if it is neither. Works for any
    HTTP service.
    """
    counts: Counter[int] = Counter()
    with ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", ports[number % len(ports)]), timeout=60))
            for number in range(REDEEMS)
        ]
        for each in connections:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for redeem in redeems:
            encoded = _encoded(redeem)
            # All eight are in flight before the first answer is read.
            for connection in connections:
                connection.sendall(encoded)
            counts[sum(is_result(*_read_answer(connection)) for connection in connections)] += 1
    return Race(
        attempts=len(redeems),
        doubled=sum(count for results, count in counts.items() if results > 1),
        single=counts[1],
        none=counts[0],
        results=sum(results * count for results, count in counts.items()),
    )


def _encoded(message: Message) -> bytes:
    head = (
        f"POST {message.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {message.content_type}\r\n"
        f"Content-Length: {len(message.body)}\r\n\r\n"
    )
    return head.encode() + message.body


def _read_answer(connection: socket.socket) -> tuple[int, bytes]:
    answer = HTTPResponse(connection, method="POST")
    try:
        answer.begin()
        return answer.status, answer.read()
    except HTTPException as error:
        raise SystemExit(f"The race ended: an answer was no HTTP ({error!r}).") from error


def _is_result(dialect: Dialect, status: int, body: bytes) -> bool:
    try:
        content: dict[str, Any] = json.loads(body)
    except ValueError:
        content = {}
    if status == 200 and content.get(dialect.result_field) and content.get("access_token"):
        return True
    if status == 400 and content.get("error") == "invalid_grant":
        return False
    raise SystemExit(f"The race ended: a redeem was answered {status} {body[:300].decode(errors='replace')}")
