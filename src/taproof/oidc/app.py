"""The OpenID provider as one ASGI application: builds the endpoints and lists all routes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from taproof.core.clock import Clock
from taproof.core.errors import MethodNotAllowed, NotFound
from taproof.http.fixed_answer import FixedAnswer
from taproof.http.limits.pages import PageLimit
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.oidc.answers import failure_answer, json_answer
from taproof.oidc.authorize import AuthorizationPages
from taproof.oidc.device import DevicePages
from taproof.oidc.metadata import MetadataEndpoints
from taproof.oidc.pages.rendering import Pages
from taproof.oidc.token import ProtocolEndpoints
from taproof.service.oidc.devices import Devices
from taproof.service.oidc.keys import SigningKeys
from taproof.service.oidc.requests import AuthorizationRequests
from taproof.service.oidc.sign_in import OidcSignIns
from taproof.service.oidc.tokens import Tokens

ShowFailure = Callable[[Request, Exception], Awaitable[Response]]

_FOREVER: Final = ((b"cache-control", b"public, max-age=31536000, immutable"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderServices:
    """The use cases that the endpoints call."""

    requests: AuthorizationRequests
    sign_ins: OidcSignIns
    tokens: Tokens
    devices: Devices
    keys: SigningKeys


class OpenidProvider:
    """Serves the OpenID provider: `apps` are its applications, by path.

    Args:
        services: the use cases.
        clock: returns the time in ms.
        issuer: the service's base URL.
        limits: the rate limits of client addresses and projects.
        metrics: count new sessions.
    """

    def __init__(
        self, services: ProviderServices, clock: Clock, *, issuer: str, limits: RateLimits, metrics: Metrics
    ) -> None:
        pages = Pages()
        self._sign_in_pages = AuthorizationPages(
            services.requests, services.sign_ins, pages, issuer, clock, limits=limits, metrics=metrics
        )
        devices = DevicePages(services.devices, self._sign_in_pages, pages, limits=limits, metrics=metrics)
        calls = _application(
            [
                *ProtocolEndpoints(services.tokens, services.requests, services.devices, limits).routes(),
                *MetadataEndpoints(issuer, services.keys).routes(),
            ],
            _show_failed_call,
        )
        shown = PageLimit(
            _application(
                [*self._sign_in_pages.routes(), *devices.routes(), *_static_files(pages)], self._show_failed_page
            ),
            limits,
        )
        self.apps: Final[dict[str, ASGIApp]] = {
            "/.well-known/openid-configuration": calls,
            "/.well-known/oauth-authorization-server": calls,
            **{f"/oidc/{name}": calls for name in ("token", "userinfo", "jwks", "par", "device_authorization")},
            "/oidc/*": shown,
            "/device": shown,
        }

    async def _show_failed_page(self, request: Request, error: Exception) -> Response:
        shown = _known(error)
        response = await self._sign_in_pages.show_failure(request, shown)
        return _with_headers(response, error)


async def _show_failed_call(_: Request, error: Exception) -> Response:
    shown = _known(error)
    if isinstance(shown, (MethodNotAllowed, NotFound)):
        content = {"error": "invalid_request", "error_description": shown.sentence}
        return _with_headers(json_answer(content, shown.status), error)
    return failure_answer(shown)


def _known(error: Exception) -> Exception:
    """Return the error of this service for one that Starlette raised."""
    if not isinstance(error, HTTPException):
        return error
    return MethodNotAllowed() if error.status_code == MethodNotAllowed.status else NotFound()


def _with_headers(response: Response, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        response.headers.update(error.headers or {})
    return response


def _application(routes: list[BaseRoute], show_failure: ShowFailure) -> ASGIApp:
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    # Disable Starlette's own error response.
    app.middleware_stack = ExceptionMiddleware(app.router, {HTTPException: show_failure, Exception: show_failure})
    return app


def _static_files(pages: Pages) -> list[BaseRoute]:
    found = (
        (name, pages.static_file(name))
        for name in (
            *("oidc.css", "icon.svg", "sign_in.js", "qr_code.js", "form_post.js"),
            *("return.js", "elsewhere.js"),
        )
    )
    return [Route(f"/oidc/static/{name}", FixedAnswer(*file, _FOREVER)) for name, file in found if file is not None]
