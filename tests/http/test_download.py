"""A download under the real server: it is complete, or the client notices that it is not."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from tests.granian_server import serve
from tests.ports import free_port
from tests.waiting import until

from taproof.core.errors import ErasedMeanwhile, InvalidAccessToken, RateLimited
from taproof.http.download import PIECE as DOWNLOAD_PIECE
from taproof.http.download import Download, joined

PIECE = "x" * 65_536


class Case:
    """An application that sends a download, and the way in which the download ends early."""

    def __init__(self, count: int = 200, *, fails_at: int = 1_000, ends_at: int = 1_000, is_full: bool = False) -> None:
        self.count = count
        self.fails_at, self.ends_at, self.is_full = fails_at, ends_at, is_full
        self.made = 0
        self.held: list[str] = []
        self.closed = asyncio.Event()

    async def pieces(self) -> AsyncGenerator[str, None]:
        try:
            while self.made < self.count:
                if self.made == self.fails_at:
                    raise ErasedMeanwhile
                yield PIECE
                self.made += 1
        finally:
            self.closed.set()

    async def check(self) -> None:
        if self.made >= self.ends_at:
            raise InvalidAccessToken

    @contextlib.contextmanager
    def slot(self) -> Iterator[None]:
        if self.is_full:
            raise RateLimited(10)
        self.held.append("taken")
        yield
        self.held.append("given back")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await Download("first", self.pieces(), self.check, self.slot(), patience=0.2)(scope, receive, send)


@contextlib.asynccontextmanager
async def asked(case: Case) -> AsyncGenerator[asyncio.StreamReader, None]:
    port = free_port()
    stop = await serve(case, port)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    yield reader
    writer.close()
    await stop()


@pytest.mark.parametrize(
    ("case", "status", "is_complete"),
    [
        (Case(), b"200", True),
        (Case(fails_at=50), b"200", False),
        (Case(fails_at=0), b"200", False),
        (Case(ends_at=50), b"200", False),
        (Case(is_full=True), b"429", None),
    ],
)
async def test_a_client_sees_the_end_of_a_complete_download_only(
    case: Case, status: bytes, *, is_complete: bool | None
) -> None:
    """The last chunk ends the body. An error in the middle closes the connection without it."""
    async with asked(case) as reader:
        answer = b""
        while not answer.endswith(b"\r\n0\r\n\r\n") and (read := await reader.read(1 << 20)):
            answer = answer[-20:] + read if b"HTTP/1.1" not in answer else answer + read
            if case.is_full and answer.endswith(b"}"):
                break
        assert b"HTTP/1.1 " not in answer or answer.split()[1] == status
        if is_complete is not None:
            assert answer.endswith(b"\r\n0\r\n\r\n") is is_complete
            await until(lambda: case.held == ["taken", "given back"])


async def test_a_client_that_reads_nothing_ends_its_download() -> None:
    """Only what the kernel buffers is prepared, and then the data is no longer read."""
    case = Case()
    async with asked(case):
        await case.closed.wait()
        assert case.made < 150
        assert case.held == ["taken", "given back"]


async def test_a_client_that_leaves_ends_its_download() -> None:
    """The data is not read further."""
    case = Case(10**9)
    async with asked(case) as reader:
        await reader.readexactly(1_000)
    await case.closed.wait()
    assert case.made < 10**9


async def test_texts_are_joined_into_pieces() -> None:
    """A piece ends with the text that makes it long enough, and none is lost."""

    async def texts() -> AsyncGenerator[str, None]:
        for number in range(20_000):
            yield f"{number} "

    pieces = [piece async for piece in joined(texts())]
    assert "".join(pieces) == "".join([text async for text in texts()])
    assert all(DOWNLOAD_PIECE <= len(piece) < DOWNLOAD_PIECE + 10 for piece in pieces[:-1])
    assert len(pieces) == 4
