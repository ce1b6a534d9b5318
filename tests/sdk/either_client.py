"""Both clients behind one interface, a clock that tests move, and a server with scripted faults."""

import asyncio
import inspect
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from taproof import AsyncClient, Client, ProjectUpdate
from taproof.contract.fields import described

KINDS = ("Client", "AsyncClient")
ACCESS_TOKEN = "tap_" + "a" * 49
SECRET_KEY = "sk_" + "b" * 49
ACCOUNT = {
    "id": "dev_1",
    "email": "ada@example.com",
    "plan": "free",
    "created_at": "2026-11-20T22:44:03.127Z",
    "usage": {"projects": 2, "projects_limit": 3, "sign_ins_this_month": 120, "sign_ins_limit": None},
}
PROJECT = {
    **{name: field.default for name, (_, field) in described(ProjectUpdate).items() if name != "bot_token"},
    "id": "proj_1",
    "name": "Shop",
    "role": "owner",
    "secret_key_preview": "sk_…abcd",
    "created_at": "2026-11-20T22:44:03.127Z",
    "sessions_count": 7,
    "confirmed_count": 5,
    "webhook_failing_since": None,
    "webhook_turned_off": None,
    "bot_username": "shop_bot",
    "bot_broken_at": "2026-11-20T22:44:03.127Z",
}
CREATED = {
    "session_token": "T" * 43,
    "deeplink": f"https://t.me/a?start={'T' * 43}",
    "expires_at": "2026-11-20T22:54:03Z",
}
CONFIRMED = {
    "status": "confirmed",
    "messenger_id": "1001",
    "messenger_name": "Ada",
    "messenger_username": None,
    "confirmed_at": "2026-11-20T22:45:00.000Z",
    "proof": "a.b.c",
}
PENDING = {"status": "pending"}


class HandClock:
    """Seconds that pass only in a sleep; the sleeps are recorded."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class EitherClient:
    """A `Client` or an `AsyncClient`: calls block, and lists are returned whole."""

    def __init__(self, kind: str, base_url: str, *, clock: HandClock | None = None, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self.client: Any = Client(base_url, **options) if kind == "Client" else self._async(base_url, options)
        if clock is not None:
            service = self.client._service
            changed = replace(service, monotonic=lambda: clock.now, wall_clock=lambda: clock.now, chance=lambda: 1.0)
            self.client._service = changed
            self.client._sleep = clock.sleep if kind == "Client" else _async_sleep(clock)

    def _async(self, base_url: str, options: dict[str, Any]) -> AsyncClient:
        async def make() -> AsyncClient:
            return AsyncClient(base_url, **options)

        return self._runner.run(make())

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)

        def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            if inspect.iscoroutine(result):
                return self._runner.run(result)
            if inspect.isasyncgen(result):
                return self._runner.run(_all(result))
            return list(result) if isinstance(result, Iterator) else result

        return call

    def shut(self) -> None:
        if isinstance(self.client, AsyncClient):
            self._runner.run(self.client.aclose())
        else:
            self.client.close()
        self._runner.close()


async def _all(found: Any) -> list[Any]:
    return [each async for each in found]


def _async_sleep(clock: HandClock) -> Callable[[float], Any]:
    async def sleep(seconds: float) -> None:
        clock.sleep(seconds)

    return sleep


@dataclass
class Received:
    """A request as it arrived."""

    line: str
    headers: dict[str, str]
    body: Any


Reply = bytes | Callable[[Any], None]
"""Bytes to send, after which the connection is closed, or a function to call with the connection's socket."""


@dataclass
class ScriptedServer:
    """Answers each request with the next reply; the last one repeats."""

    base_url: str
    replies: list[Reply] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return [each.line for each in self.received]


def reply(status: int, body: Any = None, **headers: str) -> bytes:
    """Write an HTTP answer; `body` is JSON unless it is bytes, and `retry_after` means Retry-After."""
    content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    lines = [f"HTTP/1.1 {status} Reply", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def hang_up(_connection: Any) -> None:
    """Close the connection without an answer."""


def slow_by(clock: HandClock, seconds: float, answer: bytes) -> Reply:
    """Answer after the clock has gone on."""

    def send(connection: Any) -> None:
        clock.now += seconds
        connection.sendall(answer)

    return send


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Start one on loopback."""
    server = ScriptedServer("")

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline().decode().strip()
            if not line:
                return
            headers: dict[str, str] = {}
            while (raw := self.rfile.readline()) not in {b"\r\n", b""}:
                name, _, value = raw.decode().partition(":")
                headers[name.lower()] = value.strip()
            content = self.rfile.read(int(headers.get("content-length", 0)))
            server.received.append(Received(line, headers, json.loads(content) if content else None))
            chosen = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
            try:
                if isinstance(chosen, bytes):
                    self.wfile.write(chosen)
                else:
                    chosen(self.connection)
            except OSError:
                pass  # The client has heard enough.

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        server.base_url = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


NewClient = Callable[..., EitherClient]
