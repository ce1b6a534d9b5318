"""A connection to a receiver that may be hostile: what is read for an answer is bounded, and its end waits for nobody.

aiohttp bounds a line, a header and the number of headers, but neither how many interim (1xx) answers come before the
answer, nor what arrives while nothing was asked. Each is parsed on the event loop as fast as it comes.
"""

import asyncio
import functools
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

ANSWER_BUDGET: Final = 128 * 1024
"""Bytes that a connection takes from one request to the next. The 16 KiB that are read of a body fit into it also when
they come byte by byte, in chunks of one."""


class BoundedConnection(ResponseHandler):
    """Takes `ANSWER_BUDGET` bytes for each request, and is cut off at the first byte beyond."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._budget = 0

    def set_response_params(self, **params: Any) -> None:
        """Begin to read the answer of a request."""
        self._budget = ANSWER_BUDGET
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Take what has come, as far as the budget goes: at once may come what holds thousands of answers."""
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
                # Whoever waits for the body is told after having had its turn with what has come of it.
                cut = aiohttp.ClientPayloadError("The answer is too long.")
                self._loop.call_soon(self._payload.set_exception, cut)
            self.transport.abort()

    def close(self) -> None:
        """End the connection. Over TLS a peer that does not answer the farewell would keep it for half a minute."""
        self.abort()


def bound_connections(connector: aiohttp.TCPConnector) -> None:
    """Let every connection of this connector be a `BoundedConnection`."""
    # There is no other way to choose: a test holds this to the release of aiohttp that is locked.
    factory = functools.partial(BoundedConnection, loop=asyncio.get_running_loop())
    connector._factory = factory  # type: ignore[assignment]  # noqa: SLF001
