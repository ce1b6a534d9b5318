"""The responses of the OpenID endpoints, and what their errors look like.

Sources: RFC 6749, sections 5.1 and 5.2; RFC 6750, section 3; RFC 9207.
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from taproof.core.errors import (
    InvalidRequest,
    PayloadTooLarge,
    RateLimited,
    StoreUnavailable,
    TaproofError,
    UnsupportedContentEncoding,
)
from taproof.core.oidc.errors import OAuthError
from taproof.core.oidc.requests import PARAMETER_LIMIT, ReturnAddress, read_parameters
from taproof.http.body import body_headers, read_body
from taproof.http.errors import NO_PAGE, STATUS_HEADERS, RawHeaders, error_response, retry_after
from taproof.oidc.pages.rendering import Pages

ANY_ORIGIN: Final[RawHeaders] = [(b"access-control-allow-origin", b"*")]
_PREFLIGHT: Final[RawHeaders] = [
    *ANY_ORIGIN,
    (b"access-control-allow-methods", b"GET, POST"),
    # The wildcard does not include Authorization.
    (b"access-control-allow-headers", b"Authorization, Content-Type, *"),
    (b"access-control-max-age", b"86400"),
    (b"content-length", b"0"),
    *NO_PAGE,
]
_JSON: Final[RawHeaders] = [(b"content-type", b"application/json"), *NO_PAGE]
_NOT_STORED: Final[RawHeaders] = [(b"cache-control", b"no-store"), (b"pragma", b"no-cache")]
_FORM: Final = b"application/x-www-form-urlencoded"


def json_answer(
    content: Mapping[str, Any], status: int = 200, headers: RawHeaders | None = None, *, cache: bytes | None = None
) -> Response:
    """Return a JSON response. It must not be stored unless `cache` is its Cache-Control."""
    response = Response(json.dumps(content, ensure_ascii=False).encode(), status)
    caching = _NOT_STORED if cache is None else [(b"cache-control", cache)]
    response.raw_headers = [*_JSON, (b"content-length", b"%d" % len(response.body)), *caching, *(headers or [])]
    return response


def page_answer(
    page: bytes,
    status: int = 200,
    headers: RawHeaders | None = None,
    *,
    leaves: bool = False,
    logo_url: str = "",
) -> Response:
    """Return a page. `leaves`: one of its forms leads to the application; `logo_url` is its image."""
    response = Response(page, status)
    response.raw_headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", b"%d" % len(page)),
        *Pages.headers(leaves=leaves, logo_url=logo_url),
        *(headers or []),
    ]
    return response


def preflight_routes(*paths: str) -> list[BaseRoute]:
    """Return the answers to the preflight requests of browsers, for endpoints that scripts of any origin may call."""
    return [Route(path, _answer_preflight, methods=["OPTIONS"]) for path in paths]


async def _answer_preflight(_: Request) -> Response:
    response = Response(b"", 200)
    response.raw_headers = _PREFLIGHT
    return response


def drawing_answer(drawing: bytes) -> Response:
    """Return an SVG file. It must not be stored."""
    response = Response(drawing)
    length = (b"content-length", b"%d" % len(drawing))
    response.raw_headers = [(b"content-type", b"image/svg+xml"), *NO_PAGE, length, *_NOT_STORED]
    return response


def redirect_answer(location: str) -> Response:
    """Return a redirect with 303, so that a browser does not repeat a POST with its body (RFC 9700, section 4.12)."""
    response = Response(b"", 303)
    response.raw_headers = [
        (b"location", location.encode("ascii")),
        (b"content-length", b"0"),
        *_NOT_STORED,
        # The application does not need the URL of the redirecting page.
        (b"referrer-policy", b"no-referrer"),
        *NO_PAGE,
    ]
    return response


def authorization_answer(pages: Pages, language: str, address: ReturnAddress, fields: Mapping[str, str]) -> Response:
    """Return an authorization response, in the mode that the client asked for."""
    redirect_uri = address.redirect_uri
    if address.response_mode == "form_post":
        return page_answer(pages.form_post(redirect_uri, fields, language), leaves=True)
    separator = "&" if "?" in redirect_uri else "?"
    answer = urlencode(fields)
    return redirect_answer(f"{redirect_uri}{separator}{answer}{f'#{answer}' if address.in_fragment else ''}")


async def read_form(request: Request) -> dict[str, str]:
    """Return the parameters of a form in the body. A call without parameters may have neither body nor Content-Type.

    Raises:
        InvalidRequest, PayloadTooLarge, UnsupportedContentEncoding: the body is late, incomplete, too large or
            compressed.
        OAuthError: the body is not a form, or its parameters are malformed.
    """
    content_type, length = body_headers(request.scope["headers"])
    is_form = content_type.partition(b";")[0].strip().lower() == _FORM
    if content_type and not is_form:
        raise OAuthError("invalid_request", "Send the parameters as application/x-www-form-urlencoded.")
    body = await read_body(request.receive, length)
    if body and not is_form:
        raise OAuthError("invalid_request", "Send the Content-Type application/x-www-form-urlencoded.")
    return read_query(body)


def read_query(text: bytes) -> dict[str, str]:
    """Return the parameters of a query string or a form. Characters that should be percent-encoded may be UTF-8.

    Raises:
        OAuthError: they are malformed.
    """
    try:
        pairs = parse_qsl(text.decode(), keep_blank_values=True, errors="strict", max_num_fields=PARAMETER_LIMIT)
    except ValueError:
        raise OAuthError(
            "invalid_request", f"The parameters are not UTF-8, or there are more than {PARAMETER_LIMIT}."
        ) from None
    return read_parameters(pairs)


def failure_answer(error: Exception, headers: RawHeaders | None = None) -> Response:
    """Return the response to a failed call of a client: the error of its RFC, or the nearest one."""
    status = error.status if isinstance(error, (OAuthError, TaproofError)) else 500
    more = list(headers or [])
    match error:
        case OAuthError():
            content = error.to_answer()
        case RateLimited():
            content = {"error": "temporarily_unavailable", "error_description": error.sentence}
            more += retry_after(error)
        case InvalidRequest() | PayloadTooLarge() | UnsupportedContentEncoding():
            content = {"error": "invalid_request", "error_description": error.sentence}
            more += STATUS_HEADERS.get(status, [])
        case StoreUnavailable():
            content = {"error": "temporarily_unavailable", "error_description": error.sentence}
            more += STATUS_HEADERS.get(status, [])
        case _:
            error_response(error)  # Logs the type and the stack.
            status, content = 500, {"error": "server_error", "error_description": "Internal error."}
    return json_answer(content, status, more)


def challenge(error: Exception, scheme: str) -> RawHeaders:
    """Return the WWW-Authenticate header of a 401 (RFC 6749, section 5.2; RFC 6750, section 3)."""
    if not isinstance(error, OAuthError) or error.status != 401:
        return []
    value = 'Basic realm="Taproof"'
    if scheme == "Bearer":
        value = f'Bearer error="{error.error}", error_description="{error.description}"'
    return [(b"www-authenticate", value.encode())]
