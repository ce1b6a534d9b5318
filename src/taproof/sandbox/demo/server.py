"""The demo application at /demo: a minimal application that signs users in through Taproof.

Its page (`demo.html`) calls the two public endpoints. This file is the application's own small
backend. It knows the project's id and its webhook secret, and checks proofs with the SDK, without calling the service.
Sign-ins are stored in memory and end with the process.
"""

import base64
import html
import io
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import segno
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from taproof.core.clock import MINUTE, SECOND, Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import InvalidRequest, TaproofError
from taproof.http.body import read_json_object, text_field
from taproof.http.errors import install_error_handlers
from taproof.sdk.proof import Identity, ProofError, verify_proof

COOKIE: Final = "taproof_demo"
SIGNED_IN_LIFETIME: Final = 60 * MINUTE
SIGNED_IN_LIMIT: Final = 1_000
"""Maximum number of stored sign-ins. A new one replaces the oldest, so that memory use is limited."""
_STATIC: Final = Path(__file__).parent
_DEEPLINK: Final = re.compile(r"(?:https?|tg)://[\x21-\x7e]{1,500}")
_SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Demo:
    """The demo's routes, as an ASGI application that answers full paths under /demo.

    Args:
        project_id: the project that the demo signs users in to. It is part of the page, so the browser sees it.
        read_webhook_secret: returns that project's current webhook secret. It is called at each sign-in, since the
            secret may rotate.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(
        self,
        project_id: str,
        read_webhook_secret: Callable[[], Awaitable[str]],
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._project_id = project_id
        self._read_webhook_secret = read_webhook_secret
        self._clock = clock
        self._entropy = entropy
        self._page = (_STATIC / "demo.html").read_text(encoding="utf-8")
        self._signed_in: OrderedDict[str, tuple[Identity, int]] = OrderedDict()
        self._used_proofs: dict[str, int] = {}
        self.app: Final = Starlette(
            routes=[
                Route("/demo", self._show_page, methods=["GET"]),
                Route("/demo/demo.js", _static_file("demo.js", "text/javascript"), methods=["GET"]),
                Route("/demo/demo.css", _static_file("demo.css", "text/css"), methods=["GET"]),
                Route("/demo/qr", _draw_qr, methods=["POST"]),
                Route("/demo/session", self._read_session, methods=["GET"]),
                Route("/demo/session", self._create_session, methods=["POST"]),
                Route("/demo/session", self._delete_session, methods=["DELETE"]),
            ],
        )
        install_error_handlers(self.app)

    async def _show_page(self, request: Request) -> Response:
        page = self._page.replace("{{project_id}}", html.escape(self._project_id))
        page = page.replace("{{signed_in}}", "no" if self._identity(request) is None else "yes")
        return Response(page, media_type="text/html", headers=_SECURITY_HEADERS)

    async def _read_session(self, request: Request) -> Response:
        identity = self._identity(request)
        if identity is None:
            return _json({"error": "You are not signed in. Sign in first."}, 401)
        return _json(_shown(identity))

    async def _create_session(self, request: Request) -> Response:
        proof = await _read_text(request, "proof")
        try:
            secret = await self._read_webhook_secret()
        except TaproofError as error:  # The store is unavailable, or the project was deleted.
            return _json({"error": error.sentence}, 503)
        now = self._clock()
        try:
            identity = verify_proof(proof, secret, project_id=self._project_id, now=now / SECOND)
        except ProofError as error:
            raise InvalidRequest(str(error)) from None
        # Nothing is awaited from here on, so only one of two requests with the same proof succeeds.
        self._forget_what_is_over(now)
        if identity.session_token in self._used_proofs:
            return _json({"error": "This proof has already been used. Start a new sign-in."}, 409)
        self._used_proofs[identity.session_token] = identity.expires_at * SECOND
        # Each sign-in gets a new id, which makes an id that an attacker planted in the browser useless.
        self._signed_in.pop(request.cookies.get(COOKIE, ""), None)
        session_id = base64.urlsafe_b64encode(self._entropy(32)).rstrip(b"=").decode()
        self._signed_in[session_id] = (identity, now + SIGNED_IN_LIFETIME)
        response = _json(_shown(identity))
        response.set_cookie(
            COOKIE,
            session_id,
            max_age=SIGNED_IN_LIFETIME // SECOND,
            path="/demo",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="lax",
        )
        return response

    async def _delete_session(self, request: Request) -> Response:
        self._signed_in.pop(request.cookies.get(COOKIE, ""), None)
        response = _json({"signed_out": True})
        response.delete_cookie(
            COOKIE, path="/demo", secure=request.url.scheme == "https", httponly=True, samesite="lax"
        )
        return response

    def _identity(self, request: Request) -> Identity | None:
        identity, ends_at = self._signed_in.get(request.cookies.get(COOKIE, ""), (None, 0))
        return identity if self._clock() < ends_at else None

    def _forget_what_is_over(self, now: int) -> None:
        # An expired proof is refused anyway, so it need not be remembered as used.
        for session_token in [token for token, ends_at in self._used_proofs.items() if ends_at <= now]:
            del self._used_proofs[session_token]
        while len(self._signed_in) >= SIGNED_IN_LIMIT:
            self._signed_in.popitem(last=False)


def _shown(identity: Identity) -> dict[str, Any]:
    shown = {
        "messenger_id": identity.messenger_id,
        "messenger_name": identity.messenger_name,
        "messenger_username": identity.messenger_username or None,
    }
    # The field is absent if the project collects no phone numbers.
    return shown if identity.messenger_phone is None else shown | {"messenger_phone": identity.messenger_phone}


async def _draw_qr(request: Request) -> Response:
    """Return a deeplink's QR code as an SVG image. Its white margin makes it readable on a dark page too."""
    deeplink = await _read_text(request, "deeplink")
    if _DEEPLINK.fullmatch(deeplink) is None:
        raise InvalidRequest("deeplink must be a link: https://, http:// or tg://, at most 512 characters.")
    image = io.BytesIO()
    drawn = segno.make_qr(deeplink, error="l", boost_error=False, mask=0)
    drawn.save(image, kind="svg", xmldecl=False, omitsize=True, dark="#000", light="#fff")
    return Response(image.getvalue(), media_type="image/svg+xml", headers=_SECURITY_HEADERS)


def _static_file(name: str, media_type: str) -> Response:
    headers = _SECURITY_HEADERS | {"Cache-Control": "no-cache"}
    return Response((_STATIC / name).read_bytes(), media_type=media_type, headers=headers)


async def _read_text(request: Request, field: str) -> str:
    """Return one string field of a JSON body. A form on another site cannot send this content type."""
    return text_field(await read_json_object(request.scope, request.receive), field)


def _json(content: dict[str, Any], status: int = 200) -> JSONResponse:
    return JSONResponse(content, status, headers=_SECURITY_HEADERS)
