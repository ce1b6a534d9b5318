"""Posts an event to an application, which may run on this machine, with the client that posts webhooks."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from multidict import CIMultiDict

from taproof.config.settings import InvalidSettings
from taproof.core.address_rules import RANGES, AddressRules
from taproof.core.webhook_url import is_loopback, split_url
from taproof.service.webhooks import SignedRequest, WebhookResponse
from taproof.webhooks.http_client import open_webhook_client

_HOP_BY_HOP: Final = frozenset(
    {
        *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers of one connection (RFC 9110, 7.6.1 and 11.7.2), which the next connection replaces."""

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[WebhookResponse]]


@contextlib.asynccontextmanager
async def open_poster() -> AsyncIterator[Post]:
    """Yield a function that posts to a URL once, at any address and port, without following redirects."""
    async with open_webhook_client(AddressRules(tuple(RANGES)), range(1, 65536), allow_http=True) as client:

        async def post(url: str, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
            connection = ",".join(value for name, value in headers.items() if name.lower() == "connection")
            dropped = _HOP_BY_HOP | {each.strip().lower() for each in connection.split(",")}
            kept = CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)
            return await client.post(SignedRequest(url, kept, body))

        yield post


def require_url(option: str, url: str, *, loopback: bool) -> None:
    """Refuse a value of an option that is not an http:// or https:// URL or, with `loopback`, not of this machine."""
    try:
        host = split_url(url).host
    except ValueError:
        raise InvalidSettings(
            [f"{option} must be an http:// or https:// URL without a user name or password."]
        ) from None
    if loopback and not is_loopback(host):
        # An event contains a session token and the user's identity, so it must not leave this machine.
        raise InvalidSettings([f"{option} must be a URL of this machine, such as http://127.0.0.1:3000/hooks/taproof."])
