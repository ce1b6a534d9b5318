"""Accept webhooks on loopback, check each one, and answer 200, at a lower cost than that of the measured sender.

Usage: python -m benchmarks.receiver [--tls CERTIFICATE KEY]. Listens on a free port of 127.0.0.1, then prints one line
of JSON, and stops when its standard input ends. The path of a webhook's URL is the project's webhook secret, so the
receiver needs no further configuration; no real receiver would do that. A request without a signature comes from the
bare client. GET returns the counts since the last GET.
"""

import argparse
import asyncio
import hmac
import json
import ssl
import sys
from collections import Counter
from pathlib import Path
from typing import Final, cast

import uvloop

_TAKEN: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
_REFUSED: Final = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


class Counts:
    """The counts since the last report."""

    def __init__(self) -> None:
        self._ids: set[bytes] = set()
        self._kinds: Counter[str] = Counter()

    def take(self, path: bytes, headers: dict[bytes, bytes], body: bytes) -> bool:
        """Count a request; return whether it is correct."""
        event_id, signature = json.loads(body)["id"].encode(), headers.get(b"x-service-signature")
        if signature is None:
            self._kinds["bare"] += 1
            return True
        expected = hmac.digest(path.removeprefix(b"/"), body, "sha256").hex().encode()
        if signature != expected or headers.get(b"webhook-id") != event_id:
            self._kinds["wrong"] += 1
            return False
        self._kinds["signed"] += 1
        self._ids.add(event_id)
        return True

    def tell(self) -> bytes:
        """Return the counts as JSON and reset them."""
        counts = {"signed": 0, "bare": 0, "wrong": 0} | self._kinds | {"ids": len(self._ids)}
        self._ids, self._kinds = set(), Counter()
        return json.dumps(counts).encode()


class Receiver(asyncio.Protocol):
    """One kept connection; answers have the order of the requests."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without being derived from it.

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        self._received += data
        while True:
            head, end, rest = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            request, *lines = head.split(b"\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
            length = int(headers.get(b"content-length", b"0"))
            if len(rest) < length:
                return
            self._received = rest[length:]
            assert self._transport is not None
            self._transport.write(self._answer(request.split(b" "), headers, rest[:length]))

    def _answer(self, request: list[bytes], headers: dict[bytes, bytes], body: bytes) -> bytes:
        if request[0] == b"GET":
            counts = self._counts.tell()
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(counts), counts)
        return _TAKEN if self._counts.take(request[1], headers, body) else _REFUSED


async def serve(tls: ssl.SSLContext | None) -> None:
    """Serve until standard input ends."""
    loop, stopping, counts = asyncio.get_running_loop(), asyncio.Event(), Counts()
    loop.add_reader(sys.stdin.fileno(), stopping.set)
    server = await loop.create_server(lambda: Receiver(counts), "127.0.0.1", 0, ssl=tls)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await stopping.wait()
    loop.remove_reader(sys.stdin.fileno())
    server.close()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="Take webhooks and check them; see benchmarks/README.md.")
    parser.add_argument("--tls", nargs=2, type=Path, metavar=("CERTIFICATE", "KEY"))
    given = parser.parse_args()
    tls = None
    if given.tls:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*given.tls)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(tls))


if __name__ == "__main__":
    main()
