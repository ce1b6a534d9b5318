"""The middleware around every page: security headers, refusal of requests from other sites, and error pages.

Sources: the OWASP cheat sheets on cross-site request forgery and on HTTP headers; Fetch Metadata (W3C).
"""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taproof.core.errors import InternalError, StoreUnavailable, TaproofError
from taproof.http.errors import error_response, retry_after, send_error
from taproof.http.same_origin import is_same_origin

ShowFailure = Callable[[Request, TaproofError, int], Awaitable[Response]]


def content_security_policy(image_origin: str = "") -> str:
    """Return the policy of a page. Images may also come from `image_origin`, if one is given."""
    images = f"'self' data: {image_origin}".rstrip()
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


SECURITY_HEADERS: Final = (
    (b"content-security-policy", content_security_policy().encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not no-referrer: browsers would then send `Origin: null` with forms, which `is_same_origin` refuses.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_NOT_STORED: Final = (b"cache-control", b"no-store")
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


class RequestFromElsewhere(TaproofError, code="request_from_elsewhere", status=403):
    """The browser sent the request from a page of another origin."""

    sentence = "This request did not come from a page of this console. Go back to the console and use the form there."


class Guard:
    """ASGI middleware around the console."""

    def __init__(self, app: ASGIApp, show_failure: ShowFailure) -> None:
        self.app = app
        self._show_failure = show_failure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = False

        async def guarding_send(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                sent = {name for name, _ in message["headers"]}
                added = [header for header in (*SECURITY_HEADERS, _NOT_STORED) if header[0] not in sent]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        request = Request(scope, receive)
        try:
            if scope["method"] not in _SAFE_METHODS and not is_same_origin(request):
                raise RequestFromElsewhere  # noqa: TRY301 — handled below like every other failure.
            await self.app(scope, receive, guarding_send)
        except Exception as error:  # noqa: BLE001 — this is the last place that can send a response.
            shown = _shown(error)
            if not started:
                try:
                    response = await self._show_failure(request, shown, shown.status)
                except Exception as failure:  # noqa: BLE001 — if it were raised further, the server would log its message.
                    await send_error(guarding_send, failure)
                    return
                response.raw_headers += retry_after(shown)
                await response(scope, receive, guarding_send)


def _shown(error: Exception) -> TaproofError:
    """Return the error that the page shows. An internal fault is logged with only its type and stack."""
    if isinstance(error, TaproofError) and error.status != InternalError.status:
        return StoreUnavailable() if isinstance(error, StoreUnavailable) else error
    error_response(error)
    return InternalError()
