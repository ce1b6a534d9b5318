"""Sign-in for FastAPI and Starlette, with the session of Starlette's `SessionMiddleware`.

    settings = TaproofSettings.from_mapping(os.environ)
    app = FastAPI(routes=taproof_routes(settings, guard=SqliteGuard("proofs.db")))
    app.add_middleware(SessionMiddleware, secret_key=…, https_only=True)

    @app.get("/members")
    def members(user: Annotated[SignedIn, Depends(signed_in)]) -> str: …

Two things to know:

- `SessionMiddleware` stores the session in the signed cookie itself. Every sign-in starts a new session, but a copied
  cookie stays valid until `max_age`, even after a sign-out: keep `max_age` short. If a middleware stores sessions on
  the server, make it change the session id at each sign-in.
- Behind a proxy, let the server trust its forwarding headers (`uvicorn --proxy-headers --forwarded-allow-ips …`).
"""

from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from taproof.integrations.endpoint import (
    HEADERS,
    SESSION_KEY,
    SIGN_IN_FIRST,
    Body,
    EndpointRequest,
    EndpointResponse,
    SettingsError,
    SignedIn,
    SignInEndpoint,
    TaproofSettings,
    page_address,
)
from taproof.sdk.guard import SingleUseGuard

__all__ = [
    "SettingsError",
    "SignedIn",
    "TaproofSettings",
    "current_identity",
    "signed_in",
    "signed_in_or_redirect",
    "taproof_routes",
]


def taproof_routes(settings: TaproofSettings, *, guard: SingleUseGuard, path: str = "/auth/taproof") -> list[BaseRoute]:
    """Return the sign-in routes: `POST {path}` and `POST {path}/sign-out`.

    Args:
        settings: the application's settings.
        guard: accepts each proof only once. All processes must share it: use `SqliteGuard` on one machine, and
            `MemoryGuard` only for a single process.
        path: the button's `submit-url`. If the button appends `?next=/page`, the browser opens that page after sign-in.
    """
    endpoint = SignInEndpoint(settings, guard)

    async def sign_in(request: Request) -> Response:
        # This runs in a thread, because the guard writes to a disk or calls another server.
        return _response(request, await run_in_threadpool(endpoint.sign_in, await _asked(request)))

    async def sign_out(request: Request) -> Response:
        return _response(request, endpoint.sign_out(await _asked(request)))

    return [
        Route(path, sign_in, methods=["POST"], name="taproof_sign_in"),
        Route(f"{path}/sign-out", sign_out, methods=["POST"], name="taproof_sign_out"),
    ]


def current_identity(request: Request) -> SignedIn | None:
    """Return the signed-in user, or None if nobody is signed in."""
    return SignedIn.from_session(request.session.get(SESSION_KEY))


async def signed_in(request: Request) -> SignedIn:
    """Return the signed-in user. This is a FastAPI dependency: `Annotated[SignedIn, Depends(signed_in)]`.

    Raises:
        HTTPException: 401 if nobody is signed in.
    """
    identity = current_identity(request)
    if identity is None:
        raise HTTPException(401, SIGN_IN_FIRST)
    return identity


def signed_in_or_redirect(page: str) -> Callable[[Request], Awaitable[SignedIn]]:
    """Return a dependency that redirects visitors who are not signed in to `page`, with the requested page as `?next=`.

    Args:
        page: the page with the button, a path of this application without a query. It must append `next` to the
            button's `submit-url`; the sign-in endpoint checks it.
    """

    async def signed_in_here(request: Request) -> SignedIn:
        identity = current_identity(request)
        if identity is None:
            location = page_address(page, request.scope["path"], request.url.query)
            raise HTTPException(303, SIGN_IN_FIRST, {"Location": location})
        return identity

    return signed_in_here


async def _asked(request: Request) -> EndpointRequest:
    body = Body()
    async for chunk in request.stream():
        if not body.add(chunk):
            break
    return EndpointRequest(
        content_type=_header(request, "content-type"),
        fetch_site=_header(request, "sec-fetch-site"),
        origin=_header(request, "origin"),
        scheme=request.url.scheme,
        host=request.url.netloc,
        body=body.kept(),
        next=request.query_params.get("next"),
        held=request.session.get(SESSION_KEY),
    )


def _header(request: Request, name: str) -> str | None:
    # `get` would return only the first of several values. WSGI servers also join repeated headers.
    values = request.headers.getlist(name)
    return ", ".join(values) if values else None


def _response(request: Request, answer: EndpointResponse) -> Response:
    if answer.session is not None:
        request.session.clear()
        request.session.update(answer.session)
    return JSONResponse(answer.content, answer.status, headers=HEADERS)
