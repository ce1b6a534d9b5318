"""What an application tells a client, checked before anything is sent with it."""

import ipaddress
import math
import re
from typing import Final
from urllib.parse import urlsplit

from taproof.sdk.exchange import Service

_WRONG_ADDRESS: Final = (
    "base_url must be the https:// address of a Taproof service, such as https://signin.example.com, with nothing but"
    " perhaps a path behind it. Only this machine's own may begin with http://."
)
_SAFE_PATH: Final = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*")
_FORMS: Final = {
    "access_token": (
        re.compile(r"tap_[A-Za-z0-9]+"),
        "an access token: tap_…, as the console or taproof login made it",
    ),
    "secret_key": (re.compile(r"sk_[A-Za-z0-9]+"), "a project's secret key: sk_…, as it was shown when it was made"),
    "project_id": (re.compile(r"proj_[A-Za-z0-9]+"), "a project's id: proj_…"),
}


def service_at(
    base_url: str, *, access_token: str | None, secret_key: str | None, project_id: str | None, timeout: float
) -> Service:
    """Return what a client's calls are made with.

    Raises:
        ValueError: one of them cannot be right. The message does not show it.
    """
    given = {"access_token": access_token, "secret_key": secret_key, "project_id": project_id}
    for name, value in given.items():
        form, description = _FORMS[name]
        # The messages of HTTP libraries quote a header that they refuse, so nothing such gets there.
        if value is not None and (not isinstance(value, str) or form.fullmatch(value) is None):
            raise ValueError(f"{name} must be {description}.")
    if not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        raise ValueError("timeout must be a number of seconds above 0.")
    return Service(
        address=_address(base_url),
        access_token=access_token,
        secret_key=secret_key,
        project_id=project_id,
        timeout=timeout,
    )


def _address(base_url: str) -> str:
    if not isinstance(base_url, str):
        raise ValueError(_WRONG_ADDRESS)  # noqa: TRY004 — as whatever else cannot be an address.
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError(_WRONG_ADDRESS) from None
    safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host or ""))
    path = parts.path.rstrip("/")
    plain = re.fullmatch(r"[A-Za-z0-9._:\[\]-]+", parts.netloc) and _SAFE_PATH.fullmatch(path)
    # A "?" or "#" with nothing behind it is gone by now, and would be where a path is added.
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
