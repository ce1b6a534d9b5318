"""Sign-in for Flask, with Flask's own session.

    app.register_blueprint(taproof_blueprint(TaproofSettings.from_mapping(os.environ), guard=SqliteGuard("proofs.db")))

    @app.get("/members")
    @signed_in
    def members(): return f"Hello {escape(current_identity().messenger_name)}"

Three things to know:

- `guard` has no default. Gunicorn starts several processes with one option, and each would let the same proof in once:
  `SqliteGuard` is right for all processes of one machine, `MemoryGuard` for a single one.
- Flask keeps the session in the cookie itself, signed. So a new sign-in always is a new session; but a cookie that
  somebody has copied stays good after a sign-out too. With an extension that keeps sessions on the server, make it give
  the session a new id at each sign-in. Set `SESSION_COOKIE_SECURE = True` and `SESSION_COOKIE_SAMESITE = "Lax"`.
- Behind a proxy, wrap the application in Werkzeug's `ProxyFix`, so that `request.host_url` is the public address.

In every template `taproof` has `base_url`, `script_url` and `project_id`, for the button.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec
from urllib.parse import quote, urlencode

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
    """Return the blueprint of the sign-in: `POST {path}` and `POST {path}/sign-out`.

    Args:
        settings: of the application; `TaproofSettings.from_mapping(app.config)` reads them from Flask's configuration.
        guard: what lets each proof in only once, for all processes together.
        path: the button's `submit-url`. A `?next=/page` after it says where the browser goes once signed in.
    """
    endpoint = SignInEndpoint(settings, guard)
    blueprint = Blueprint("taproof", __name__, url_prefix=path)

    @blueprint.post("")
    def sign_in() -> ResponseReturnValue:
        answer = endpoint.sign_in(_asked())
        if answer.signed_in is not None:
            # Nothing of the session before is kept: somebody else may have put it there.
            session.clear()
            session[SESSION_KEY] = answer.session
        return _response(answer)

    @blueprint.post("/sign-out")
    def sign_out() -> ResponseReturnValue:
        answer = endpoint.sign_out(_asked())
        if answer.status == 200:
            session.clear()
        return _response(answer)

    @blueprint.app_context_processor
    def for_templates() -> dict[str, dict[str, str]]:
        return {"taproof": settings.for_pages}

    return blueprint


def current_identity() -> SignedIn | None:
    """Return who is signed in, None when nobody is."""
    return SignedIn.from_session(session.get(SESSION_KEY))


def signed_in(view: _View[_P]) -> _View[_P]:
    """Answer 401 instead of calling the view when nobody is signed in. Put it below the route."""

    @wraps(view)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> ResponseReturnValue:
        if current_identity() is None:
            return jsonify(error=SIGN_IN_FIRST), 401
        return view(*args, **kwargs)

    return guarded


def signed_in_or_redirect(page: str) -> Callable[[_View[_P]], _View[_P]]:
    """Send who is not signed in to `page`, with `?next=` the page that was asked for, instead of calling the view.

    Args:
        page: a path of this application, without a query: the page with the button. It puts `next` behind the button's
            `submit-url`; which `next` is followed is decided there, not here.
    """

    def decorate(view: _View[_P]) -> _View[_P]:
        @wraps(view)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> ResponseReturnValue:
            if current_identity() is None:
                path = quote(request.path)
                asked_for = f"{path}?{request.query_string.decode('latin-1')}" if request.query_string else path
                return redirect(f"{page}?{urlencode({'next': asked_for})}", 303)
            return view(*args, **kwargs)

        return guarded

    return decorate


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
        # Another part of the application may have read it before; then Flask keeps it, and the stream is at its end.
        body=body.kept() or request.get_data(),
        next=request.args.get("next"),
        held=session.get(SESSION_KEY),
    )


def _response(answer: EndpointResponse) -> ResponseReturnValue:
    return jsonify(answer.content), answer.status, HEADERS
