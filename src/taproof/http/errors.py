"""The HTTP response to a failed request (contract.md, Everywhere).

The body is exactly `{"error": sentence}`; the header `X-Error-Code` contains the stable code. Sentence, code and status
are attributes of the error's class in `core/errors.py`. Plain ASGI endpoints use `error_response` and `send_error`;
Starlette applications, and so FastAPI's, use `install_error_handlers`. `bearer_token` is here because a request without
a token fails with 401.
"""

import json
from collections.abc import Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taproof.core.errors import InsufficientScope, InternalError, MethodNotAllowed, NotFound, RateLimited, TaproofError
from taproof.core.stacks import describe_stack

RawHeaders = list[tuple[bytes, bytes]]

STATUS_HEADERS: Final[dict[int, RawHeaders]] = {
    HTTPStatus.UNAUTHORIZED: [(b"www-authenticate", b"Bearer")],
    HTTPStatus.SERVICE_UNAVAILABLE: [(b"retry-after", b"1")],
    # RFC 9110, section 12.5.3.
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: [(b"accept-encoding", b"identity")],
    # The rest of the body is not read, so the connection cannot be reused for another request.
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: [(b"connection", b"close")],
}
"""Headers of responses with this status, both JSON and pages."""

NO_PAGE: Final[RawHeaders] = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
"""Headers of every response that is not a page. Browsers must not guess its type or show it in a frame."""

_log = structlog.get_logger("taproof.api")


def error_response(
    error: Exception, extra_headers: Iterable[tuple[bytes, bytes]] = ()
) -> tuple[int, RawHeaders, bytes]:
    """Return the status, headers and body of the response to a failed request.

    An internal fault (status 500, or not a `TaproofError`) is returned as `InternalError`. Only its type and stack are
    logged, because its message can contain the caller's data. `extra_headers` are such as `allow` with 405.
    """
    if not isinstance(error, TaproofError) or error.status == InternalError.status:
        _log.error("internal_error", error=type(error).__name__, stack=describe_stack(error))
        error = InternalError()
    body = json.dumps({"error": error.sentence}, ensure_ascii=False).encode(errors="replace")
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"x-error-code", error.code.encode()),
        *NO_PAGE,
        *STATUS_HEADERS.get(error.status, ()),
        *retry_after(error),
        *_missing_scope(error),
        *extra_headers,
    ]
    return error.status, headers, body


def retry_after(error: TaproofError) -> RawHeaders:
    """Return the `Retry-After` header for RateLimited; an empty list for other errors."""
    return [(b"retry-after", b"%d" % error.retry_after)] if isinstance(error, RateLimited) else []


def _missing_scope(error: TaproofError) -> RawHeaders:
    """Return the header that names the missing scope (RFC 6750, section 3.1); an empty list for other errors."""
    if not isinstance(error, InsufficientScope):
        return []
    return [(b"www-authenticate", b'Bearer error="insufficient_scope", scope="%s"' % error.scope.encode())]


def bearer_token(scope: MutableMapping[str, Any]) -> str | None:
    """Return the credential from a request's only `Authorization: Bearer …` header (RFC 6750, section 2.1), or None.

    Two such headers count as none, because different readers of the request could each use a different one.
    """
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(values) != 1:
        return None
    scheme, _, credential = values[0].decode("latin-1").partition(" ")
    return credential.strip(" ") if scheme.lower() == "bearer" else None


async def send_error(send: Send, error: Exception, extra_headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """Send this error as the response over plain ASGI; see `error_response`."""
    status, headers, body = error_response(error, extra_headers)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class AnswerFailures:
    """ASGI middleware that turns every exception from the application into an error response.

    Otherwise the server would log the exception with its message, which can contain a secret.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, and send an error if it fails before it starts its response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def noting_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, noting_send)
        except Exception as error:  # noqa: BLE001 — this is the last place that can send a response.
            if started:
                error_response(error)  # Creates only the log entry, because part of the response has already been sent.
            else:
                await send_error(send, error)


def install_error_handlers(app: Starlette) -> None:
    """Make a Starlette application return every failure in the usual error shape."""
    for kind in (TaproofError, HTTPException):
        app.add_exception_handler(kind, _on_error)
    app.add_middleware(AnswerFailures)


async def _on_error(request: Request, error: Exception) -> Response:
    match error:
        case HTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED):
            return failure_response(MethodNotAllowed(), [(b"allow", ", ".join(_allowed_methods(request)).encode())])
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            return failure_response(NotFound())
    return failure_response(error)


def failure_response(error: Exception, extra_headers: Iterable[tuple[bytes, bytes]] = ()) -> Response:
    """Return the response to a failure, for Starlette."""
    status, headers, body = error_response(error, extra_headers)
    response = Response(body, status)
    response.raw_headers = headers
    return response


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes at this path. The router itself checks only the first route."""
    path = request.scope["path"]
    found = (route.methods for route in request.app.routes if route.path_regex.match(path))
    return sorted(set[str]().union(*found))
