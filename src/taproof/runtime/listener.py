"""The HTTP server of a process, and the checks of its address and certificate before the start."""

import asyncio
import contextlib
import resource
import socket
import ssl
from typing import Any, Final

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
"""Connections that one process serves at a time; others wait to be accepted.

It is more than the limit of waiting calls (`service/sessions/wait.py`), so that other calls are still answered."""


SEND_BUFFER: Final = 64 * 1024
"""Bytes of an answer that the kernel buffers for one connection."""


HEAD_LIMIT: Final = 16 * 1024
"""Most bytes of a request's address and headers; Granian answers 431 to more. Parsing its default of 400 KiB blocks the
event loop for tens of milliseconds, before the sender is known."""


class AddressInUse(TaproofError):
    """The address to listen on is in use, or does not belong to this machine."""

    code = "address_in_use"


class CertificateUnusable(TaproofError):
    """HTTPS cannot be served with this certificate and key."""

    code = "certificate_unusable"


class ServerStopped(TaproofError):
    """The HTTP server ended without being told to."""

    code = "server_stopped"
    sentence = "The HTTP server stopped by itself. The log says why."


def own_address(settings: Settings) -> str:
    """Return the address of this process for calls from this machine."""
    host = _own_host(settings)
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _own_host(settings: Settings) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 — compared only.


def raise_file_limit() -> None:
    """Raise the limit of file descriptors to the maximum: each connection needs one, and the default is often 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def check_listening(settings: Settings) -> None:
    """Check that the process can listen on this address and serve HTTPS, before anything is opened.

    Raises:
        AddressInUse: the port is in use.
        CertificateUnusable: the certificate and its key do not fit.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Without SO_REUSEPORT, which would allow sharing a port in use, as the server itself does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise AddressInUse(
                f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. Stop what listens there, or "
                "choose another port with --port (TAPROOF_PORT)."
            ) from error
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

    Otherwise a client that requests much and reads little fills megabytes of kernel memory per connection. Once the
    memory for TCP is used up, all connections of the machine become slow.
    """

    def _init_shared_socket(self) -> None:
        listener = socket.socket(socket.AF_INET6 if ":" in self.bind_addr else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        listener.bind((self.bind_addr, self.bind_port))
        # These are the arguments that it is pickled with. It listens on the socket and closes it in the end.
        holder: Any = SocketHolder
        self._shd = holder(listener.detach(), False, self.backlog)  # noqa: FBT003


def create_server(settings: Settings, app: ASGIApp) -> Server:
    """Return the HTTP server of an application. Processes that listen on one port share its connections."""
    return _Server(
        HttpsOnly(app, settings.trusted_proxy),
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,  # If it offers HTTP/2, Granian waits without limit for a first byte: docs/decisions/0001.
        websockets=False,
        backlog=1024,
        backpressure=CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=10_000, max_buffer_size=HEAD_LIMIT),
        log_level=LogLevels.error,  # It warns at every start that embedding is experimental: docs/decisions/0001.
        log_dictconfig=GRANIAN_LOGGING,
        ssl_cert=settings.tls_cert,
        ssl_key=settings.tls_key,
        ssl_protocol_min=SSLProtocols.tls12,
    )


async def until_listening(settings: Settings, serving: asyncio.Task[None]) -> None:
    """Wait until the port accepts connections; raises ServerStopped, or the server's error, if it does not start."""
    while not serving.done():
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(_own_host(settings), settings.port)
            writer.close()
            return
        await asyncio.sleep(0.01)
    await serving
    raise ServerStopped
