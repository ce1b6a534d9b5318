"""Live updates of the session list, as server-sent events (WHATWG HTML, Server-sent events).

A stream reads the first page of the list about once a second and sends the page if it has changed. So no event can be
lost between processes, and a client that reconnects sees the current list. A client without a stream (too many streams,
or signed out) can still use the page and its "Reload" link.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from taproof.console.access import Access, Visitor
from taproof.console.rendering import PageRenderer
from taproof.console.sessions import SessionFilters, SessionRow, render_rows, session_rows
from taproof.core.clock import Clock
from taproof.core.errors import ProjectNotFound, StoreUnavailable
from taproof.http.requester import until_gone
from taproof.service.sessions.list import SessionPage, SessionReader

_TOO_MANY: Final = "Too many pages are receiving live updates. Reload the page instead, or try again in a minute."
_SHARE: Final = 0.2
"""The largest share of this process's time that store reads can take."""
_Seen = tuple[SessionPage, list[SessionRow]]
_SIGNED_OUT: Final = b"event: signed-out\ndata: {}\n\n"
_PROJECT_GONE: Final = b"event: project-gone\ndata: {}\n\n"


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The limits of the streams of a process. Times are in seconds."""

    process: int = 100
    """The maximum number of streams, because each reads the store about once a second."""
    developer: int = 5
    """The maximum number of streams per developer. A page closes its stream while it is hidden."""
    look_every: float = 1.0
    """The time between two reads of the store."""
    comment_every: float = 15.0
    """The time without a message until a comment is sent, so that proxies do not drop the connection."""
    lifetime: float = 600.0
    """The time until a stream ends. The browser then reconnects automatically, possibly to another node."""
    farewell: float = 1.0
    """The time that a client has to receive the end of a stream."""


@dataclass(slots=True)
class LiveSessions:
    """The streams of this process."""

    access: Access
    pages: PageRenderer
    session_reader: SessionReader
    clock: Clock
    limits: StreamLimits = StreamLimits()
    _streams: "dict[asyncio.Task[None], str]" = field(default_factory=dict, init=False)
    """The writing task of each stream, with its developer's id."""
    _closed: bool = field(default=False, init=False)

    @property
    def count(self) -> int:
        """The number of streams."""
        return len(self._streams)

    def routes(self) -> list[Route]:
        """Return the route of the stream."""
        endpoint = self.access.signed_in(self._open, by_itself=True, across_projects=True)
        return [Route("/console/sessions/live", endpoint)]

    async def _open(self, request: Request, visitor: Visitor) -> Response:
        filters = SessionFilters.from_query(request.query_params)
        # Read once before the stream, so that an error gets a status.
        await filters.list_sessions(self.session_reader, visitor.developer)
        developer_id = visitor.developer.id
        of_one = sum(each == developer_id for each in self._streams.values())
        if self._closed or self.count >= self.limits.process or of_one >= self.limits.developer:
            return PlainTextResponse(_TOO_MANY, 503, {"retry-after": "30"})
        return _Stream(self._messages(request, visitor, filters), self._streams, developer_id, self.limits)

    def close(self) -> None:
        """End all streams and refuse new ones, because the service is stopping."""
        self._closed = True
        for task in self._streams:
            task.cancel()

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Wait for `stopping`, then close. The server waits for open requests, and streams do not end by themselves."""
        try:
            await stopping.wait()
        finally:
            self.close()

    async def _messages(self, request: Request, visitor: Visitor, filters: SessionFilters) -> AsyncGenerator[bytes]:
        """Yield the messages of a stream: the rows whenever they have changed, and comments in between.

        It ends when the browser is signed out or the project is deleted. Store failures are ignored.
        """
        loop, limits = asyncio.get_running_loop(), self.limits
        version = request.headers.get("last-event-id", "")
        shown: _Seen | None = None
        sent_at = loop.time()
        yield b"retry: 2000\n\n"
        while True:
            begun, took = loop.time(), 0.0
            with contextlib.suppress(StoreUnavailable):
                seen = await self._look(request, visitor, filters)
                took = loop.time() - begun
                if isinstance(seen, bytes):
                    yield seen
                    return
                # Rendered only on a change: rendering takes longer than reading.
                if seen != shown:
                    # Again, because the browser may have been signed out before the change was read.
                    if await self.access.visitor(request, by_itself=True) is None:
                        yield _SIGNED_OUT
                        return
                    shown = seen
                    rows = render_rows(self.pages, *seen, filters)
                    if rows.version != version:
                        version, sent_at = rows.version, begun
                        # JSON keeps the data on one line: a line break in a name would begin another field.
                        data = json.dumps({"rows": rows.html, "older": rows.older})
                        yield f"id: {version}\nevent: rows\ndata: {data}\n\n".encode()
            if begun - sent_at >= limits.comment_every:
                sent_at = begun
                yield b":\n\n"
            # With many streams or a slow store, read less often.
            pause = min(limits.comment_every, took * self.count / _SHARE)
            await asyncio.sleep(max(limits.look_every, pause))

    async def _look(self, request: Request, visitor: Visitor, filters: SessionFilters) -> _Seen | bytes:
        """Return the current page, or the last message of a stream that no longer has access to the page."""
        if await self.access.visitor(request, by_itself=True) is None:
            return _SIGNED_OUT
        try:
            page = await filters.list_sessions(self.session_reader, visitor.developer)
        except ProjectNotFound:
            return _PROJECT_GONE
        return page, session_rows(page, self.clock())


class _Stream(Response):
    """A response that ends after its last message or its lifetime, or when the client or the service closes it.

    A separate task writes the messages and waits while the client is not reading, so nothing accumulates in memory.
    """

    def __init__(
        self,
        messages: AsyncGenerator[bytes],
        streams: "dict[asyncio.Task[None], str]",
        developer_id: str,
        limits: StreamLimits,
    ) -> None:
        super().__init__(headers={"cache-control": "no-store"}, media_type="text/event-stream")
        del self.headers["content-length"]
        # nginx would hold back the messages until its buffer is full.
        self.headers["x-accel-buffering"] = "no"
        self._messages = messages
        self._streams = streams
        self._developer_id = developer_id
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b""})
            return
        writing = asyncio.create_task(self._write(send))
        gone = asyncio.create_task(until_gone(receive))
        self._streams[writing] = self._developer_id
        writing.add_done_callback(self._streams.pop)
        try:
            await asyncio.wait([writing, gone], timeout=self._limits.lifetime, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_gone = gone.done()
            writing.cancel()
            gone.cancel()
            results = await asyncio.gather(writing, gone, return_exceptions=True)
        if not is_gone:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.farewell):
                    await send({"type": "http.response.body", "body": b""})
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with contextlib.aclosing(self._messages) as messages:
            async for message in messages:
                await send({"type": "http.response.body", "body": message, "more_body": True})
