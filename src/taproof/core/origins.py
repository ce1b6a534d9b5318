"""The origins of web pages (RFC 6454), in the format that browsers send in the Origin header."""

import re
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from taproof.contract.project import ORIGIN_LENGTH, ORIGINS_LIMIT
from taproof.core.errors import InvalidRequest, OriginNotAllowed
from taproof.core.webhook_url import is_loopback

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# If a host's last part is a number, browsers parse the host as an IPv4 address, in any notation.
_NUMBER_LAST: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$")
_PORTS: Final = {"https": 443, "http": 80}


class NotAnOrigin(ValueError):
    """The text is not a valid origin. The message is the rest of a sentence that begins with the origin."""


def read_origins(texts: Sequence[str]) -> tuple[str, ...]:
    """Return a project's origins as browsers write them, without duplicates.

    Raise InvalidRequest for an invalid one.
    """
    if len(texts) > ORIGINS_LIMIT:
        raise InvalidRequest(f"allowed_origins must contain at most {ORIGINS_LIMIT} origins.")
    found = []
    for place, text in enumerate(texts, 1):
        try:
            found.append(read_origin(text))
        except NotAnOrigin as error:
            raise InvalidRequest(f"allowed_origins: number {place} of the list {error}.") from None
    return tuple(dict.fromkeys(found))


def read_origin(text: str) -> str:
    """Return an origin as browsers write it: in lower case, and without the scheme's default port.

    Raises:
        NotAnOrigin: the text is not an origin, or no sign-in page should have this origin.
    """
    if len(text) > ORIGIN_LENGTH:
        raise NotAnOrigin(f"must have at most {ORIGIN_LENGTH} characters")
    if "*" in text:
        raise NotAnOrigin("must not contain a wildcard; name each host")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise NotAnOrigin("must be plain ASCII without spaces; write names in other scripts as xn--…")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise NotAnOrigin("must be a scheme, a host and optionally a port, such as https://shop.example") from None
    if parts.scheme not in _PORTS or not text.lower().startswith(f"{parts.scheme}://"):
        raise NotAnOrigin("must begin with https://, or with http:// for localhost")
    if "@" in parts.netloc:
        raise NotAnOrigin("must not contain a user name or password")
    if text[len(parts.scheme) + len("://") :] != parts.netloc:
        raise NotAnOrigin("must end after the host and port: remove the slash, the path and everything after it")
    # Python 3.11 ignores what stands beside the brackets of an address, and accepts names in them.
    written = f"[{host}]" if ":" in host else host
    is_whole = f"{parts.netloc.lower()}:".startswith(f"{written}:")
    if port == 0 or parts.netloc.endswith(":") or not is_whole or not (host := _host(host)):
        raise NotAnOrigin(
            "must write the host as browsers do, such as https://shop.example or https://shop.example:8443"
        )
    if parts.scheme == "http" and not is_loopback(host.strip("[]")):
        raise NotAnOrigin(
            "must begin with https://; http:// is allowed only for this machine, such as http://localhost"
        )
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in {None, _PORTS[parts.scheme]} else "")


def _host(host: str) -> str:
    """Return a host as an origin contains it; "" if the host is invalid or browsers write it differently."""
    if ":" not in host and not _NUMBER_LAST.search(host):
        return host if len(host) <= 253 and _NAME.fullmatch(host) else ""
    try:
        address = ip_address(host)
    except ValueError:
        return ""
    if not isinstance(address, IPv6Address):
        return host
    # An IPv6 address that contains an IPv4 address can be written in two ways. An origin cannot contain a zone.
    return f"[{address.compressed}]" if "." not in address.compressed and "%" not in host else ""


def require_allowed_origin(allowed_origins: str, origin: str | None) -> None:
    """Raise OriginNotAllowed for pages of other origins than these, separated by spaces; "" allows any.

    Apps and servers send no origin and are allowed.
    """
    if allowed_origins and origin is not None and origin not in allowed_origins.split():
        raise OriginNotAllowed(_named_refusal(origin))


def _named_refusal(origin: str) -> str | None:
    """Return a sentence that names the origin; None if it is malformed, because such text must not be echoed."""
    try:
        is_origin = read_origin(origin) == origin
    except NotAnOrigin:
        is_origin = False
    if not is_origin:
        return None
    return (
        f"Pages of {origin} cannot start sign-ins for this project. Its developer can add it to allowed_origins, or "
        "open the page under an allowed origin."
    )
