"""Sign-in for Flask, with Flask's own session.

    app.register_blueprint(taproof_blueprint(TaproofSettings.from_mapping(os.environ), guard=SqliteGuard("proofs.db")))

    @app.get("/members")
    @signed_in
    def members(): return f"Hello {escape(current_identity().messenger_name)}"

Two things to know:

- Flask stores the session in the signed cookie itself. Every sign-in starts a new session, but a copied cookie stays
  valid even after a sign-out. If an extension stores sessions on the server, make it change the session id at each
  sign-in. Set `SESSION_COOKIE_SECURE = True` and `SESSION_COOKIE_SAMESITE = "Lax"`.
- Behind a proxy, wrap the application in Werkzeug's `ProxyFix`, so that `request.host_url` is the public address.

Every template can use `taproof`, with `base_url`, `script_url` and `project_id`, for the button.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from flask import Blueprint, jsonify, redirect, request, session
from flask.typing import ResponseReturnValue

from taproof.integrations.endpoint import (
    CHUNK,
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
    "taproof_blueprint",
]

_P = ParamSpec("_P")
_View = Callable[_P, ResponseReturnValue]


def taproof_blueprint(settings: TaproofSettings, *, guard: SingleUseGuard, path: str = "/auth/taproof") -> Blueprint:
    """Return the sign-in blueprint: `POST {path}` and `POST {path}/sign-out`.

    Args:
        settings: the settings; `TaproofSettings.from_mapping(app.config)` reads them from Flask's configuration.
        guard: accepts each proof only once. All processes must share it: use `SqliteGuard` on one machine, and
            `MemoryGuard` only for a single process.
        path: the button's `submit-url`. If the button appends `?next=/page`, the browser opens that page after sign-in.
    """
    endpoint = SignInEndpoint(settings, guard)
    blueprint = Blueprint("taproof", __name__, url_prefix=path)

    @blueprint.post("")
    def sign_in() -> ResponseReturnValue:
        return _response(endpoint.sign_in(_asked()))

    @blueprint.post("/sign-out")
    def sign_out() -> ResponseReturnValue:
        return _response(endpoint.sign_out(_asked()))

    @blueprint.app_context_processor
    def for_templates() -> dict[str, dict[str, str]]:
        return {"taproof": settings.for_pages}

    return blueprint


def current_identity() -> SignedIn | None:
    """Return the signed-in user, or None if nobody is signed in."""
    return SignedIn.from_session(session.get(SESSION_KEY))


def signed_in(view: _View[_P]) -> _View[_P]:
    """Answer 401 instead of calling the view if nobody is signed in. Put this decorator below the route."""
    return _guarded(view, lambda: (jsonify(error=SIGN_IN_FIRST), 401))


def signed_in_or_redirect(page: str) -> Callable[[_View[_P]], _View[_P]]:
    """Redirect visitors who are not signed in to `page`, with the requested page as `?next=`.

    Args:
        page: the page with the button, a path of this application without a query. It must append `next` to the
            button's `submit-url`; the sign-in endpoint checks it.
    """

    def refuse() -> ResponseReturnValue:
        return redirect(page_address(page, request.path, request.query_string.decode("latin-1")), 303)

    return lambda view: _guarded(view, refuse)


def _guarded(view: _View[_P], refuse: Callable[[], ResponseReturnValue]) -> _View[_P]:
    @wraps(view)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> ResponseReturnValue:
        return refuse() if current_identity() is None else view(*args, **kwargs)

    return guarded


def _asked() -> EndpointRequest:
    body = Body()
    while body.add(request.stream.read(CHUNK)):
        pass
    return EndpointRequest(
        content_type=request.headers.get("Content-Type"),
        fetch_site=request.headers.get("Sec-Fetch-Site"),
        origin=request.headers.get("Origin"),
        scheme=request.scheme,
        host=request.host,
        # If the application has already read the body, Flask has cached it and the stream is empty.
        body=body.kept() or request.get_data(),
        next=request.args.get("next"),
        held=session.get(SESSION_KEY),
    )


def _response(answer: EndpointResponse) -> ResponseReturnValue:
    if answer.session is not None:
        session.clear()
        session.update(answer.session)
    return jsonify(answer.content), answer.status, HEADERS
