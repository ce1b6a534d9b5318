"""The doctor's look at the address that clients use, the certificate for it and the port to listen on."""

import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from cryptography import x509

from taproof.cli.doctor.finding import Finding
from taproof.config.options import called
from taproof.config.settings import Settings
from taproof.core.clock import DAY, SECOND

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)
_CERTIFICATE_WARNING: Final = 14 * DAY


def check_address(settings: Settings) -> Finding:
    """Look at the base URL and at who speaks TLS for it."""
    if not settings.serves_api:
        return Finding("address", "ok", f"none is needed by a node with {called('role')} {settings.role}")
    parts = urlsplit(settings.base_url)
    if parts.scheme == "https":
        how = "TLS in the process" if settings.tls_cert else "TLS at a trusted proxy"
        if settings.tls_cert or settings.trusted_proxy:
            return Finding("address", "ok", f"{settings.base_url}, {how}")
        return Finding(
            "address",
            "problem",
            f"{settings.base_url} is https, but nothing here speaks TLS and no proxy is trusted",
            f"Give {called('tls_cert')} and {called('tls_key')}, or {called('trusted_proxy')}.",
        )
    if settings.sandbox:
        return Finding("address", "ok", settings.base_url)
    return Finding(
        "address",
        "warning",
        f"{settings.base_url} can be used on this machine only",
        f"Before others sign in, set {called('base_url')} to the https:// address that they use.",
    )


def check_certificate(settings: Settings, now: int) -> list[Finding]:
    """Look at the certificate, its key and its last day, if TLS is spoken here; `now` in ms."""
    if settings.tls_cert is None or settings.tls_key is None:
        return []
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key, password="")
        certificate = x509.load_pem_x509_certificate(settings.tls_cert.read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        return [
            Finding(
                "certificate",
                "problem",
                f"{settings.tls_cert} and {settings.tls_key} cannot be used together ({reason})",
                "Give the certificate chain and its own private key, both in PEM form, the key without a password.",
            )
        ]
    left = int(certificate.not_valid_after_utc.timestamp() * SECOND) - now
    until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
    if left <= 0:
        return [Finding("certificate", "problem", f"expired on {until}", "Renew it and restart Taproof.")]
    if left < _CERTIFICATE_WARNING:
        return [Finding("certificate", "warning", f"expires on {until}", "Renew it and restart Taproof.")]
    return [Finding("certificate", "ok", f"valid until {until}")]


async def check_port(settings: Settings) -> Finding:
    """Look whether the port is free, or Taproof's already."""
    where = f"{settings.host}:{settings.port}"
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except PermissionError:
            return Finding(
                "port",
                "problem",
                f"this user may not listen on {where}",
                f"Choose one from 1024 up with {called('port')}, or give the service CAP_NET_BIND_SERVICE.",
            )
        except OSError as error:
            trouble = error.strerror
        else:
            return Finding("port", "ok", f"{where} is free")
    if await _is_taproof(settings):
        return Finding("port", "ok", f"{where} is served by Taproof already")
    return Finding(
        "port",
        "problem",
        f"{where} cannot be listened on: {trouble}",
        f"Stop what listens there (ss -ltnp), or choose another with {called('port')}.",
    )


async def _is_taproof(settings: Settings) -> bool:
    """Ask whoever listens for something that only Taproof answers in this way."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 — compared only.
    scheme = "https" if settings.tls_cert else "http"
    address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}/api/v1/verify"
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as client,
            # Over loopback the certificate's name cannot fit, and nothing secret is sent.
            client.get(address, ssl=False, allow_redirects=False) as answer,
        ):
            return "X-Error-Code" in answer.headers
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return False
