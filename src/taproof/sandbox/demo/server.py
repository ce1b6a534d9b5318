"""The demo: a shop at /demo/shop that signs users in, and the page at /demo around it with the phone.

The shop's page has the sign-in button of the SDK, or goes through the OpenID provider. This file is the shop's own
small backend. It checks proofs with the project's webhook secret and the SDK, and ID tokens with the service's public
keys (`id_tokens.py`). Sign-ins are stored in memory and end with the process.
"""

import html
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from taproof.core.clock import MINUTE, SECOND, Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import InvalidRequest, TaproofError
from taproof.core.identifiers import random_base64url
from taproof.http.body import read_json_object, text_field
from taproof.http.errors import install_error_handlers
from taproof.sandbox.demo.id_tokens import IdTokenRefused, IdTokens
from taproof.sdk.proof import ProofError, verify_proof

COOKIE: Final = "taproof_demo"
SIGNED_IN_LIFETIME: Final = 60 * MINUTE
SIGNED_IN_LIMIT: Final = 1_000
"""Maximum number of stored sign-ins. A new one replaces the oldest, so that memory use is limited."""
_STATIC: Final = Path(__file__).parent
_SHOP: Final = "/demo/shop"
_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")
_FILES: Final = {
    "stage.js": "text/javascript",
    "steps.js": "text/javascript",
    "stage.css": "text/css",
    "shop.js": "text/javascript",
    "openid.js": "text/javascript",
    "shop.css": "text/css",
    "kettle.svg": "image/svg+xml",
    "tea.svg": "image/svg+xml",
    "pot.svg": "image/svg+xml",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; "
)
_SECURITY_HEADERS: Final = {
    "Content-Security-Policy": f"{_POLICY}frame-src 'self'; frame-ancestors 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, browsers would send `Origin: null`: the prompt could not show the page.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SHOP_HEADERS: Final = _SECURITY_HEADERS | {
    # Only the demo's page shows the shop inside itself.
    "Content-Security-Policy": f"{_POLICY}frame-ancestors 'self'; form-action 'none'",
}


class _Accepted(NamedTuple):
    """A valid proof or ID token: its user, its identifier, and its expiry (ms)."""

    user: dict[str, Any]
    single_use_id: str
    expires_at: int


