"""Check the redirect URIs that a client registers, and compare them with the one in a request.

A redirect URI receives authorization codes, so a request must repeat a registered one exactly (RFC 9700, section 2.1).
The exception is the port of a loopback address, which a native app chooses at each start (RFC 8252, section 7.3).
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from taproof.contract.client import REDIRECT_URI_LENGTH, REDIRECT_URIS_LIMIT
from taproof.core.errors import InvalidRequest

_CHARACTERS: Final = re.compile(r"(?:[A-Za-z0-9._~:/?\[\]@!$&'()+,;=-]|%[0-9A-Fa-f]{2})+")
"""The characters of a URI (RFC 3986), without `#`, which begins a fragment, and `*`, which people use as a wildcard."""
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):")
_REVERSE_DOMAIN: Final = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+")
_HOST_NAME: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?")
# If a host's last part is a number, browsers parse the host as an IPv4 address, in any notation.
_NUMBER_LAST: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$")
_PORTS: Final = {"https": 443, "http": 80}
_LOOPBACK: Final = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::([0-9]{1,5}))?((?:[/?].*)?)")
"""A loopback redirect URI: everything before the port, the port, and everything after it."""


class NotARedirectUri(ValueError):
    """The text is not a valid redirect URI. The message is the rest of a sentence that begins with the URI."""


def read_redirect_uris(texts: Sequence[str]) -> tuple[str, ...]:
    """Return a client's redirect URIs, unchanged and without duplicates.

    Raises:
        InvalidRequest: there are none or too many, or one is invalid; the sentence names its position in the list.
    """
    if not 1 <= len(texts) <= REDIRECT_URIS_LIMIT:
        raise InvalidRequest(f"redirect_uris must contain 1 to {REDIRECT_URIS_LIMIT} addresses.")
    return _read_all("redirect_uris", texts)


def read_post_logout_uris(texts: Sequence[str]) -> tuple[str, ...]:
    """Return a client's post-logout redirect URIs, unchanged and without duplicates.

    Raises:
        InvalidRequest: there are too many, or one is invalid; the sentence names its position in the list.
    """
    if len(texts) > REDIRECT_URIS_LIMIT:
        raise InvalidRequest(f"post_logout_redirect_uris must contain at most {REDIRECT_URIS_LIMIT} addresses.")
    return _read_all("post_logout_redirect_uris", texts)


def read_logout_uri(text: str) -> str:
    """Return a client's back-channel logout URI unchanged; "" is none.

    Its address is checked at each connection: see `webhooks/http_client.py`.

    Raises:
        InvalidRequest: it is not a web address.
    """
    if text == "":
        return text
    try:
        uri = read_redirect_uri(text)
    except NotARedirectUri as error:
        raise InvalidRequest(f"backchannel_logout_uri {error}.") from None
    if not uri.startswith(("https://", "http://")):
        raise InvalidRequest("backchannel_logout_uri must begin with https://, or with http:// for this machine.")
    return uri


def _read_all(field: str, texts: Sequence[str]) -> tuple[str, ...]:
    found = []
    for place, text in enumerate(texts, 1):
        try:
            found.append(read_redirect_uri(text))
        except NotARedirectUri as error:
            raise InvalidRequest(f"{field}: number {place} of the list {error}.") from None
    return tuple(dict.fromkeys(found))


def read_redirect_uri(text: str) -> str:
    """Return a redirect URI unchanged, because requests are compared with it character by character.

    Raises:
        NotARedirectUri: the text is not a URI, or no authorization code may be sent there.
    """
    _check_text(text)
    found = _SCHEME.match(text)
    if found is None:
        raise NotARedirectUri("must be absolute and begin with a scheme in lower case, such as https://")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise NotARedirectUri("has an invalid host or port") from None
    if "@" in parts.netloc:
        raise NotARedirectUri("must not contain a user name or password")
    if found[1] == "https":
        _check_https(text, host, port)
    elif found[1] == "http":
        _check_loopback(text, port)
    elif _REVERSE_DOMAIN.fullmatch(found[1]) is None:
        raise NotARedirectUri(
            "must begin with https://, with http:// for this machine, or with an app's own scheme that contains a dot, "
            "such as com.example.app:/callback"
        )
    return text


def _check_text(text: str) -> None:
    if len(text) > REDIRECT_URI_LENGTH:
        raise NotARedirectUri(f"must have at most {REDIRECT_URI_LENGTH:,} characters")
    if "*" in text:
        raise NotARedirectUri("must not contain a wildcard (*); add each address")
    if "#" in text:
        raise NotARedirectUri("must not contain a fragment (#)")
    if _CHARACTERS.fullmatch(text) is None:
        raise NotARedirectUri("must be a URL in plain ASCII; percent-encode all other characters")


def _check_https(text: str, host: str, port: int | None) -> None:
    """Refuse an https URL that browsers read in another way than it is written."""
    if not text.startswith("https://") or not _is_host(host) or port == 0:
        raise NotARedirectUri("must name a host, such as https://app.example/callback")


def _check_loopback(text: str, port: int | None) -> None:
    if _LOOPBACK.fullmatch(text) is None or port == 0:
        raise NotARedirectUri(
            "must begin with https://; http:// is allowed only for this machine, as http://127.0.0.1, http://[::1] or "
            "http://localhost"
        )


def _is_host(host: str) -> bool:
    """Return whether a host is a name or an IP address in its usual notation."""
    if ":" not in host and not _NUMBER_LAST.search(host):
        return _HOST_NAME.fullmatch(host) is not None
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return not isinstance(address, IPv6Address) or address.scope_id is None


def matches(registered: Sequence[str], given: str) -> bool:
    """Return whether a request may use the redirect URI `given`: one of these, or one with another loopback port."""
    if given in registered:
        return True
    wanted = _without_port(given)
    return wanted is not None and any(_without_port(each) == wanted for each in registered)


def leads_to(uri: str, origin: str) -> bool:
    """Return whether a redirect URI names the host and port of `origin`, in any notation that browsers accept."""
    place = _place(uri)
    return place is not None and place == _place(origin)


def _place(url: str) -> tuple[str | IPv4Address | IPv6Address, int] | None:
    """Return the host and port of a web address; None if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not host or port is None:
        return None
    try:
        return ip_address(host), port
    except ValueError:
        return host.rstrip("."), port


def _without_port(uri: str) -> tuple[str, str] | None:
    """Return the parts of a valid loopback redirect URI before and after its port; None for any other text."""
    if len(uri) > REDIRECT_URI_LENGTH or _CHARACTERS.fullmatch(uri) is None:
        return None
    found = _LOOPBACK.fullmatch(uri)
    if found is None or not 0 < int(found[2] or 80) < 1 << 16:
        return None
    return found[1], found[3]
