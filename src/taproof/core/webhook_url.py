"""Refuse webhook URLs that Taproof must not call. `webhooks/http_client.py` resolves names and checks each address."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from taproof.contract.project import WEBHOOK_URL_LIMIT
from taproof.core.address_rules import AddressRules

_NAME: Final = re.compile(r"[a-z0-9._-]+")
# If a host's last part is a number, browsers and `inet_aton` parse the host as an IPv4 address.
_NUMBER_LAST: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.*$")
_NOTHING_ALLOWED: Final = AddressRules()
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class UrlParts:
    """The parts of a URL for a request. `authority` and `target` are spelled exactly as in the URL."""

    scheme: str
    host: str
    """In lower case; an IPv6 address without brackets."""
    port: int
    authority: str
    """The header `Host`: host and port, without the scheme's default port as every HTTP client leaves it out."""
    target: str
    """Path and query for the request line. An empty path is "/" (RFC 9112, 3.2.1)."""


def split_url(url: str) -> UrlParts:
    """Return the parts of an http:// or https:// URL. Its path and its query are not normalized.

    Raises:
        ValueError: it is not such a URL, or contains characters that a request line cannot.
    """
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError
    parts = urlsplit(url)
    default = _DEFAULT_PORTS.get(parts.scheme)
    if default is None or not parts.hostname or parts.port == 0 or "@" in parts.netloc:
        raise ValueError
    port = parts.port or default
    authority = parts.netloc.removesuffix(f":{port}") if port == default else parts.netloc
    target = url.partition("://")[2][len(parts.netloc) :].partition("#")[0]
    target = target if target.startswith("/") else f"/{target}"
    return UrlParts(parts.scheme, parts.hostname, port, authority.removesuffix(":"), target)


def webhook_url_problem(
    url: str, *, rules: AddressRules, ports: Iterable[int], allow_loopback_http: bool
) -> str | None:
    """Return the problem with a webhook URL, as the rest of a sentence; None if it is accepted. "" means no webhook.

    `allow_loopback_http`: accept plain HTTP and any port to this machine, as the sandbox does.
    """
    if url == "":
        return None
    if len(url) > WEBHOOK_URL_LIMIT:
        return f"must have at most {WEBHOOK_URL_LIMIT} characters"
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return (
            "must be plain ASCII without spaces or control characters: write the host in its xn-- form, and "
            "percent-encode the rest"
        )
    if "#" in url:
        return "must not contain a fragment: clients never send the # and what follows it"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if "@" in parts.netloc:
        return "must not contain a user name or password"
    if not host or port == 0 or not (":" in host if parts.netloc.startswith("[") else _NAME.fullmatch(host)):
        return "must name a host, such as https://example.com/hooks"
    here = allow_loopback_http and is_loopback(host)
    if parts.scheme != "https" and not (here and parts.scheme == "http"):
        return "must begin with https://" + (", or in the sandbox with http://127.0.0.1" if allow_loopback_http else "")
    if not here and (port or 443) not in ports:
        return f"must use port {' or '.join(str(each) for each in sorted(ports))}"
    return _address_problem(host, rules)


def _address_problem(host: str, rules: AddressRules) -> str | None:
    """Return the problem with a host that is an address or a name of this machine; None if it is allowed."""
    if _is_own_name(host.rstrip(".")):
        problem = rules.problem("127.0.0.1")
    elif is_ip_address(host):
        problem = rules.problem(host)
        if problem == "unreadable" or (problem is None and str(ip_address(host)) != host):
            return "must write an IP address in the usual notation, such as 203.0.113.7 or [2001:db8::7]"
    else:
        return None
    if problem is None:
        return None
    return f"must point to a public address; this one is {problem}, which the operator of this service does not allow"


def is_ip_address(host: str) -> bool:
    """Return whether `host` is an IP address in any notation, rather than a name."""
    return ":" in host or _NUMBER_LAST.search(host) is not None


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine: `localhost`, one of its subdomains (RFC 6761), or a loopback address."""
    return _is_own_name(host) or _NOTHING_ALLOWED.problem(host) == "loopback"


def _is_own_name(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def url_origin(url: str) -> str:
    """Return scheme, host and port of a webhook URL, whose path and query may contain secrets. "" stays ""."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if url else ""
