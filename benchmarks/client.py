"""A small HTTP client on asyncio, cheap enough for ten thousand connections on one core, that times answers.

A general client would use more of the core than the service does, and would distort the figures.
"""

import asyncio
import json
import time
from typing import Any, Final, cast

from benchmarks.machine import fail

PATIENCE: Final = 60.0
"""Seconds after which a missing answer ends the run: more than any wait takes."""


class Connection(asyncio.Protocol):
    """A kept connection for one request at a time, reopened after the server has closed it while idle."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.answered_at = 0.0
        """When the last answer was complete, by `time.perf_counter`."""
        self.requests = 0
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without being derived from it.

    def data_received(self, data: bytes) -> None:
        """Check whether the answer is complete."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        lowered = head.lower()
        at = lowered.find(b"\r\ncontent-length:")
        length = int(lowered[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(body) >= length and self._answer is not None and not self._answer.done():
            self.answered_at = time.perf_counter()
            self._received = b""
            self._answer.set_result((int(head[9:12]), body))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request in flight."""
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"The server closed the connection: {exc}"))

    async def post(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        """Send a request whose answer must be 200 with a JSON object; otherwise end the run with the answer."""
        if self._transport is None:
            await self.open()
        assert self._transport is not None
        body = json.dumps(content).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
        answer = self._answer = asyncio.get_running_loop().create_future()
        self.requests += 1
        self._transport.write(head.encode() + b"%d\r\n\r\n%s" % (len(body), body))
        try:
            async with asyncio.timeout(PATIENCE):
                status, received = await answer
        except (TimeoutError, ConnectionError) as error:
            fail(f"POST {path} was not answered: {error!r}")
        if status != 200:
            fail(f"POST {path} was answered {status}: {received[:300].decode(errors='replace')}")
        parsed: dict[str, Any] = json.loads(received)
        return parsed

    async def open(self) -> None:
        """Connect to the server."""
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


async def connect(port: int) -> Connection:
    """Open a connection to a server on this machine."""
    connection = Connection(port)
    await connection.open()
    return connection


async def create(connection: Connection, project_id: str) -> str:
    """Start a sign-in; return its session token."""
    answer = await connection.post("/api/v1/generate/public", {"project_id": project_id})
    token: str = answer["session_token"]
    if not answer["deeplink"].endswith(f"?start={token}"):
        fail(f"The deeplink is not that of its session: {answer}")
    return token


async def verify(
    connection: Connection, project_id: str, token: str, wait: float | None = None, *, seen_hint: str | None = None
) -> dict[str, Any]:
    """Return the status of a sign-in, waiting for up to this many seconds while it is pending.

    With `seen_hint`, wait only while that is its hint.
    """
    body: dict[str, Any] = {"project_id": project_id, "session_token": token}
    if seen_hint is not None:
        body |= {"hints": True, "seen_hint": seen_hint}
    return await connection.post("/api/v1/verify/public", body if wait is None else body | {"wait": wait})


def check_confirmed(answer: dict[str, Any], messenger_id: str) -> None:
    """End the run unless the answer carries identity and proof."""
    if (
        answer["status"] != "confirmed"
        or answer["messenger_id"] != messenger_id
        or answer["proof"].count(".") != 2
        or not answer["confirmed_at"]
    ):
        fail(f"A sign-in that {messenger_id} had confirmed was answered {answer}")
