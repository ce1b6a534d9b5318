"""Post to webhook URLs, which developers choose, without giving them access to the operator's network.

Each connection's address is checked right before its socket is created, so a changed or forged name lookup cannot
bypass the check. The resolver's addresses are also checked, so that names with public and internal addresses work.
"""

import asyncio
import dataclasses
import itertools
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import structlog
from aiohappyeyeballs import AddrInfoType, addr_to_addr_infos, pop_addr_infos_interleave, start_connection
from aiohttp.abc import AbstractResolver
from aiohttp.resolver import AsyncResolver

from taproof.contract.delivery import AttemptError
from taproof.core.address_rules import AddressRules
from taproof.core.retry_after import RETRY_AFTER_STATUSES
from taproof.core.webhook_url import UrlParts, is_ip_address, is_loopback, split_url
from taproof.sdk.http_request import client_context
from taproof.service.webhooks import ANSWER_KEPT, SEND_TIMEOUT, SignedRequest, WebhookResponse
from taproof.webhooks.connection import ReceiverAnswer, ReceiverConnection, Refused

LOOKUP_TIMEOUT: Final = 6.0
"""The time limit of a name lookup in seconds. It is less than `SEND_TIMEOUT`, so that a slow lookup is reported as
such."""
_ADDRESSES_EACH: Final = 4
"""The number of addresses that are tried per name and IP version. With no limit, a name could make this a scanner."""
_NEXT_ADDRESS: Final = 0.25
"""Seconds after which the next address is tried as well (RFC 8305, 5)."""
_KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept open. Node servers close it after five, which could lose a request."""

_log = structlog.get_logger(__name__)


class _Destinations:
    """The allowed destinations of connections."""

    def __init__(
        self,
        rules: AddressRules,
        ports: Container[int],
        resolver: AbstractResolver,
        lookup_timeout: float,
        *,
        any_own_port: bool,
    ) -> None:
        self._rules = rules
        self._ports = ports
        self._resolver = resolver
        self._lookup_timeout = lookup_timeout
        self._any_own_port = any_own_port

    def allows_port(self, host: str, port: int) -> bool:
        return port in self._ports or (self._any_own_port and is_loopback(host))

    async def resolve(self, host: str, port: int) -> list[AddrInfoType]:
        """Return the allowed addresses of a name, up to the limit, or the address that `host` is."""
        if is_ip_address(host):
            return addr_to_addr_infos((host, port)) or []
        try:
            async with asyncio.timeout(self._lookup_timeout):
                # Several trailing dots count as one, which marks a fully qualified name.
                name = f"{host.rstrip('.')}." if host.endswith("..") else host
                found = [each["host"] for each in await self._resolver.resolve(name, port, socket.AF_UNSPEC)]
        except OSError:
            raise Refused("dns_failed") from None
        allowed = [each for each in found if self._rules.problem(each) is None]
        if not allowed:
            raise Refused("address_not_allowed" if found else "dns_failed")
        seen: Counter[bool] = Counter()
        kept: list[AddrInfoType] = []
        for address in allowed:
            version = ":" in address
            seen[version] += 1
            if seen[version] <= _ADDRESSES_EACH:
                kept += addr_to_addr_infos((address, port)) or []
        return kept

    def open_socket(self, info: AddrInfoType) -> socket.socket:
        """Return a socket for exactly this destination. Every connection is opened by this method."""
        family, kind, protocol, _, sockaddr = info
        address, port = str(sockaddr[0]), int(sockaddr[1])
        if self._rules.problem(address) is not None:
            raise Refused("address_not_allowed")
        if not self.allows_port(address, port):
            raise Refused("port_not_allowed")
        return socket.socket(family, kind, protocol)


class _IdleConnections:
    """Open connections that carry no request, by the URL that they were used for.

    URLs share no connection, so the answers of one developer's receiver cannot be taken for those of another's.
    """

    def __init__(self) -> None:
        self._by_url: dict[str, list[ReceiverConnection]] = {}

    def take(self, url: str) -> ReceiverConnection | None:
        """Remove and return the connection that was used last for a URL; None if there is none."""
        connection = next(reversed(self._by_url.get(url, ())), None)
        if connection is not None and connection.on_end is not None:
            connection.on_end()
        return connection

    def keep(self, url: str, connection: ReceiverConnection) -> None:
        """Keep a connection for the next request to a URL, for a few seconds."""
        expiry = asyncio.get_running_loop().call_later(_KEEP_ALIVE, connection.abort)

        def forget() -> None:
            expiry.cancel()
            connection.on_end = None
            self._by_url[url].remove(connection)
            if not self._by_url[url]:
                del self._by_url[url]

        self._by_url.setdefault(url, []).append(connection)
        connection.on_end = forget

    def close(self) -> None:
        """Close every connection."""
        for connection in itertools.chain(*self._by_url.values()):
            connection.abort()


class WebhookClient:
    """Posts events; created by `open_webhook_client`."""

    def __init__(
        self,
        destinations: _Destinations,
        context: ssl.SSLContext,
        idle: _IdleConnections,
        timeout: float,
        *,
        allow_http: bool,
    ) -> None:
        self._destinations = destinations
        self._context = context
        self._timeout = timeout
        self._allow_http = allow_http
        self._idle = idle

    async def post(self, request: SignedRequest) -> WebhookResponse:
        """Post once, without following redirects, and return the result. Raises only CancelledError."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._exchange(request)
        except Exception as failure:  # noqa: BLE001 — errors that a receiver causes must end only this attempt.
            response = WebhookResponse(0, error=_code(failure))
        else:
            retry_after = answer.retry_after if answer.status in RETRY_AFTER_STATUSES else ()
            response = WebhookResponse(0, answer.status, None, answer.body[:ANSWER_KEPT], retry_after)
        return dataclasses.replace(response, duration=round((loop.time() - begun) * 1000))

    async def _exchange(self, request: SignedRequest) -> ReceiverAnswer:
        try:
            parts = split_url(request.url)
        except ValueError:
            raise Refused("dns_failed") from None
        if not self._destinations.allows_port(parts.host, parts.port):
            raise Refused("port_not_allowed")
        if parts.scheme != "https" and not self._allow_http:
            raise Refused("tls_failed")
        data = _request_bytes(parts, request)
        if (kept := self._idle.take(request.url)) is not None:
            # The receiver may have closed the connection just now. Events are delivered at least once, so the request
            # is sent again.
            with suppress(ConnectionResetError):
                return await self._ask(kept, request.url, data)
        return await self._ask(await self._connect(parts), request.url, data)

    async def _ask(self, connection: ReceiverConnection, url: str, data: bytes) -> ReceiverAnswer:
        answer = await connection.ask(data)
        if connection.reusable:
            self._idle.keep(url, connection)
        return answer

    async def _connect(self, parts: UrlParts) -> ReceiverConnection:
        """Return a connection to one of the host's addresses. If TLS fails at one of them, others are tried."""
        addresses = await self._destinations.resolve(parts.host, parts.port)
        tls: dict[str, Any] = {}
        if parts.scheme == "https":
            # Certificates contain names without a trailing dot.
            tls = {"ssl": self._context, "server_hostname": parts.host.rstrip(".")}
        while True:
            found = await start_connection(
                addresses, happy_eyeballs_delay=_NEXT_ADDRESS, socket_factory=self._destinations.open_socket
            )
            try:
                _, connection = await asyncio.get_running_loop().create_connection(
                    ReceiverConnection, sock=found, **tls
                )
            except OSError:
                pop_addr_infos_interleave(addresses)
                if not addresses:
                    raise
            else:
                return connection


