"""The headers, body and limits of every request, whichever HTTP library sends it."""
# ruff: noqa: PLC0415 — importlib.metadata is slow to import, and only a client needs it.

import json
import ssl
import sys
from typing import Final

from taproof.sdk.exchange import Request, Service

IDLE_CONNECTIONS: Final = 32
"""Connections that are kept for later calls. More may be open at a time."""
CONNECT: Final = 10.0
"""Seconds of a request's time that may pass until the connection is made."""
NO_CONNECTION: Final = "no connection came about"
NO_HOST: Final = "the address names no host that there can be"
TOO_SLOW: Final = "no complete answer came in time"
WRONG_CERTIFICATE: Final = "its TLS certificate does not hold, or it does not speak TLS there"


def fixed_headers() -> dict[str, str]:
    """Return the headers of every request."""
    from importlib import metadata

    try:
        version = metadata.version("taproof")
    except metadata.PackageNotFoundError:  # Copied into an application instead of installed.
        version = "unknown"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Answers are short. Without compression, a small answer cannot expand without limit.
    return {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"taproof/{version} Python/{python}",
    }


def own_headers(request: Request) -> dict[str, str]:
    """Return the headers of this request."""
    headers = {} if request.bearer is None else {"Authorization": f"Bearer {request.bearer}"}
    return headers if request.body is None else headers | {"Content-Type": "application/json"}


def json_body(request: Request) -> bytes | None:
    """Return the body as JSON.

    Raises:
        TypeError, ValueError: an argument cannot be written as JSON.
    """
    return None if request.body is None else json.dumps(request.body, allow_nan=False).encode()


def tls_context(service: Service, ca_file: str | None) -> ssl.SSLContext | None:
    """Return a TLS context that checks certificates and host names; None for an http:// address."""
    return ssl.create_default_context(cafile=ca_file) if service.address.startswith("https:") else None


def is_tls_failure(error: BaseException | None) -> bool:
    """Return whether a certificate was refused. A retry would not help then."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError | ssl.CertificateError):
            return True
        error = error.__cause__ or error.__context__
    return False
