"""The OpenID provider as two ASGI applications: builds the endpoints and lists all routes."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from taproof.core.brand import Brand
from taproof.core.clock import Clock
from taproof.core.errors import MethodNotAllowed, NotFound
from taproof.http.fixed_answer import FixedAnswer
from taproof.http.limits.pages import PageLimit
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.oidc.answers import failure_answer, json_answer
from taproof.oidc.authorize import AuthorizationPages
from taproof.oidc.device import DevicePages
from taproof.oidc.end_session import EndSessionPages
from taproof.oidc.metadata import MetadataEndpoints
from taproof.oidc.pages.rendering import Pages
from taproof.oidc.services import ProviderServices
from taproof.oidc.token import ProtocolEndpoints

ShowFailure = Callable[[Request, Exception], Awaitable[Response]]

_FOREVER: Final = ((b"cache-control", b"public, max-age=31536000, immutable"),)


class OpenidProvider:
    """Serves the OpenID provider: `calls` the paths that applications call, and `pages` those that browsers show.

    Args:
        services: the use cases.
        clock: returns the time in ms.
        issuer: the service's base URL.
        brand: the operator's name and logo.
        limits: the rate limits of client addresses and projects.
        metrics: count new sessions.
    """

    def __init__(
        self,
        services: ProviderServices,
        clock: Clock,
        *,
        issuer: str,
        brand: Brand,
        limits: RateLimits,
        metrics: Metrics,
    ) -> None:
        pages = Pages(brand)
        self.load_templates: Final = pages.load_templates
        self._sign_in_pages = AuthorizationPages(
            services.requests, services.sign_ins, pages, issuer, clock, limits=limits, metrics=metrics
        )
        devices = DevicePages(services.devices, self._sign_in_pages, pages, limits=limits, metrics=metrics)
        self.calls: Final = _application(
            [
                *ProtocolEndpoints(services, limits).routes(),
                *MetadataEndpoints(issuer, services.keys).routes(),
            ],
            _show_failed_call,
        )
        self.pages: Final[ASGIApp] = PageLimit(
            _application(
                [
                    *self._sign_in_pages.routes(),
                    *devices.routes(),
                    *EndSessionPages(services.sign_outs, pages).routes(),
                    *_static_files(pages),
                ],
                self._show_failed_page,
            ),
            limits,
        )

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
    routes: list[BaseRoute] = [
        Route(f"/oidc/static/{name}", FixedAnswer(*file, _FOREVER)) for name, file in found if file is not None
    ]
    logo = pages.brand.logo
    return routes if logo is None else [*routes, Route(pages.logo_path, FixedAnswer(*logo, _FOREVER))]
