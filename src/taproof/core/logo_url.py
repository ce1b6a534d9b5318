"""The URL of a project's logo: which ones are accepted, and the origin from which browsers load it."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from taproof.contract.project import LOGO_URL_LIMIT
from taproof.core.origins import read_origin
from taproof.core.webhook_url import is_loopback


def logo_url_problem(url: str, *, allow_loopback_http: bool) -> str | None:
    """Return the problem with a logo's URL, as the rest of a sentence; None if it is accepted. "" means no logo.

    The browsers of users load the image. So addresses, and names that only one network knows, are refused, unless they
    are of this machine and `allow_loopback_http` is true, as in the sandbox.
    """
    if url == "":
        return None
    if len(url) > LOGO_URL_LIMIT:
        return f"must have at most {LOGO_URL_LIMIT} characters"
    if not url.isascii() or not url.isprintable() or any(mark in url for mark in " \\#"):
        return "must be plain ASCII without spaces, backslashes or a fragment; percent-encode the rest"
    host = urlsplit(logo_origin(url)).hostname or ""
    if not (_is_public_name(host) or (allow_loopback_http and is_loopback(host))):
        return "must begin with https:// and a host name with a dot, such as https://shop.example/logo.png"
    return None


def logo_origin(url: str) -> str:
    """Return the origin of a logo's URL; "" if it has none that a Content-Security-Policy can name."""
    try:
        parts = urlsplit(url)
        origin = read_origin(url[: len(parts.scheme) + len("://") + len(parts.netloc)])
    except ValueError:
        return ""
    return "" if "[" in origin else origin


def _is_public_name(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return "." in host and not is_loopback(host)
    return False
