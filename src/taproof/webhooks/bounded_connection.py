"""A connection to a receiver that may be hostile: it limits the bytes of an answer and closes without waiting.

aiohttp limits lines, headers and the number of headers. It does not limit interim (1xx) answers or data that arrives
without a request. It parses all of that on the event loop.
"""

import asyncio
import functools
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

ANSWER_BUDGET: Final = 128 * 1024
"""Bytes that a connection accepts from one request to the next. The 16 KiB that are read of a body fit into it even in
chunks of one byte."""


class BoundedConnection(ResponseHandler):
    """Accepts `ANSWER_BUDGET` bytes for each request, and is aborted at the first byte beyond that."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._budget = 0

    def set_response_params(self, **params: Any) -> None:
        """Reset the budget for the answer of a new request."""
        self._budget = ANSWER_BUDGET
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Accept data up to the budget: one call may bring thousands of answers."""
        excess = len(data) - self._budget
        self._budget -= len(data)
        if excess <= 0:
            super().data_received(data)
            return
        if excess < len(data):
            super().data_received(data[:-excess])
        if self.transport is not None:
            self.set_exception(HttpProcessingError(message="The answer is too long."))
            if self._payload is not None:
                # Set the error after the reader of the body has received the data so far.
                cut = aiohttp.ClientPayloadError("The answer is too long.")
                self._loop.call_soon(self._payload.set_exception, cut)
            self.transport.abort()

    def close(self) -> None:
        """Abort the connection. A TLS peer that ignores the closing message would keep it open for half a minute."""
        self.abort()


def bound_connections(connector: aiohttp.TCPConnector) -> None:
    """Make every connection of this connector a `BoundedConnection`."""
    # aiohttp has no public option for this; a test checks it against the locked release of aiohttp.
    factory = functools.partial(BoundedConnection, loop=asyncio.get_running_loop())
    connector._factory = factory  # type: ignore[assignment]  # noqa: SLF001
