"""A shop with a page for members, who sign in with a messenger account. `./run` starts it."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates
from starlette.middleware.sessions import SessionMiddleware

from taproof import SqliteGuard
from taproof.integrations.starlette import (
    SignedIn,
    TaproofSettings,
    current_identity,
    signed_in_or_redirect,
    taproof_routes,
)

HERE = Path(__file__).parent
DATA = Path(os.environ.get("DATA_DIR", HERE))

# Sign-in needs the settings, the routes, and a session that stores the user.
settings = TaproofSettings.from_mapping(os.environ)
app = FastAPI(routes=taproof_routes(settings, guard=SqliteGuard(DATA / "proofs.db")))
app.add_middleware(
    SessionMiddleware,
    secret_key=os.environ["SESSION_SECRET"],
    session_cookie="fastapi_example",
    max_age=8 * 60 * 60,
    https_only=os.environ.get("SECURE_COOKIES") == "1",  # Set it to 1 wherever the site uses HTTPS.
)

templates = Jinja2Templates(HERE / "templates")
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self' {settings.base_url}; connect-src 'self' {settings.base_url};"
        " style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


@app.middleware("http")
async def send_security_headers(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
    """Send the same headers with every page."""
    response = await proceed(request)
    response.headers.update(SECURITY_HEADERS)
    return response


@app.get("/", response_class=HTMLResponse)
def show_home(request: Request, next: str = "/members") -> Response:  # noqa: A002 — the name in the URL.
    """Show the page with the button; `next` is the page to open after sign-in."""
    context = {"taproof": settings.for_pages, "user": current_identity(request), "next": next}
    return templates.TemplateResponse(request, "home.html", context)


@app.get("/members", response_class=HTMLResponse)
def show_members(request: Request, user: Annotated[SignedIn, Depends(signed_in_or_redirect("/"))]) -> Response:
    """Show the page for members."""
    return templates.TemplateResponse(request, "members.html", {"user": user})
