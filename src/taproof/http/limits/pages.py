"""Limit the pages that a client address opens without a credential."""

from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.core.errors import RateLimited
from taproof.http.errors import send_error
from taproof.http.limits.rates import RateLimits


class PageLimit:
    """ASGI middleware around an application that costs the event loop more than a cached answer does."""

    def __init__(self, app: ASGIApp, limits: RateLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. A refusal is not a page, which would cost as much as the refused one."""
        try:
            self._limits.count_page(scope)
        except RateLimited as error:
            await send_error(send, error)
            return
        await self._app(scope, receive, send)
