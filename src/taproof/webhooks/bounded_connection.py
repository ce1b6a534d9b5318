"""A connection to a receiver that can be hostile: limits the bytes of a response and closes without waiting.

aiohttp limits the length of lines and headers, and the number of headers. It does not limit interim (1xx) responses or
data that arrives without a request, and it parses all of them on the event loop.
"""

import asyncio
import functools
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

ANSWER_BUDGET: Final = 128 * 1024
"""Bytes that a connection accepts between one request and the next. This is enough for the 16 KiB of body that are
read, even in chunks of one byte."""


class BoundedConnection(ResponseHandler):
    """Accepts `ANSWER_BUDGET` bytes for each request, and aborts at the first byte beyond that."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._budget = 0

    def set_response_params(self, **params: Any) -> None:
        """Reset the budget for the response to a new request."""
        self._budget = ANSWER_BUDGET
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Accept data up to the budget. A single call can contain thousands of responses."""
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
                # Set the error only after the body reader has received the data so far.
                cut = aiohttp.ClientPayloadError("The answer is too long.")
                self._loop.call_soon(self._payload.set_exception, cut)
            self.transport.abort()

    def close(self) -> None:
        """Abort the connection: a TLS peer that ignores the close message would keep it open for half a minute."""
        self.abort()


def bound_connections(connector: aiohttp.TCPConnector) -> None:
    """Make every connection of this connector a `BoundedConnection`."""
    # aiohttp has no public option for this; a test checks this code against the locked aiohttp release.
    factory = functools.partial(BoundedConnection, loop=asyncio.get_running_loop())
    connector._factory = factory  # type: ignore[assignment]  # noqa: SLF001
