"""Receive webhooks, check each one, and fail at a given rate. Started as a program.

It answers each event with the event's id, so that a mixed-up answer is detected. The command line gives the failure
rate (0 to 1) and the seed of the failures. One line of JSON on stdin gives the webhook secret of each project. Its
port of 127.0.0.1 is printed on stdout. GET `/progress` and GET `/report` return what arrived. It exits with its stdin.
"""

import asyncio
import hashlib
import hmac
import json
import os
import random
import socket
import struct
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from standardwebhooks.webhooks import Webhook

LATE = 60.0
"""Seconds without an answer, or of a slow body: longer than any sender waits."""
DRIP = 0.1


@dataclass
class Arrived:
    """What arrived for one event."""

    body: bytes
    seen: int = 0
    accepted: int = 0
    """The number of complete 2xx answers."""


class Receiver:
    """Accepts events, except those that the seed makes fail."""

    def __init__(self, failing: float, seed: int) -> None:
        self.secrets: dict[str, str] = {}
        self._failing = failing
        self._draw = random.Random(seed)  # noqa: S311 — the same failures in every run, in the order of arrival.
        self._arrived: dict[str, Arrived] = {}
        self._open: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()
        self._wrong: list[str] = []
        self._fail = [self._refuse, self._reset, self._hang, self._drip]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response(self.report() if request.path == "/report" else self.progress())
        sender = request.headers["User-Agent"]
        self._open[sender] += 1
        try:
            body = await request.read()
            arrived = self._take(request, body)
            if self._draw.random() < self._failing:
                fail = self._draw.choice(self._fail)
                self._answers[fail.__name__] += 1
                return await fail(request)
            return await self._accept(request, arrived)
        finally:
            self._open[sender] -= 1

    def progress(self) -> dict[str, Any]:
        """Return the number of each sender's requests in progress."""
        return {"open": self._open}

    def report(self) -> dict[str, Any]:
        """Return the report of everything that arrived."""
        arrived = {
            event_id: [each.seen, each.accepted, json.loads(each.body)["session_token"]]
            for event_id, each in self._arrived.items()
        }
        return {"arrived": arrived, "answers": self._answers, "wrong": self._wrong}

    def _take(self, request: web.BaseRequest, body: bytes) -> Arrived:
        """Check a request as a receiver should, and that an event is the same in every attempt."""
        event_id = request.headers["webhook-id"]
        try:
            event = json.loads(body)
            secret = self.secrets[event["project_id"]]
            signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            assert hmac.compare_digest(request.headers["X-Service-Signature"], signature)
            Webhook(secret).verify(body, dict(request.headers))
            assert event["id"] == event_id
            assert self._arrived.setdefault(event_id, Arrived(body)).body == body
        except Exception as error:  # noqa: BLE001 — whatever is wrong with it, the test is told.
            self._wrong.append(f"{event_id}: {error!r}")
        arrived = self._arrived.setdefault(event_id, Arrived(body))
        arrived.seen += 1
        return arrived

    async def _accept(self, request: web.BaseRequest, arrived: Arrived) -> web.StreamResponse:
        response = web.Response(status=self._draw.choice((200, 201, 202)), text=request.headers["webhook-id"])
        try:
            await response.prepare(request)
            await response.write_eof()
        except ConnectionResetError:
            # The sender has died meanwhile.
            self._answers["unsent"] += 1
            return response
        self._answers["accept"] += 1
        arrived.accepted += 1
        return response

    async def _refuse(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=self._draw.choice((500, 502, 503, 504)), text=request.headers["webhook-id"])

    async def _reset(self, request: web.BaseRequest) -> web.StreamResponse:
        """Reset the connection, before the answer or in the middle of one that began with 200."""
        if self._draw.random() < 0.5:
            response = web.StreamResponse(headers={"Content-Length": "64"})
            await response.prepare(request)
            await response.write(b"Thank")
        assert request.transport is not None
        # Without lingering, closing resets the connection and drops unsent data.
        no_lingering = struct.pack("ii", 1, 0)
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
        request.transport.abort()
        return web.Response()

    async def _hang(self, _request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(LATE)
        return web.Response(status=503)

    async def _drip(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer 200 at once, with a body that arrives byte by byte and does not end in time."""
        size = int(LATE / DRIP)
        response = web.StreamResponse(headers={"Content-Length": f"{size}"})
        await response.prepare(request)
        for _ in range(size):
            await response.write(b".")
            await asyncio.sleep(DRIP)
        return response


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def main() -> None:
    receiver = Receiver(float(sys.argv[1]), int(sys.argv[2]))
    # Cancelled when the sender disconnects, so nothing keeps running for it.
    server = web.Server(receiver.handle, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1_000)
    await site.start()
    say(f"{runner.addresses[0][1]}")
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        receiver.secrets = json.loads(line)
        say("ready")
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
