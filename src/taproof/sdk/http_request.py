"""The headers, limits and failures that requests have in common, for both HTTP libraries."""
# ruff: noqa: PLC0415 — importlib.metadata is slow to import, and only a client needs it.

import ssl
import sys
from typing import Final

from taproof.sdk.environment_proxy import EnvironmentProxy
from taproof.sdk.exchange import NoResponse, Service

IDLE_CONNECTIONS: Final = 32
"""Maximum number of idle connections kept for later calls. More can be open at the same time."""
CONNECT: Final = 10.0
"""Maximum time to connect, in seconds. It is part of the request's time."""
NO_CONNECTION: Final = NoResponse("no connection could be made", sent=False)
NO_HOST: Final = NoResponse("the address contains no valid host name", sent=False, lasting=True)
TOO_SLOW: Final = NoResponse("no complete response arrived in time", sent=True)
CONNECTION_LOST: Final = NoResponse("the connection was lost, or no response arrived in time", sent=True)
WRONG_CERTIFICATE: Final = NoResponse(
    "its TLS certificate is not valid, or it does not use TLS", sent=False, lasting=True
)


def proxy_failed(proxy: EnvironmentProxy) -> NoResponse:
    """Return the failure of a call for which the proxy has made no connection."""
    return NoResponse(f"the proxy {proxy} cannot be reached, or makes no connection to it", sent=False)


def fixed_headers() -> dict[str, str]:
    """Return the headers of every request."""
    from importlib import metadata

    try:
        version = metadata.version("taproof")
    except metadata.PackageNotFoundError:  # The package was copied into an application instead of installed.
        version = "unknown"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Responses are short, so they need no compression. Without it, a small response cannot expand without limit.
    return {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"taproof/{version} Python/{python}",
    }


def tls_context(service: Service, ca_file: str | None) -> ssl.SSLContext | None:
    """Return a TLS context that checks certificates and host names; None for an http:// address."""
    return client_context(ca_file) if service.address.startswith("https:") else None


def client_context(ca_file: str | None = None) -> ssl.SSLContext:
    """Return a context that checks the certificate and the name of a server against the CAs of this machine or a file.

    Python 3.13 also refuses certificates without some extensions of RFC 5280, such as an Authority Key Identifier. Many
    private CAs and inspecting proxies leave them out. A forged certificate would have them, so the refusal protects
    nobody, and a program must not stop working because Python is upgraded.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def is_tls_failure(error: BaseException | None) -> bool:
    """Return whether a certificate was refused, in which case a retry would not help."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError | ssl.CertificateError):
            return True
        error = error.__cause__ or error.__context__
    return False
