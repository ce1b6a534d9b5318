"""urllib3's connections, with a limit for the time that a whole answer takes.

The limit of a socket is for each read: a status line, header, chunk or trailer that drips in, and interim answers
without end, would never meet it. Only the first `Client` imports this, and so urllib3.
"""

import http.client
import io
import socket
import time
from typing import TYPE_CHECKING, Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _TimedReader(io.RawIOBase):
    """Reads from a socket for as long in all as the socket's timeout was when it was made, in seconds."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._unbuffered = sock.makefile("rb", buffering=0)
        self._deadline = time.monotonic() + (sock.gettimeout() or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        """Read as `io.RawIOBase` does; raises TimeoutError at the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._unbuffered.readinto(buffer)

    def close(self) -> None:
        # The socket is closed when the last of its files is.
        self._unbuffered.close()
        super().close()


class _TimedAnswer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock))


# urllib3 gives the socket, before each answer, the seconds that the request has left (`Timeout(total=…)`).


class _Connection(HTTPConnection):
    response_class = _TimedAnswer


class _TlsConnection(HTTPSConnection):
    response_class = _TimedAnswer


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class TimedPools(urllib3.PoolManager):
    """A `PoolManager` whose requests end, with their answers' bodies, within the `total` of their `Timeout`.

    Looking a name up is not counted, for nothing can end that; and of several addresses each has the time to connect.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
