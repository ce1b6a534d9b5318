"""A webhook receiver that answers raw bytes, with or without TLS, its certificates, and a client to post to it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from taproof.core.address_rules import AddressRules
from taproof.service.webhooks import SignedRequest, request_headers
from taproof.webhooks.http_client import WebhookClient, open_webhook_client

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
LOOPBACK = AddressRules(["loopback"])
NAME = "hooks.example.test"
Reply = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class RawReceiver:
    """Answers every request with `reply` on connections that stay open, and keeps the requests."""

    reply: bytes | Reply
    port: int = 0
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    server_names: list[str | None] = field(default_factory=list)
    connections: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    serving: set[asyncio.Task[Any]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    length = int(head.lower().partition("content-length:")[2].partition("\r\n")[0])
                    self.heads.append(head)
                    self.bodies.append(await reader.readexactly(length))
                    if isinstance(self.reply, bytes):
                        writer.write(self.reply)
                        await writer.drain()
                    else:
                        await self.reply(writer)
        finally:
            self.closed.set()
            writer.close()
            self.serving.discard(task)


@asynccontextmanager
async def receiving(
    reply: bytes | Reply, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[RawReceiver]:
    receiver = RawReceiver(reply)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: receiver.server_names.append(name)
    server = await asyncio.start_server(receiver.serve, host, port, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in list(receiver.serving):
            task.cancel()
        await asyncio.gather(*receiver.serving, return_exceptions=True)


def resolved(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)


class Names(AbstractResolver):
    """Resolves every name to this machine, or to these IPv4 addresses."""

    def __init__(self, *addresses: str, delay: float = 0) -> None:
        self.addresses = addresses or ("127.0.0.1",)
        self.delay = delay
        self.asked: list[str] = []

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 — there is one answer.
    ) -> list[ResolveResult]:
        self.asked.append(host)
        await asyncio.sleep(self.delay)
        return [resolved(host, address, port) for address in self.addresses]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def signed(url: str, body: bytes = b'{"id": "evt_1"}') -> SignedRequest:
    return SignedRequest(url, request_headers("Taproof/test") | {"X-Service-Signature": "ab"}, body)


@asynccontextmanager
async def opened(receiver: RawReceiver | None = None, **options: Any) -> AsyncIterator[WebhookClient]:
    """Yield a client that takes plain HTTP to this machine; without `receiver` only the ports of the service."""
    ports = frozenset({443, 8443} | ({receiver.port} if receiver else set()))
    chosen: dict[str, Any] = {"allow_http": True, "resolver": Names(), **options}
    async with open_webhook_client(LOOPBACK, ports, **chosen) as client:
        yield client


class Authority:
    """A certificate authority for one test. Like many private ones, it lacks extensions that Python 3.13 requires."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "An authority for tests")])
        own = self._sign(self._name, self._key, self._name, days=30, is_authority=True, alternative=None)
        self.file = place / "authority.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def server(self, name: str, *, days: int = 30, self_signed: bool = False) -> ssl.SSLContext:
        """Return the TLS context of a server for `name`, with a certificate that expires in `days`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(
            subject, key, subject if self_signed else self._name, days=days, is_authority=False, alternative=name
        )
        chain = self._place / f"{name}{days}.pem"
        chain.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(chain)
        return context

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        issuer: x509.Name,
        *,
        days: int,
        is_authority: bool,
        alternative: str | None,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=90))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            # Python 3.13 checks as strictly as RFC 5280 says, which asks for these.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if is_authority:
            builder = builder.add_extension(_may_sign_certificates(), critical=True)
        if alternative is not None:
            names = x509.SubjectAlternativeName([x509.DNSName(alternative)])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(key if issuer == subject else self._key, hashes.SHA256())


def _may_sign_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
