"""Which webhook URLs are accepted (contract.md, Developer endpoints)."""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

WEBHOOK_URL_LIMIT: Final = 2048


def webhook_url_problem(url: str, *, allow_loopback_http: bool) -> str | None:
    """Return why `url` cannot be a webhook URL, as the rest of a sentence; None if it can. "" means no webhook."""
    if url == "":
        return None
    if len(url) > WEBHOOK_URL_LIMIT:
        return f"must have at most {WEBHOOK_URL_LIMIT} characters"
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "must be plain ASCII without spaces or control characters; percent-encode the rest"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a URL"
    if not parts.hostname or port == 0:
        return "must name a host, such as https://example.com/hooks"
    if "@" in parts.netloc:
        return "must not contain a user name or password"
    if parts.scheme == "https" or (parts.scheme == "http" and allow_loopback_http and is_loopback(parts.hostname)):
        return None
    return "must begin with https://"


def is_loopback(host: str) -> bool:
    """Tell whether `host` names this machine itself: `localhost` or a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
