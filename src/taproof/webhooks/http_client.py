"""Post to webhook URLs, which developers choose, without giving them access to the operator's network.

Each connection's address is checked right before its socket is created, so a changed or forged name lookup cannot
bypass the check. The resolver also drops internal addresses, so that names with public and internal addresses work.
"""

import asyncio
import dataclasses
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import structlog
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import AsyncResolver
from yarl import URL

from taproof.core.address_rules import AddressRules
from taproof.core.attempt_errors import AttemptError
from taproof.core.retry_after import RETRY_AFTER_STATUSES
from taproof.core.webhook_url import is_loopback
from taproof.http.outbound_tls import client_context
from taproof.service.webhooks import ANSWER_KEPT, SEND_TIMEOUT, SignedRequest, WebhookResponse
from taproof.webhooks.bounded_connection import bound_connections

_ANSWER_CAP: Final = 16 * 1024
"""The number of response body bytes that are read."""
_LOOKUP: Final = 6.0
"""The time limit of a name lookup in seconds. It is less than `SEND_TIMEOUT`, so that a slow lookup is reported as
such."""
_ADDRESSES_EACH: Final = 4
"""The number of addresses that are tried per name and IP version. With no limit, a name could make this a scanner."""
_KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept open. Node servers close it after five, which could lose a request."""
_HEADERS: Final = 100
"""The maximum number of header lines in a response."""
_IDENTITY: Final = {"Accept-Encoding": "identity"}
"""Responses are not decompressed, because a few bytes could expand to gigabytes."""

_log = structlog.get_logger(__name__)


class Refused(OSError):
    """Nothing was sent. The message is the code, so that aiohttp treats equal errors for several addresses as one."""

    def __init__(self, code: AttemptError) -> None:
        super().__init__(code)
        self.code = code


class _Destinations:
    """The allowed destinations of connections."""

    def __init__(self, rules: AddressRules, ports: frozenset[int], *, any_own_port: bool) -> None:
        self._rules = rules
        self._ports = ports
        self._any_own_port = any_own_port

    def allows_address(self, address: str) -> bool:
        return self._rules.problem(address) is None

    def allows_port(self, host: str, port: int | None) -> bool:
        return port in self._ports or (self._any_own_port and is_loopback(host))

    def open_socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """Return a socket for exactly this destination. Every connection is opened by this method."""
        family, kind, protocol, _, sockaddr = info
        address, port = str(sockaddr[0]), int(sockaddr[1])
        if not self.allows_address(address):
            raise Refused("address_not_allowed")
        if not self.allows_port(address, port):
            raise Refused("port_not_allowed")
        return socket.socket(family, kind, protocol)


class _CheckedResolver(AbstractResolver):
    """Drops addresses that are not allowed, and addresses beyond the limit."""

    def __init__(self, resolver: AbstractResolver, destinations: _Destinations) -> None:
        self._resolver = resolver
        self._destinations = destinations

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            async with asyncio.timeout(_LOOKUP):
                found = await self._resolver.resolve(host, port, family)
        except TimeoutError:
            raise OSError("the lookup takes too long") from None
        if not found:
            raise OSError("no address")
        allowed = [each for each in found if self._destinations.allows_address(each["host"])]
        if not allowed:
            raise Refused("address_not_allowed")
        seen: Counter[bool] = Counter()
        kept = []
        for each in allowed:
            version = ":" in each["host"]
            seen[version] += 1
            if seen[version] <= _ADDRESSES_EACH:
                kept.append(each)
        return kept

    async def close(self) -> None:
        await self._resolver.close()


class WebhookClient:
    """Posts events; created by `open_webhook_client`."""

    def __init__(
        self, session: aiohttp.ClientSession, destinations: _Destinations, timeout: float, *, allow_http: bool
    ) -> None:
        self._session = session
        self._destinations = destinations
        self._timeout = timeout
        self._allow_http = allow_http

    async def post(self, request: SignedRequest) -> WebhookResponse:
        """Post once, without following redirects, and return the result. Raises only CancelledError."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            # aiohttp rounds its own timeout up to whole seconds.
            async with asyncio.timeout(self._timeout):
                response = await self._exchange(request)
        except Exception as failure:  # noqa: BLE001 — errors that a receiver causes must end only this attempt.
            response = WebhookResponse(0, error=_code(failure))
        return dataclasses.replace(response, duration=round((loop.time() - begun) * 1000))

    async def _exchange(self, request: SignedRequest) -> WebhookResponse:
        try:
            url = URL(request.url)
        except ValueError:
            raise Refused("dns_failed") from None
        if not self._destinations.allows_port(url.raw_host or "", url.port):
            raise Refused("port_not_allowed")
        if url.scheme != "https" and not self._allow_http:
            raise Refused("tls_failed")
        post = self._session.post(url, data=request.body, headers=request.headers, allow_redirects=False)
        async with post as response:
            body = bytearray()
            while len(body) <= _ANSWER_CAP:
                piece = await response.content.read(_ANSWER_CAP + 1 - len(body))
                if not piece:
                    break
                body += piece
            else:
                response.close()
            asks = response.status in RETRY_AFTER_STATUSES
            retry_after = tuple(response.headers.getall("Retry-After", ())) if asks else ()
            return WebhookResponse(0, response.status, None, bytes(body[:ANSWER_KEPT]), retry_after)


