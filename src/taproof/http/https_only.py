"""Refuse requests without HTTPS (service-spec.md, opening; HSTS: RFC 6797), and find the client behind a trusted proxy.

A plain HTTP request is served only if it comes from this machine's loopback, or from a trusted proxy that reports an
HTTPS client. Others are refused, not redirected: with a redirect, clients would still send secrets unencrypted first.
"""

from collections.abc import Awaitable, Iterable
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taproof.core.errors import HttpsRequired
from taproof.http.errors import send_error

_FORWARDED: Final = frozenset({b"x-forwarded-for", b"x-forwarded-proto", b"forwarded"})
_KNOWN_HOSTS: Final = 4096
_ENTRIES: Final = 32
"""The maximum number of forwarding header entries that are read, from the right. Clients can prepend any number."""
_PAIRS: Final = 8
"""The maximum number of parameters in a `Forwarded` entry. RFC 7239 defines four."""
_LONGEST_ADDRESS: Final = 100
"""The maximum length in characters of an address with a zone and a port."""
_UNTRUSTED_PROXY: Final = (
    "A proxy forwarded this request, but no proxy on this machine is trusted. If you run one, start Taproof with "
    "--trusted-proxy 127.0.0.1/32 (TAPROOF_TRUSTED_PROXY)."
)
_UNSAID_PROTOCOL: Final = (
    "Use https://. If you did, configure the trusted proxy to send X-Forwarded-Proto: https with every HTTPS request."
)


class Peer(Enum):
    """The kind of peer at the other end of a connection."""

    PROXY = 1
    LOCAL_PROXY = 2
    LOOPBACK = 3
    OTHER = 4


