"""Checks the arguments of a client before it sends anything."""

import ipaddress
import math
import re
from typing import Final
from urllib.parse import urlsplit

from taproof.sdk.exchange import Service

_WRONG_ADDRESS: Final = (
    "base_url must be the https:// address of a Taproof service, such as https://signin.example.com, optionally with a"
    " path. Only a loopback address, such as http://localhost:8080, can begin with http://."
)
_SAFE_PATH: Final = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*")
_FORMS: Final = {
    "access_token": (
        re.compile(r"tap_[A-Za-z0-9]+"),
        "an access token: tap_…, as created in the console or by taproof login",
    ),
    "secret_key": (re.compile(r"sk_[A-Za-z0-9]+"), "a project's secret key: sk_…, as shown when it was created"),
    "project_id": (re.compile(r"proj_[A-Za-z0-9]+"), "a project's id: proj_…"),
}


def service_at(
    base_url: str, *, access_token: str | None, secret_key: str | None, project_id: str | None, timeout: float
) -> Service:
    """Return the values that all calls of a client share. The ValueError of an invalid one does not contain it."""
    given = {"access_token": access_token, "secret_key": secret_key, "project_id": project_id}
    for name, value in given.items():
        form, description = _FORMS[name]
        # HTTP libraries quote invalid headers in their error messages, so an invalid secret must not reach them.
        if value is not None and (not isinstance(value, str) or form.fullmatch(value) is None):
            raise ValueError(f"{name} must be {description}.")
    if not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        raise ValueError("timeout must be a number of seconds greater than 0.")
    return Service(
        address=_address(base_url),
        access_token=access_token,
        secret_key=secret_key,
        project_id=project_id,
        timeout=timeout,
    )


def _address(base_url: str) -> str:
    if not isinstance(base_url, str):
        raise ValueError(_WRONG_ADDRESS)  # noqa: TRY004 — the same error as for any other invalid address.
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError(_WRONG_ADDRESS) from None
    safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host or ""))
    path = parts.path.rstrip("/")
    plain = re.fullmatch(r"[A-Za-z0-9._:\[\]-]+", parts.netloc) and _SAFE_PATH.fullmatch(path)
    # `urlsplit` ignores an empty "?" or "#", so the paths of requests would become part of a query or fragment.
    if not (host and safe and plain) or set("?#") & set(base_url):
        raise ValueError(_WRONG_ADDRESS)
    if {".", ".."} & set(path.split("/")):
        raise ValueError(_WRONG_ADDRESS)
    return f"{parts.scheme}://{parts.netloc}{path}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