@asynccontextmanager
async def open_webhook_client(
    rules: AddressRules,
    ports: frozenset[int],
    *,
    allow_http: bool = False,
    resolver: AbstractResolver | None = None,
    timeout: float = SEND_TIMEOUT,  # noqa: ASYNC109 — the timeout of each post, not of this function.
) -> AsyncIterator[WebhookClient]:
    """Yield a client that reuses connections.

    Args:
        rules: the allowed addresses.
        ports: the allowed ports.
        allow_http: also allow http://, and any port on this machine's loopback addresses, as the sandbox does.
        resolver: used instead of the system's name servers; the caller must close it.
        timeout: seconds for one whole post: resolving, connecting, sending and reading.
    """
    destinations = _Destinations(rules, ports, any_own_port=allow_http)
    # Loading the system's certificates takes 50 ms.
    context = await asyncio.to_thread(client_context)
    context.set_alpn_protocols(["http/1.1"])
    # c-ares needs only one thread for all lookups, even slow ones.
    lookup = resolver or AsyncResolver(timeout=1.5, tries=2)
    try:
        connector = aiohttp.TCPConnector(
            resolver=_CheckedResolver(lookup, destinations),
            socket_factory=destinations.open_socket,
            ssl=context,
            limit=0,  # The sender limits the number of concurrent posts.
            keepalive_timeout=_KEEP_ALIVE,
        )
        bound_connections(connector)
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_IDENTITY,
            auto_decompress=False,
            trust_env=False,
            read_bufsize=_ANSWER_CAP,
            max_headers=_HEADERS,
        ) as session:
            yield WebhookClient(session, destinations, timeout, allow_http=allow_http)
    finally:
        if resolver is None:
            await lookup.close()


def _code(failure: Exception) -> AttemptError:
    """Return the error code for a failed post. An unexpected failure is logged without its message."""
    if isinstance(failure, aiohttp.ClientConnectorError):
        return _connect_code(failure)
    if isinstance(failure, Refused):
        return failure.code
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, aiohttp.ClientResponseError):
        return "invalid_answer"
    if isinstance(failure, aiohttp.ClientPayloadError | aiohttp.ClientConnectionError):
        return "connection_lost"
    if isinstance(failure, aiohttp.InvalidURL):
        # aiohttp refuses addresses in unusual notations.
        return "address_not_allowed"
    _log.error("webhooks.bug", error=type(failure).__name__)
    return "connection_failed"


def _connect_code(failure: aiohttp.ClientConnectorError) -> AttemptError:
    cause = failure.os_error
    if isinstance(cause, Refused):
        return cause.code
    if isinstance(failure, aiohttp.ClientConnectorDNSError):
        return "dns_failed"
    if isinstance(failure, aiohttp.ClientSSLError):
        return "tls_failed"
    if isinstance(cause, ConnectionRefusedError):
        return "connection_refused"
    if isinstance(cause, ConnectionError):
        return "connection_lost"
    return "connection_failed"