class HttpsOnly:
    """ASGI middleware that refuses requests without HTTPS, except from this machine.

    Behind a trusted proxy, it sets the scope's `scheme`, and sets `client` to the address that the proxy saw, with port
    0. So only a program on this machine has a loopback address with another port.

    Args:
        app: the application.
        trusted_proxies: networks whose X-Forwarded-For and X-Forwarded-Proto are trusted.
        include_subdomains: whether HSTS covers subdomains too.
    """

    def __init__(
        self,
        app: ASGIApp,
        trusted_proxies: Iterable[IPv4Network | IPv6Network] = (),
        *,
        include_subdomains: bool = False,
    ) -> None:
        self.app = app
        self._networks = tuple(trusted_proxies)
        self.peers: dict[str, Peer] = {}
        self._hsts = (
            b"strict-transport-security",
            b"max-age=31536000" + (b"; includeSubDomains" if include_subdomains else b""),
        )

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass a request on, or refuse it. This is not a coroutine, but returns one, which saves time on every poll."""
        if scope["type"] == "lifespan":
            return self.app(scope, receive, send)
        if scope["type"] != "http":
            return _close(receive, send)
        client = scope["client"]
        host = client[0] if client else ""
        peer = self.peers.get(host) or self._classify(host)
        if peer is Peer.LOCAL_PROXY and scope["scheme"] == "http" and not _is_forwarded(scope):
            # Not sent through the proxy: a health check, or the sandbox's own bot, on this machine.
            return self.app(scope, receive, send)
        if peer is Peer.PROXY or peer is Peer.LOCAL_PROXY:
            return self._answer_proxied(scope, receive, send)
        if scope["scheme"] == "https":
            if peer is Peer.LOOPBACK and _is_forwarded(scope):
                scope["client"] = (host, 0)  # Not a program on this machine, but a proxy's client.
            return self.app(scope, receive, self._with_hsts(send))
        if peer is not Peer.LOOPBACK:
            return send_error(send, HttpsRequired())
        if _is_forwarded(scope) and not _is_forwarded_from_loopback(scope):
            return send_error(send, HttpsRequired(_UNTRUSTED_PROXY))
        return self.app(scope, receive, send)

    def _answer_proxied(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # A chain of proxies sends several values, or one with commas: every link must have been HTTPS. Over an HTTPS
        # connection, a request without the header is safe, even if it is not from the proxy.
        protocols = [entry for entry in _entries(scope, b"x-forwarded-proto") if entry] or [scope["scheme"]]
        if len(protocols) == _ENTRIES or any(protocol.lower() != "https" for protocol in protocols):
            return send_error(send, HttpsRequired(_UNSAID_PROTOCOL))
        scope["scheme"] = "https"
        scope["client"] = (self._forwarded_client(scope), 0)
        return self.app(scope, receive, self._with_hsts(send))

    def _forwarded_client(self, scope: Scope) -> str:
        """Return the rightmost address that is not a trusted proxy's. Clients can forge the entries to its left.

        A proxy that does not know the address sends an empty entry or one that is not an address. Entries to the left
        of such an entry are ignored.
        """
        client: str = scope["client"][0]
        for entry in _entries(scope, b"x-forwarded-for"):
            address = parse_address(entry)
            if address is None:
                break
            client = str(address)
            if not self._is_trusted(address):
                break
        return client

    def _classify(self, host: str) -> Peer:
        address = parse_address(host)
        if address is None:
            peer = Peer.OTHER
        elif self._is_trusted(address):
            peer = Peer.LOCAL_PROXY if address.is_loopback else Peer.PROXY
        else:
            peer = Peer.LOOPBACK if address.is_loopback else Peer.OTHER
        if len(self.peers) >= _KNOWN_HOSTS:
            self.peers.clear()
        self.peers[host] = peer
        return peer

    def _is_trusted(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._networks)

    def _with_hsts(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Copy the message: the polled path reuses the same object.
                message = {**message, "headers": [*message["headers"], self._hsts]}
            await send(message)

        return sending


async def _close(receive: Receive, send: Send) -> None:
    """Close a websocket before it is accepted."""
    await receive()
    await send({"type": "websocket.close", "code": 1003, "reason": ""})


def _entries(scope: Scope, wanted: bytes) -> list[str]:
    """Return at most `_ENTRIES` comma-separated entries from all headers with this name, last entry first."""
    found: list[bytes] = []
    for name, value in reversed(scope["headers"]):
        if name == wanted and len(found) < _ENTRIES:
            found += reversed(value.rsplit(b",", _ENTRIES))
    return [entry.decode("latin-1").strip() for entry in found[:_ENTRIES]]


def _is_forwarded(scope: Scope) -> bool:
    for name, _ in scope["headers"]:  # noqa: SIM110 — any() would create a generator for every request.
        if name in _FORWARDED:
            return True
    return False


def _is_forwarded_from_loopback(scope: Scope) -> bool:
    """Return whether the forwarding headers name only clients on this machine, like those of a development proxy."""
    clients = _entries(scope, b"x-forwarded-for")
    elements = _entries(scope, b"forwarded")
    for element in elements:
        pairs = element.split(";", _PAIRS)
        if len(pairs) > _PAIRS:
            return False
        for pair in pairs:
            name, _, value = pair.partition("=")
            if name.strip().lower() == "for":
                clients.append(value.strip().strip('"'))
    if not clients or len(clients) >= _ENTRIES or len(elements) >= _ENTRIES:
        return False
    addresses = [parse_address(client) for client in clients]
    return all(address is not None and address.is_loopback for address in addresses)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address as servers and proxies write it, with or without a port; return None for anything else.

    An IPv4-mapped IPv6 address becomes an IPv4 address, and a zone is dropped. Otherwise one client could have many
    addresses.
    """
    return None if len(text) > _LONGEST_ADDRESS else _parse_address(text)


@lru_cache(_KNOWN_HOSTS)  # Behind a proxy, this parses an address for every poll.
def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    port = ""
    if text.startswith("["):
        text, bracket, port = text[1:].partition("]")
        if not bracket or ":" not in text or (port and not port.startswith(":")):
            return None
        port = port[1:]
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return None
    try:
        address = ip_address(text.partition("%")[0] if ":" in text else text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
