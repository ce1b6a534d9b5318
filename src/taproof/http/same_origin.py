"""Detect requests that another site's page sends (cross-site request forgery).

Sources: the OWASP cheat sheet on cross-site request forgery; Fetch Metadata (W3C).
"""

from starlette.requests import Request


def is_same_origin(request: Request) -> bool:
    """Return whether a page of this origin sent the request, by headers that page scripts cannot set.

    Browsers without `Sec-Fetch-Site` send `Origin` with every form. A request with neither is refused: only browsers
    show the pages with these forms.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    return request.headers.get("origin") == origin_of(request)


def origin_of(request: Request) -> str:
    """Return the origin to which the client sent a request, as its Host header names it."""
    return f"{request.scope['scheme']}://{request.headers.get('host', '')}"