@asynccontextmanager
async def open_webhook_client(
    rules: AddressRules,
    ports: Container[int],
    *,
    allow_http: bool = False,
    resolver: AbstractResolver | None = None,
    timeout: float = SEND_TIMEOUT,  # noqa: ASYNC109 — the timeout of each post, not of this function.
    lookup_timeout: float = LOOKUP_TIMEOUT,
) -> AsyncIterator[WebhookClient]:
    """Yield a client that reuses connections. It never uses a proxy.

    Args:
        rules: the allowed addresses.
        ports: the allowed ports.
        allow_http: also allow http://, and any port on this machine's loopback addresses, as the sandbox does.
        resolver: used instead of the system's name servers; the caller must close it.
        timeout: seconds for one whole post: resolving, connecting, sending and reading.
        lookup_timeout: seconds for the name lookup.
    """
    # Loading the system's certificates takes 50 ms.
    context = await asyncio.to_thread(client_context)
    context.set_alpn_protocols(["http/1.1"])
    # c-ares needs only one thread for all lookups, even slow ones.
    lookup = resolver or AsyncResolver(timeout=1.5, tries=2)
    destinations = _Destinations(rules, ports, lookup, lookup_timeout, any_own_port=allow_http)
    idle = _IdleConnections()
    try:
        yield WebhookClient(destinations, context, idle, timeout, allow_http=allow_http)
    finally:
        idle.close()
        if resolver is None:
            await lookup.close()


def _request_bytes(parts: UrlParts, request: SignedRequest) -> bytes:
    lines = [
        f"POST {parts.target} HTTP/1.1",
        f"Host: {parts.authority}",
        *(f"{name}: {value}" for name, value in request.headers.items()),
        f"Content-Length: {len(request.body)}",
        "\r\n",
    ]
    return "\r\n".join(lines).encode(errors="surrogateescape") + request.body


def _code(failure: Exception) -> AttemptError:
    """Return the error code for a failed post. An unexpected failure is logged without its message."""
    if isinstance(failure, Refused):
        return failure.code
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, ssl.SSLError | UnicodeError):
        # Python refuses server names that it cannot encode.
        return "tls_failed"
    if isinstance(failure, ConnectionRefusedError):
        return "connection_refused"
    if isinstance(failure, ConnectionError | EOFError):
        return "connection_lost"
    if not isinstance(failure, OSError):
        _log.error("webhooks.bug", error=type(failure).__name__)
    return "connection_failed"
