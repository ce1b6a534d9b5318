"""The HTTP server of a process, and the checks of its address and certificate before the start."""

import asyncio
import contextlib
import errno
import resource
import socket
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.embed import Server
from starlette.types import ASGIApp

from taproof.config.logging import GRANIAN_LOGGING
from taproof.config.settings import Settings
from taproof.core.errors import TaproofError
from taproof.http.https_only import HttpsOnly

CONNECTIONS: Final = 16_384
"""Maximum number of connections that one process serves at a time; others wait to be accepted.

It is more than the limit of waiting calls (`service/sessions/wait.py`), so that other calls are still answered."""
SEND_BUFFER: Final = 64 * 1024
"""Bytes of a response that the kernel buffers for one connection."""
HEAD_LIMIT: Final = 16 * 1024
"""Maximum size of a request's address and headers, in bytes. Granian answers 431 for a larger head. Parsing 400 KiB,
the default limit, blocks the event loop for tens of milliseconds before the sender is known."""


class AddressInUse(TaproofError, code="address_in_use"):
    """The address to listen on is in use, does not belong to this machine, or needs a privilege."""


_ADVICE: Final = {
    errno.EADDRINUSE: "Stop the program that uses this port, or choose another port with --port (TAPROOF_PORT).",
    errno.EACCES: "Choose port 1024 or higher with --port (TAPROOF_PORT), or grant the service CAP_NET_BIND_SERVICE, "
    "as deploy/systemd/tls.conf does.",
    errno.EADDRNOTAVAIL: "Set --host (TAPROOF_HOST) to an address of this machine, or to 0.0.0.0 (IPv4) or :: (IPv4 "
    "and IPv6) for every address.",
    errno.EAFNOSUPPORT: "This machine has no IPv6. Set --host (TAPROOF_HOST) to 0.0.0.0 or another IPv4 address.",
}
"""The advice for each error of `bind`."""


class CertificateUnusable(TaproofError, code="certificate_unusable"):
    """HTTPS cannot be served with this certificate and key."""


class ServerStopped(TaproofError, code="server_stopped"):
    """The HTTP server stopped unexpectedly."""

    sentence = "The HTTP server stopped unexpectedly. See the log for the reason."


def bind_socket(host: str, port: int, *, shared: bool) -> socket.socket:
    """Return a socket that is bound to an address; `shared` lets several sockets use it. Raises OSError."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def raise_file_limit() -> None:
    """Raise the limit of file descriptors to the maximum: each connection needs one, and the default is often 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def check_listening(settings: Settings) -> None:
    """Check that the process can listen on this address and serve HTTPS, before anything is opened."""
    try:
        # The socket is not shared. A shared one would succeed although another program uses the port.
        bind_socket(settings.host, settings.port, shared=False).close()
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, _ADVICE[errno.EADDRINUSE])
        raise AddressInUse(f"Cannot listen on {settings.listens_on}: {error.strerror}. {advice}") from error
    if settings.tls_cert is None:
        return
    try:
        # The server's own message would not name the option.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise CertificateUnusable(
            f"HTTPS cannot be served with this certificate and key ({error}). Check that --tls-cert (TAPROOF_TLS_CERT) "
            "is the certificate chain and --tls-key (TAPROOF_TLS_KEY) its unencrypted private key, both in PEM form."
        ) from error


class _Server(Server):
    """Granian's server on our own socket. Accepted connections inherit the options of the socket.

    Otherwise, a client that requests much and reads little fills megabytes of kernel memory per connection. Once the
    memory for TCP is used up, all connections of the machine become slow.
    """

    def _init_shared_socket(self) -> None:
        listener = bind_socket(self.bind_addr, self.bind_port, shared=True)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        # These are the arguments with which the holder is pickled. It listens on the socket and closes it at the end.
        holder: Any = SocketHolder
        self._shd = holder(listener.detach(), False, self.backlog)  # noqa: FBT003


def create_server(settings: Settings, app: ASGIApp) -> Server:
    """Return the HTTP server of an application. Processes that listen on one port share its connections."""
    return _Server(
        HttpsOnly(app, settings.trusted_proxy),
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,  # With HTTP/2, Granian waits forever for a first byte: maintainers/decisions/0001.
        websockets=False,
        backlog=1024,
        backpressure=CONNECTIONS,
        # Granian's only limit for connections also covers idle ones: it runs from the end of a response, or from the
        # start of a connection, to the end of the next head.
        http1_settings=HTTP1Settings(header_read_timeout=settings.keep_alive * 1_000, max_buffer_size=HEAD_LIMIT),
        log_level=LogLevels.error,  # It warns at each start that embedding is experimental: maintainers/decisions/0001.
        log_dictconfig=GRANIAN_LOGGING,
        ssl_cert=settings.tls_cert,
        ssl_key=settings.tls_key,
        ssl_protocol_min=SSLProtocols.tls12,
    )


async def until_listening(settings: Settings, serving: asyncio.Task[None]) -> None:
    """Wait until the port accepts connections; raises ServerStopped, or the server's error, if it does not start."""
    while not serving.done():
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(urlsplit(settings.own_address).hostname, settings.port)
            writer.close()
            return
        await asyncio.sleep(0.01)
    await serving
    raise ServerStopped
