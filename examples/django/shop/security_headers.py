"""Security headers: pages can load scripts from, and call, only the application itself and Taproof."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse


class SecurityHeadersMiddleware:
    """Send the same headers with every page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        taproof = settings.TAPROOF_BASE_URL.rstrip("/")
        self._policy = (
            f"default-src 'none'; script-src 'self' {taproof}; connect-src 'self' {taproof};"
            " style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the response of the next middleware, with the headers."""
        response = self._get_response(request)
        response["Content-Security-Policy"] = self._policy
        response["Cache-Control"] = "no-store"
        return response
