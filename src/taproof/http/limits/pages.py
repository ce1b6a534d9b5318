"""Limit how many pages a client address can open without a credential."""

from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.core.errors import RateLimited
from taproof.http.errors import send_error
from taproof.http.limits.rates import RateLimits


class PageLimit:
    """ASGI middleware for an application that takes more event loop time than a cached response."""

    def __init__(self, app: ASGIApp, limits: RateLimits) -> None:
        self.app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. A refusal is not a page, because that would cost as much as the request itself."""
        try:
            self._limits.count_page(scope)
        except RateLimited as error:
            await send_error(send, error)
            return
        await self.app(scope, receive, send)