class Demo:
    """The demo's routes, as an ASGI application that answers full paths under /demo.

    `project_id` is part of the page, so the browser sees it. `read_webhook_secret` returns that project's current
    webhook secret. It is called at each sign-in, since the secret may rotate. Without a client, `id_tokens` is None.
    """

    def __init__(
        self,
        project_id: str,
        read_webhook_secret: Callable[[], Awaitable[str]],
        clock: Clock,
        entropy: Entropy,
        id_tokens: IdTokens | None = None,
    ) -> None:
        self._project_id = project_id
        self._read_webhook_secret = read_webhook_secret
        self._clock = clock
        self._entropy = entropy
        self._id_tokens = id_tokens
        self._shop = (_STATIC / "shop.html").read_text(encoding="utf-8")
        self.signed_in: OrderedDict[str, tuple[dict[str, Any], int]] = OrderedDict()
        """The signed-in users by the value of their cookie, and when each sign-in ends (ms)."""
        self.used: dict[str, int] = {}
        """The used proofs and ID tokens, and when each expires (ms)."""
        self.app: Final = Starlette(
            routes=[
                Route("/demo", _static_file("stage.html", "text/html", _SECURITY_HEADERS), methods=["GET"]),
                Route(_SHOP, self._show_shop, methods=["GET"]),
                *(Route(f"/demo/{name}", _static_file(name, kind), methods=["GET"]) for name, kind in _FILES.items()),
                Route("/demo/session", self._create_session, methods=["POST"]),
                Route("/demo/session", self._delete_session, methods=["DELETE"]),
            ],
        )
        install_error_handlers(self.app)

    async def _show_shop(self, request: Request) -> Response:
        user = self._signed_in_user(request)
        shown = user or {}
        values = {
            "signed_in": "no" if user is None else "yes",
            "project_id": self._project_id,
            "issuer": self._id_tokens.issuer if self._id_tokens else "",
            "client_id": self._id_tokens.client_id if self._id_tokens else "",
            "initial": shown.get("messenger_name", "")[:1],
            "name": shown.get("messenger_name", ""),
            "username": f"@{shown['messenger_username']}" if shown.get("messenger_username") else "",
            "messenger_id": shown.get("messenger_id", ""),
            "phone": shown.get("messenger_phone", ""),
        }
        hidden = {
            "hidden_if_signed_in": user is not None,
            "hidden_if_signed_out": user is None,
            "hidden_without_client": self._id_tokens is None,
            "hidden_without_username": not values["username"],
            "hidden_without_phone": not values["phone"],
        }
        texts = {name: html.escape(value) for name, value in values.items()}
        texts |= {name: " hidden" if is_hidden else "" for name, is_hidden in hidden.items()}
        page = _PLACEHOLDER.sub(lambda found: texts[found[1]], self._shop)
        return Response(page, media_type="text/html", headers=_SHOP_HEADERS)

    async def _create_session(self, request: Request) -> Response:
        body = await read_json_object(request.scope, request.receive)
        id_tokens = self._id_tokens if "id_token" in body else None
        kind = "proof" if id_tokens is None else "id_token"
        sent = text_field(body, kind)
        try:
            accepted = await (self._accept_proof(sent) if id_tokens is None else self._accept_id_token(id_tokens, sent))
        except (ProofError, IdTokenRefused) as error:
            raise InvalidRequest(str(error)) from None
        except TaproofError as error:  # The store is unavailable, or the project was deleted.
            return _json({"error": error.sentence}, 503)
        # Nothing is awaited from here on, so only one of two requests with the same proof succeeds.
        if accepted.single_use_id in self.used:
            return _json({"error": f"This {kind} has already been used. Start a new sign-in."}, 409)
        now = self._clock()
        self._forget_what_is_over(now)
        self.used[accepted.single_use_id] = accepted.expires_at
        # Each sign-in gets a new id, which makes an id that an attacker planted in the browser useless.
        self.signed_in.pop(request.cookies.get(COOKIE, ""), None)
        session_id = random_base64url(self._entropy)
        self.signed_in[session_id] = (accepted.user, now + SIGNED_IN_LIFETIME)
        response = _json(accepted.user | {"location": _SHOP})
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
        self.signed_in.pop(request.cookies.get(COOKIE, ""), None)
        response = _json({"signed_out": True})
        response.delete_cookie(
            COOKIE, path="/demo", secure=request.url.scheme == "https", httponly=True, samesite="lax"
        )
        return response

    async def _accept_proof(self, proof: str) -> _Accepted:
        secret = await self._read_webhook_secret()
        identity = verify_proof(proof, secret, project_id=self._project_id, now=self._clock() / SECOND)
        user = _shown(
            identity.messenger_id, identity.messenger_name, identity.messenger_username, identity.messenger_phone
        )
        return _Accepted(user, identity.session_token, identity.expires_at * SECOND)

    async def _accept_id_token(self, id_tokens: IdTokens, id_token: str) -> _Accepted:
        claims = await id_tokens.verify_id_token(id_token)
        user = _shown(
            claims["sub"], claims.get("name", ""), claims.get("preferred_username"), claims.get("phone_number")
        )
        # The at_hash differs between all ID tokens. The text would not do: an ECDSA signature has a second valid form.
        return _Accepted(user, claims["at_hash"], claims["exp"] * SECOND)

    def _signed_in_user(self, request: Request) -> dict[str, Any] | None:
        user, ends_at = self.signed_in.get(request.cookies.get(COOKIE, ""), (None, 0))
        return user if self._clock() < ends_at else None

    def _forget_what_is_over(self, now: int) -> None:
        # An expired proof or ID token is refused anyway, so it need not be remembered as used.
        for each in [each for each, ends_at in self.used.items() if ends_at <= now]:
            del self.used[each]
        while len(self.signed_in) >= SIGNED_IN_LIMIT:
            self.signed_in.popitem(last=False)


def _shown(messenger_id: str, name: str, username: str | None, phone: str | None) -> dict[str, Any]:
    """Return a user as the page receives it. Without a phone number, that field is absent."""
    user = {"messenger_id": messenger_id, "messenger_name": name, "messenger_username": username or None}
    return user if phone is None else user | {"messenger_phone": phone}


def _static_file(name: str, media_type: str, headers: Mapping[str, str] = _SHOP_HEADERS) -> Response:
    return Response(
        (_STATIC / name).read_bytes(), media_type=media_type, headers={**headers, "Cache-Control": "no-cache"}
    )


def _json(content: dict[str, Any], status: int = 200) -> JSONResponse:
    return JSONResponse(content, status, headers=_SECURITY_HEADERS)
