"""The origins of web pages (RFC 6454), in the spelling that browsers send in the Origin header."""

import re
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from taproof.core.errors import InvalidRequest
from taproof.core.webhook_url import is_loopback

ORIGINS_LIMIT: Final = 20
"""The maximum number of origins of one project."""
ORIGIN_LENGTH: Final = 300
"""The maximum number of characters of an origin. A host name has at most 253."""
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# Browsers read a host as an IPv4 address, in any spelling, if its last part is a number.
_NUMBER_LAST: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$")
_PORTS: Final = {"https": 443, "http": 80}


class NotAnOrigin(ValueError):
    """The text is not a valid origin. The message is the rest of a sentence that begins with the origin."""


def read_origins(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the origins of a project in the spelling of browsers, each once.

    Raises:
        InvalidRequest: there are too many, or one is invalid; the sentence names its position in the list.
    """
    if len(texts) > ORIGINS_LIMIT:
        raise InvalidRequest(f"allowed_origins must hold at most {ORIGINS_LIMIT} origins.")
    found = []
    for place, text in enumerate(texts, 1):
        try:
            found.append(read_origin(text))
        except NotAnOrigin as error:
            raise InvalidRequest(f"allowed_origins: number {place} of the list {error}.") from None
    return tuple(dict.fromkeys(found))


def read_origin(text: str) -> str:
    """Return an origin in the spelling of browsers: in lower case, and without the default port of its scheme.

    Raises:
        NotAnOrigin: the text is not an origin, or is one that no sign-in page should have.
    """
    if len(text) > ORIGIN_LENGTH:
        raise NotAnOrigin(f"must have at most {ORIGIN_LENGTH} characters")
    if "*" in text:
        raise NotAnOrigin("must not contain a wildcard; name each host")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise NotAnOrigin("must be plain ASCII without spaces; write the letters of other scripts in the form xn--…")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise NotAnOrigin("must be scheme, host and perhaps port, such as https://shop.example") from None
    if parts.scheme not in _PORTS or not text.lower().startswith(f"{parts.scheme}://"):
        raise NotAnOrigin("must begin with https://, or for this machine itself with http://")
    if "@" in parts.netloc:
        raise NotAnOrigin("must not contain a user name or password")
    if text[len(parts.scheme) + len("://") :] != parts.netloc:
        raise NotAnOrigin("must end after host and port: leave out the slash, the path and all behind it")
    if port == 0 or parts.netloc.endswith(":") or not (host := _host(host)):
        raise NotAnOrigin("must name a host as browsers do, such as https://shop.example or https://shop.example:8443")
    if parts.scheme == "http" and not is_loopback(host.strip("[]")):
        raise NotAnOrigin("must begin with https://; http:// is for this machine itself only, such as http://localhost")
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in {None, _PORTS[parts.scheme]} else "")


def _host(host: str) -> str:
    """Return a host in the spelling of an origin; "" if the host is invalid or browsers spell it differently."""
    if ":" not in host and not _NUMBER_LAST.search(host):
        return host if len(host) <= 253 and _NAME.fullmatch(host) else ""
    try:
        address = ip_address(host)
    except ValueError:
        return ""
    if not isinstance(address, IPv6Address):
        return host
    # An IPv6 address that contains an IPv4 address has two spellings. An address with a zone has no spelling in an
    # origin.
    return f"[{address.compressed}]" if "." not in address.compressed and "%" not in host else ""
