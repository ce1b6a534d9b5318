"""Counts what a client address opens without any credential, and refuses too much of it."""

from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.core.errors import RateLimited
from taproof.http.errors import send_error
from taproof.http.limits.rates import RateLimits


class PageLimit:
    """ASGI middleware around what costs the event loop more than a cached answer does.

    Args:
        app: the application.
        limits: how much one client address may open.
    """

    def __init__(self, app: ASGIApp, limits: RateLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; a refusal is no page, which would cost as much as the page that is refused."""
        try:
            self._limits.open_page(scope)
        except RateLimited as error:
            await send_error(send, error)
            return
        await self._app(scope, receive, send)
