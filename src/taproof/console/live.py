"""The list of sessions as it changes, as server-sent events (WHATWG HTML, Server-sent events).

A stream looks at the first page of the list about once a second and sends it when it has changed: so there is nothing
to be lost between processes, and a client that was away sees what is. Whoever is not served (too many streams, no
place, signed out) has the page without updates, and its "Reload" link.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

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
from taproof.service.sessions.list import SessionPage, Sessions

PROCESS_LIMIT: Final = 100
"""Streams of a process at most: each looks at the store about once a second."""
DEVELOPER_LIMIT: Final = 5
"""Of these, so many of one developer. A page closes its stream while nobody sees it."""
LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the store."""
COMMENT_EVERY: Final = 15.0
"""Seconds without news until a comment is sent, so that proxies between do not take the connection for dead."""
LIFETIME: Final = 600.0
"""Seconds until a stream ends; the browser then makes another by itself, perhaps at another node."""
_FAREWELL: Final = 1.0
"""Seconds that a client has to take the end of a stream."""
_TOO_MANY: Final = "Too many pages are kept up to date just now. Reload the page instead, or try again in a minute."
_SHARE: Final = 0.2
"""Of this process's time, at most so much is spent on looks."""
_SIGNED_OUT: Final = b"event: signed-out\ndata: {}\n\n"
_PROJECT_GONE: Final = b"event: project-gone\ndata: {}\n\n"


class LiveSessions:
    """The streams of this process; `count` is how many there are."""

    def __init__(self, access: Access, pages: PageRenderer, sessions: Sessions, clock: Clock) -> None:
        self._access = access
        self._pages = pages
        self._sessions = sessions
        self._clock = clock
        self._streams: dict[asyncio.Task[None], str] = {}
        """The task that writes each stream, and whose it is."""
        self._closed = False

    @property
    def count(self) -> int:
        """How many streams there are."""
        return len(self._streams)

    def routes(self) -> list[Route]:
        """Return the stream with its address."""
        return [
            Route("/console/sessions/live", self._access.signed_in(self.open, by_itself=True, across_projects=True))
        ]

    async def open(self, request: Request, visitor: Visitor) -> Response:
        """Answer with a stream, or refuse it.

        Raises:
            InvalidRequest: filters that the page would not have taken.
            ProjectNotFound: none of this developer's.
        """
        filters = SessionFilters.from_query(request.query_params)
        # Once ahead, so that what is wrong is said with a status.
        await filters.list_sessions(self._sessions, visitor.developer)
        return _Stream(self, request, visitor, filters)

    def close(self) -> None:
        """End all streams, and refuse further ones: the service stops."""
        self._closed = True
        for task in self._streams:
            task.cancel()

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Wait for `stopping`, then close: a server that ends its requests first would wait for the streams."""
        try:
            await stopping.wait()
        finally:
            self.close()

    def has_place(self, developer_id: str) -> bool:
        """Tell whether this developer may have another stream."""
        of_one = sum(each == developer_id for each in self._streams.values())
        return not self._closed and self.count < PROCESS_LIMIT and of_one < DEVELOPER_LIMIT

    @contextmanager
    def place(self, task: asyncio.Task[None], developer_id: str) -> Iterator[None]:
        """Count `task` as a stream of this developer's as long as the `with` lasts."""
        self._streams[task] = developer_id
        try:
            yield
        finally:
            del self._streams[task]

    async def messages(self, request: Request, visitor: Visitor, filters: SessionFilters) -> AsyncGenerator[bytes]:
        """Yield what is sent: the rows whenever they have changed, and comments in between.

        It ends when the browser is signed out or the project is gone. Failures of the store are passed over.
        """
        loop = asyncio.get_running_loop()
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
                # Rendered only then: it takes longer than to look.
                if seen != shown:
                    shown = seen
                    rows = render_rows(self._pages, seen.rows, seen.page, filters)
                    if rows.version != version:
                        version, sent_at = rows.version, begun
                        # As JSON it is one line, whatever a name holds: a line break would begin another field.
                        data = json.dumps({"rows": rows.html, "older": rows.older})
                        yield f"id: {version}\nevent: rows\ndata: {data}\n\n".encode()
            if begun - sent_at >= COMMENT_EVERY:
                sent_at = begun
                yield b":\n\n"
            # Many streams, or a slow store, are looked at less often.
            await asyncio.sleep(max(LOOK_EVERY, min(COMMENT_EVERY, took * self.count / _SHARE)))

    async def _look(self, request: Request, visitor: Visitor, filters: SessionFilters) -> "_Seen | bytes":
        """Return what the page shows now, or the last message of a stream that has no right to it any more."""
        if await self._access.visitor(request, by_itself=True) is None:
            return _SIGNED_OUT
        try:
            page = await filters.list_sessions(self._sessions, visitor.developer)
        except ProjectNotFound:
            return _PROJECT_GONE
        return _Seen(page, session_rows(page, self._clock()))


class _Seen(NamedTuple):
    page: SessionPage
    rows: list[SessionRow]


class _Stream(Response):
    """An answer that goes on until its messages end, the client is gone, the streams are closed or its time is over.

    The messages are written by a task of their own, which waits as long as the client does not read: nothing piles up.
    """

    def __init__(self, live: LiveSessions, request: Request, visitor: Visitor, filters: SessionFilters) -> None:
        super().__init__(headers={"cache-control": "no-store"}, media_type="text/event-stream")
        del self.headers["content-length"]
        # nginx would keep back what comes until it has a buffer full of it.
        self.headers["x-accel-buffering"] = "no"
        self._live = live
        self._request = request
        self._visitor = visitor
        self._filters = filters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        developer_id = self._visitor.developer.id
        if not self._live.has_place(developer_id):
            refusal = PlainTextResponse(_TOO_MANY, 503, {"retry-after": "30"})
            await refusal(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b""})
            return
        writing = asyncio.create_task(self._write(send))
        gone = asyncio.create_task(until_gone(receive))
        with self._live.place(writing, developer_id):
            try:
                await asyncio.wait([writing, gone], timeout=LIFETIME, return_when=asyncio.FIRST_COMPLETED)
            finally:
                is_gone = gone.done()
                writing.cancel()
                gone.cancel()
                results = await asyncio.gather(writing, gone, return_exceptions=True)
        if not is_gone:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await send({"type": "http.response.body", "body": b""})
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with contextlib.aclosing(self._live.messages(self._request, self._visitor, self._filters)) as messages:
            async for message in messages:
                await send({"type": "http.response.body", "body": message, "more_body": True})
