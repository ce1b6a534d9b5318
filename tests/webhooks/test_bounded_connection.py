"""A connection accepts a limited part of what a receiver sends, at any time, and is then aborted."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp.client_proto import ResponseHandler
from tests.webhooks.receiver import NAME, Authority, opened, receiving, signed

from taproof.core.address_rules import AddressRules
from taproof.webhooks.bounded_connection import ANSWER_BUDGET, BoundedConnection
from taproof.webhooks.http_client import open_webhook_client

HEADERS = b"".join(b"X-%d: %b\r\n" % (number, b"y" * 200) for number in range(90))
FLOODS = {
    "100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 4_000,
    "103 with headers": (b"HTTP/1.1 103 Early Hints\r\n" + HEADERS + b"\r\n") * 10,
    "empty lines": b"\r\n" * 50_000,
    "one endless chunk extension": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;" + b"a" * 100_000,
}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of bytes that aiohttp was given to parse, piece by piece."""
    pieces: list[int] = []
    parse = ResponseHandler.data_received

    def counted(self: ResponseHandler, data: bytes) -> None:
        pieces.append(len(data))
        parse(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", counted)
    return pieces


async def endlessly(writer: asyncio.StreamWriter, piece: bytes) -> None:
    with suppress(OSError):
        while True:
            writer.write(piece)
            await writer.drain()


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_before_or_in_an_answer_is_cut_off(flood: str, taken: list[int]) -> None:
    """Interim answers are not counted by aiohttp: each would be parsed, as fast as they come."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        await endlessly(writer, FLOODS[flood])

    async with receiving(reply) as receiver, opened(receiver) as client:
        for _ in range(2):
            answer = await client.post(signed(f"http://{NAME}:{receiver.port}/"))
            assert answer.error == ("connection_lost" if "chunk" in flood else "invalid_answer")
            await asyncio.wait_for(receiver.closed.wait(), 60)
        assert receiver.connections == 2
    assert sum(taken) <= 2 * ANSWER_BUDGET


async def test_a_flood_between_two_answers_is_cut_off(taken: list[int]) -> None:
    """On a connection that is kept for the next event nothing was asked: what comes is neither kept nor parsed on."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.2)
        await endlessly(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 1_000)

    async with receiving(reply) as receiver, opened(receiver) as client:
        assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == 204
        await asyncio.wait_for(receiver.closed.wait(), 60)
        assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == 204
        assert receiver.connections == 2
    assert sum(taken) <= 2 * ANSWER_BUDGET


async def test_the_budget_is_for_each_request() -> None:
    """A connection that is used again and again takes any number of answers."""
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n" + b"x" * 16_000
    async with receiving(reply) as receiver, opened(receiver) as client:
        for _ in range(20):
            assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == 200
        assert receiver.connections == 1


class Transport(asyncio.Transport):
    """Tells how it was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []

    def close(self) -> None:
        self.ended.append("closed")

    def abort(self) -> None:
        self.ended.append("aborted")


async def test_a_connection_that_is_closed_waits_for_nobody() -> None:
    """A TLS connection that is closed in the usual way waits for the peer to say good-bye too."""
    transport = Transport()
    connection = BoundedConnection(asyncio.get_running_loop())
    connection.connection_made(transport)
    connection.close()
    assert transport.ended == ["aborted"]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_receivers_that_do_not_say_good_bye_hold_no_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TLS, on the loop that the service runs on: right after the posts all of their sockets are gone."""
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + b"x" * 65_536)
        await asyncio.sleep(3_600)

    async def count() -> tuple[int, int]:
        server = authority.server(NAME)
        async with receiving(reply, server) as receiver, opened(receiver) as client:
            before = open_files()
            posts = [client.post(signed(f"https://{NAME}:{receiver.port}/")) for _ in range(20)]
            assert {answer.status for answer in await asyncio.gather(*posts)} == {200}
            # The receiver's own ends stay open: it does not read that the others are gone. A connection that waits for
            # the receiver's good-bye would be closed after 30 seconds.
            with suppress(TimeoutError):
                async with asyncio.timeout(15):
                    while open_files() - before > len(posts):  # noqa: ASYNC110 — the loop closes them.
                        await asyncio.sleep(0.01)
            return open_files() - before, receiver.connections

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        left, connections = runner.run(count())
    assert connections == 20
    assert left <= 20


def test_every_connection_is_bounded_with_this_aiohttp() -> None:
    """The name that is set is aiohttp's own: a release that goes another way must be noticed."""

    async def made() -> ResponseHandler:
        async with open_webhook_client(AddressRules(), frozenset({443})) as client:
            connector: Any = client._session.connector
            handler: ResponseHandler = connector._factory()
            return handler

    assert isinstance(asyncio.run(made()), BoundedConnection)
