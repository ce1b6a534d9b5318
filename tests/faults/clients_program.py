"""Run HTTP clients, healthy or hostile. Started as a program by tests/faults/clients.py.

One line of JSON on stdin gives the target and the duration. One line on stdout gives the answers and how long each
took.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any

PACE = 1.5
PATIENCE = 30.0


async def exchange(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes) -> tuple[int, bytes]:
    """Send one request; return status and body."""
    reader, writer = connection
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    return int(head[9:12]), await reader.readexactly(length)


class Clients:
    """All clients of this process."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.until = time.monotonic() + told["seconds"]
        self.answers: Counter[str] = Counter()
        self.took: list[float] = []

    def request(self, path: str, **body: str) -> bytes:
        content = json.dumps({"project_id": self.told["project_id"], **body}).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in self.told["headers"].items())
        head = f"POST /api/v1/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{more}"
        return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content

    async def poll(self, number: int, token: str) -> None:
        """Poll one session every 1.5 seconds, as a healthy client does, each time over a new connection.

        A client that holds all connections would keep out new ones, not existing ones.
        """
        await asyncio.sleep(PACE * number / len(self.told["tokens"]))
        request = self.request("verify/public", session_token=token)
        while time.monotonic() < self.until:
            begun = time.monotonic()
            try:
                async with asyncio.timeout(PATIENCE):
                    connection = await asyncio.open_connection("127.0.0.1", self.told["port"])
                    status, body = await exchange(connection, request)
                    connection[1].close()
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                self.answers[type(error).__name__] += 1
            else:
                self.took.append(time.monotonic() - begun)
                self.answers["pending" if (status, body) == (200, b'{"status": "pending"}') else str(status)] += 1
            await asyncio.sleep(max(0.0, begun + PACE - time.monotonic()))

    async def flood(self, number: int, token: str) -> None:
        """Send calls as fast as answers come: for its session, for unknown sessions, and for new ones."""
        connection = await asyncio.open_connection("127.0.0.1", self.told["port"])
        calls = 0
        while time.monotonic() < self.until:
            calls += 1
            made_up = f"{token[:-18]}{number:08}{calls:09}A"
            for name, request in (
                ("own", self.request("verify/public", session_token=token)),
                ("made up", self.request("verify/public", session_token=made_up)),
                ("generate", self.request("generate/public")),
            ):
                status, _ = await exchange(connection, request)
                self.answers[f"{name} {status}"] += 1

    async def run(self) -> None:
        act = self.flood if self.told["flood"] else self.poll
        await asyncio.gather(*(act(number, token) for number, token in enumerate(self.told["tokens"])))


async def main() -> None:
    clients = Clients(json.loads(sys.stdin.readline()))
    begun = time.monotonic()
    await clients.run()
    seen = {"answers": clients.answers, "took": sorted(clients.took), "seconds": time.monotonic() - begun}
    sys.stdout.write(f"{json.dumps(seen)}\n")


asyncio.run(main())
