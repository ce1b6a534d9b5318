"""An answer may have any form, is read up to a limit and within the time, and counts only if it is complete."""

import asyncio
import socket

import pytest
from structlog.testing import capture_logs
from tests.webhooks.receiver import NAME, opened, receiving, signed
from tests.webhooks.unusual_answers import CLOSED, INVALID, KEPT


def chunked(status: int, *chunks: bytes) -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % (status, body)


@pytest.mark.parametrize(
    ("reply", "status", "body", "connections"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n" + b"x" * 16384, 200, b"x" * 1024, 1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + b"x" * 60_000, 200, b"x" * 1024, 2),
        (b"HTTP/1.1 500 No\r\nContent-Length: 999999999999\r\n\r\n" + b"x" * 70_000, 500, b"x" * 1024, 2),
        (chunked(200, b"ab", b"c"), 200, b"abc", 1),
        (chunked(200, *[b"y"] * 20_000), 200, b"y" * 1024, 2),
        (chunked(200, b"ab").removesuffix(b"\r\n") + b"a: b\n" * 3_000 + b"\n", 200, b"ab", 2),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", 2),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", 1),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, b"", 1),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", 304, b"", 2),
        (b"HTTP/1.1 410 Gone\r\nContent-Length: 3\r\n\r\n\xff\x00\n", 410, b"\xff\x00\n", 1),
        (b"HTTP/1.1 299 Odd\r\nContent-Length: 0\r\n\r\n", 299, b"", 1),
    ],
)
async def test_an_answer_is_read_through_a_cap(reply: bytes, status: int, body: bytes, connections: int) -> None:
    """A longer answer counts by its status and closes the connection; its first kilobyte is kept."""
    async with receiving(reply) as receiver, opened(receiver) as client:
        for _ in range(2):
            answer = await client.post(signed(f"http://{NAME}:{receiver.port}/"))
            assert (answer.status, answer.error, answer.body) == (status, None, body)
        assert receiver.connections == connections
        if connections == 2:
            await asyncio.wait_for(receiver.closed.wait(), 60)


async def test_an_answer_without_end_is_left() -> None:
    """The connection is closed as soon as the limit is reached."""

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with receiving(endless) as receiver, opened(receiver) as client:
        answer = await client.post(signed(f"http://{NAME}:{receiver.port}/"))
        assert (answer.status, len(answer.body)) == (200, 1024)
        await asyncio.wait_for(receiver.closed.wait(), 60)


async def test_every_form_of_an_answer_is_accepted(subtests: pytest.Subtests) -> None:
    """The receiver's server and its gateways choose the form; whatever curl accepts is accepted, repeatedly."""

    async def close(writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        writer.close()

    async with opened(timeout=60) as client:
        for answers, closes in ((KEPT, False), (CLOSED, True)):
            for name, reply in answers.items():
                async with receiving(close if closes else reply) as receiver:
                    posts = [await client.post(signed(f"http://127.0.0.1:{receiver.port}/")) for _ in range(2)]
                with subtests.test(name, closes=closes):
                    assert [(each.delivered, each.error) for each in posts] == [(True, None)] * 2


async def test_what_is_not_http_is_an_invalid_answer(subtests: pytest.Subtests) -> None:
    """Garbage, and excessive parts of an answer, end the attempt immediately and are not logged as bugs."""
    async with opened(timeout=60) as client:
        for name, reply in INVALID.items():
            async with receiving(reply) as receiver:
                with capture_logs() as entries:
                    answer = await client.post(signed(f"http://127.0.0.1:{receiver.port}/"))
            with subtests.test(name):
                assert (answer.status, answer.error, answer.body) == (None, "invalid_answer", b"")
                assert entries == []


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ],
)
@pytest.mark.parametrize("reset", [False, True])
async def test_an_answer_that_is_cut_off_is_no_answer(reply: bytes, reset: bool) -> None:  # noqa: FBT001 — a column.
    """A truncated answer does not count even with a good status, because the receiver may have failed in between."""

    async def cut(writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await writer.drain()
        if reset:
            await asyncio.sleep(0.05)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            writer.transport.abort()
        writer.close()

    async with receiving(cut) as receiver, opened(receiver) as client:
        answer = await client.post(signed(f"http://{NAME}:{receiver.port}/"))
    assert (answer.status, answer.error) == (None, "connection_lost")


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
async def test_time_runs_for_connecting_sending_and_reading_together(first: bytes, drip: bytes) -> None:
    """A receiver that sends a little now and then does not hold the sender longer than a silent one."""

    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(drip)
            await writer.drain()
            await asyncio.sleep(0.05)

    time = asyncio.get_running_loop().time
    async with receiving(slow) as receiver, opened(receiver, timeout=0.5) as client:
        began = time()
        answer = await asyncio.wait_for(client.post(signed(f"http://{NAME}:{receiver.port}/")), 60)
        assert (answer.status, answer.error) == (None, "timeout")
        assert 500 <= answer.duration <= 1_000 * (time() - began) + 1
        if drip:  # Who says nothing does not notice that nobody listens.
            await asyncio.wait_for(receiver.closed.wait(), 60)


@pytest.mark.parametrize(
    ("status", "kept"),
    [(429, ("7", "-1")), (503, ("7", "-1")), (200, ()), (301, ()), (410, ()), (500, ())],
)
async def test_only_a_429_and_a_503_ask_for_a_pause(status: int, kept: tuple[str, ...]) -> None:
    """With these, Retry-After says when the receiver is ready again. Repeated headers are all read."""
    reply = b"HTTP/1.1 %d X\r\nRetry-After: 7\r\nretry-after: -1\r\nContent-Length: 0\r\n\r\n" % status
    async with receiving(reply) as receiver, opened(receiver) as client:
        answer = await client.post(signed(f"http://{NAME}:{receiver.port}/"))
    assert (answer.status, answer.retry_after) == (status, kept)
