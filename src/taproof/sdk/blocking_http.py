"""Sends requests with urllib3, with a time limit for the whole response.

A socket's timeout applies to each read. A status line, header, chunk or trailer that arrives byte by byte would never
exceed it, nor would endless interim responses. Only the first `Client` imports this module, and with it urllib3.
"""

import http.client
import io
import os
import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
)

from taproof.sdk import http_request
from taproof.sdk.environment_proxy import find_proxy
from taproof.sdk.exchange import CallResult, HttpResponse, Request, Service

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK: Final = 65_536


class _TimedReader(io.RawIOBase):
    """Reads from a socket. The socket's timeout at the start, in seconds, limits the total time of all reads."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._unbuffered = sock.makefile("rb", buffering=0)
        self._deadline = time.monotonic() + (sock.gettimeout() or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        """Read like `io.RawIOBase`; raise TimeoutError at the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._unbuffered.readinto(buffer)

    def close(self) -> None:
        # The socket closes when the last file object made from it closes.
        self._unbuffered.close()
        super().close()


class _TimedAnswer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock))


# Before each response, urllib3 sets the socket's timeout to the time that the request has left (`Timeout(total=…)`).


class _Connection(HTTPConnection):
    response_class = _TimedAnswer


class _TlsConnection(HTTPSConnection):
    response_class = _TimedAnswer


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class BlockingHttp:
    """The connections to one service. Any number of threads can share them.

    A request's time limit includes reading the response's body. It does not include the name lookup, because nothing
    can interrupt that. Each address of a host has the full time to connect.

    `ca_file` is a file of PEM certificates to trust instead of the machine's. `user_agent` replaces the SDK's default.

    Raises:
        UnusableProxy: the environment names a proxy for the service that is not an HTTP proxy.
    """

    def __init__(self, service: Service, *, ca_file: str | None = None, user_agent: str = "") -> None:
        self._address = service.address
        self._headers = http_request.fixed_headers() | ({"User-Agent": user_agent} if user_agent else {})
        options: dict[str, Any] = {
            "maxsize": http_request.IDLE_CONNECTIONS,
            "ssl_context": http_request.tls_context(service, ca_file),
        }
        self._proxy = proxy = find_proxy(service.address, os.environ)
        if proxy is None:
            self._pool = urllib3.PoolManager(**options)
        else:
            login = f"{proxy.username}:{proxy.password}" if proxy.username or proxy.password else None
            headers = urllib3.make_headers(proxy_basic_auth=login)
            self._pool = urllib3.ProxyManager(proxy.address, proxy_headers=headers, **options)
        self._pool.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def send(self, request: Request, receive: Callable[[bytes], object] | None = None) -> CallResult:
        """Send one request, without retries.

        `receive` is given the body of a successful response in pieces, however long it is.
        """
        try:
            response = self._pool.request(
                request.method,
                self._address + request.path,
                body=request.content(),
                headers=self._headers | request.headers,
                timeout=urllib3.Timeout(total=request.seconds, connect=http_request.CONNECT),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            try:
                if receive is None or response.status != HTTPStatus.OK:
                    body = _read_body(response, request.answer_limit)
                else:
                    body = b""
                    while chunk := response.read1(_CHUNK):
                        receive(chunk)
            except BaseException:
                # More bytes of this response may still arrive. The next request must not read them as its own response.
                response.close()
                raise
            headers = {name.lower(): value for name, value in response.headers.items()}
            if body is None:
                response.close()
            response.release_conn()
            return HttpResponse(response.status, headers, body)
        except ReadTimeoutError:
            return http_request.TOO_SLOW
        except (NewConnectionError, ConnectTimeoutError, ProxyError):
            return http_request.NO_CONNECTION if self._proxy is None else http_request.proxy_failed(self._proxy)
        except LocationParseError:
            return http_request.NO_HOST
        except HTTPError as error:
            is_tls = http_request.is_tls_failure(error)
            return http_request.WRONG_CERTIFICATE if is_tls else http_request.CONNECTION_LOST


def _read_body(response: urllib3.BaseHTTPResponse, limit: int) -> bytes | None:
    """Return the body, or None if it is longer than `limit` bytes."""
    body = bytearray()
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)
