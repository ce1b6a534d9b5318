"""Check the address that clients use, its certificate, and the port to listen on."""

import ssl
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from cryptography import x509

from taproof.cli.doctor.finding import Finding, ok, problem, warning
from taproof.config.options import called
from taproof.config.settings import Settings
from taproof.core.clock import DAY, SECOND
from taproof.runtime.listener import bind_socket

_CERTIFICATE_WARNING: Final = 14 * DAY


def check_address(settings: Settings) -> Finding:
    """Check the base URL, and that this process or a proxy serves HTTPS for it."""
    if not settings.serves_api:
        return ok("address", f"not needed by a node with {called('role')} {settings.role}")
    parts = urlsplit(settings.base_url)
    if parts.scheme == "https":
        how = "TLS in the process" if settings.tls_cert else "TLS at a trusted proxy"
        if settings.tls_cert or settings.trusted_proxy:
            return ok("address", f"{settings.base_url}, {how}")
        return problem(
            "address",
            f"{settings.base_url} is https, but no certificate and no trusted proxy is set",
            f"Set {called('tls_cert')} and {called('tls_key')}, or {called('trusted_proxy')}.",
        )
    if settings.sandbox:
        return ok("address", settings.base_url)
    return warning(
        "address",
        f"{settings.base_url} works on this machine only",
        f"To allow other machines, set {called('base_url')} to the https:// address that they use.",
    )


def check_certificate(settings: Settings, now: int) -> list[Finding]:
    """Check the certificate, its key and its expiry, if one is set; `now` in ms."""
    if settings.tls_cert is None or settings.tls_key is None:
        return []
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key, password="")
        certificate = x509.load_pem_x509_certificate(settings.tls_cert.read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        detail = f"{settings.tls_cert} and {settings.tls_key} cannot be used together ({reason})"
        advice = "Set the certificate chain and its own private key, both in PEM form, the key without a password."
        return [problem("certificate", detail, advice)]
    left = int(certificate.not_valid_after_utc.timestamp() * SECOND) - now
    until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
    if left <= 0:
        return [problem("certificate", f"expired on {until}", "Renew it and restart Taproof.")]
    if left < _CERTIFICATE_WARNING:
        return [warning("certificate", f"expires on {until}", "Renew it and restart Taproof.")]
    return [ok("certificate", f"valid until {until}")]


async def check_port(settings: Settings, seconds: float = 5) -> Finding:
    """Check that the port is free, or already used by Taproof, which may take `seconds` to answer."""
    where = settings.listens_on
    try:
        bind_socket(settings.host, settings.port, shared=False).close()
    except PermissionError:
        advice = f"Choose port 1024 or higher with {called('port')}, or grant the service CAP_NET_BIND_SERVICE."
        return problem("port", f"this user may not listen on {where}", advice)
    except OSError as error:
        reason = error.strerror
    else:
        return ok("port", f"{where} is free")
    if await _is_taproof(settings, seconds):
        return ok("port", f"Taproof already listens on {where}")
    advice = f"Stop the program that uses this port (ss -ltnp), or choose another port with {called('port')}."
    return problem("port", f"cannot listen on {where}: {reason}", advice)


async def _is_taproof(settings: Settings, seconds: float) -> bool:
    """Return whether the server on this port answers in a way that only Taproof does."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as client,
            # Over loopback, the certificate's name cannot match. Nothing secret is sent.
            client.get(f"{settings.own_address}/api/v1/verify", ssl=False, allow_redirects=False) as answer,
        ):
            return "X-Error-Code" in answer.headers
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return False
