"""Send a response of any size in pieces, as fast as its client reads it.

The server has begun the response when it reads the data, so an error cannot have a status any more. The connection is
then closed without the end of the response, which every HTTP client reports.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from taproof.core.errors import TaproofError
from taproof.http.errors import NO_PAGE, send_error
from taproof.http.requester import until_gone

PIECE: Final = 32 * 1024
"""The number of characters after which a piece should end."""
PATIENCE: Final = 30.0
"""Seconds in which the client must accept each piece. The kernel and the server buffer less than a megabyte."""
LIFETIME: Final = 3_600.0
"""Seconds after which a download breaks off, however fast the client reads."""

_log = structlog.get_logger(__name__)


async def joined(texts: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    """Yield the texts in pieces of at least `PIECE` characters, but for the last one."""
    piece = ""
    async with contextlib.aclosing(texts):
        async for text in texts:
            piece += text
            if len(piece) >= PIECE:
                yield piece
                piece = ""
    yield piece


class Download(Response):
    """A JSON response in pieces. No more than one piece is in memory.

    Args:
        first: the first piece. It is read before, so that an error up to there has a status.
        others: the pieces that follow. They are closed at the end, also if the client closes its connection.
        check: called before each further piece. It raises an error if the caller's rights have ended.
        slot: held while the response is sent. If it raises an error, the error is the response.
        headers: further headers.
        patience: see `PATIENCE`.
    """

    def __init__(
        self,
        first: str,
        others: AsyncGenerator[str, None],
        check: Callable[[], Awaitable[object]],
        slot: AbstractContextManager[None],
        headers: Mapping[str, str] | None = None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(media_type="application/json", headers={"cache-control": "no-store", **(headers or {})})
        del self.headers["content-length"]
        self.raw_headers.extend(NO_PAGE)
        self._first = first
        self._others = others
        self._check = check
        self._slot = slot
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces; end early if the client has closed its connection."""
        async with contextlib.aclosing(self._others):
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(self._slot)
                except TaproofError as error:
                    await send_error(send, error)
                    return
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                if scope["method"] == "HEAD":
                    await send({"type": "http.response.body", "body": b""})
                else:
                    await self._send_pieces(receive, send)

    async def _send_pieces(self, receive: Receive, send: Send) -> None:
        writing = asyncio.create_task(self._write(send))
        gone = asyncio.create_task(until_gone(receive))
        try:
            await asyncio.wait([writing, gone], timeout=LIFETIME, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_written = writing.done()
            writing.cancel()
            gone.cancel()
            (result, _) = await asyncio.gather(writing, gone, return_exceptions=True)
        # The server closes the connection, because the response has no end.
        if not is_written or isinstance(result, (TaproofError, TimeoutError)):
            reason = result.code if isinstance(result, TaproofError) else "client_too_slow_or_gone"
            _log.warning("download_broken_off", reason=reason)
        elif isinstance(result, BaseException):
            raise result

    async def _write(self, send: Send) -> None:
        await self._send(send, self._first)
        async for piece in self._others:
            await self._check()
            await self._send(send, piece)
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send, piece: str) -> None:
        async with asyncio.timeout(self._patience):
            await send({"type": "http.response.body", "body": piece.encode(errors="replace"), "more_body": True})
        await asyncio.sleep(0)  # Let other requests run, even if the server has accepted the piece at once.
