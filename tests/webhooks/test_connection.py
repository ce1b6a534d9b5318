"""A connection accepts a limited part of what a receiver sends, at any time, and is then aborted."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop
from tests.webhooks.receiver import NAME, Authority, opened, receiving, signed


async def test_an_answer_that_was_not_asked_for_ends_the_connection() -> None:
    """Data on a connection that is kept for the next event is never taken for that event's answer."""
    posted = asyncio.Event()

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await posted.wait()
        writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")

    async with receiving(reply) as receiver, opened(receiver) as client:
        assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == 204
        posted.set()
        await asyncio.wait_for(receiver.closed.wait(), 60)
        assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == 204
        assert receiver.connections == 2


async def test_the_budget_is_for_each_request() -> None:
    """A connection can be reused for any number of answers."""
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n" + b"x" * 16_000
    async with receiving(reply) as receiver, opened(receiver) as client:
        for _ in range(20):
            assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == 200
        assert receiver.connections == 1


async def test_a_connection_is_not_used_after_another_protocol() -> None:
    """A receiver that answers 101 speaks another protocol from then on (RFC 9110, 15.2.2)."""
    async with receiving(b"HTTP/1.1 101 Switching\r\n\r\n") as receiver, opened(receiver) as client:
        for _ in range(2):
            assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == 101
        assert receiver.connections == 2


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_receivers_that_do_not_say_good_bye_hold_no_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TLS on the service's event loop, all sockets are gone right after the posts."""
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
