"""The endpoints that clients call: tokens, userinfo, pushed authorization requests and device authorization.

Sources: RFC 6749, section 3.2; RFC 6750; RFC 7009; RFC 7662; RFC 8628; RFC 9126; OpenID Connect Core 1.0, section 5.3.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.discovery import CODE_GRANT, DEVICE_GRANT, REFRESH_GRANT
from taproof.core.oidc.errors import ClientRefused, OAuthError
from taproof.http.errors import RawHeaders, bearer_token
from taproof.http.limits.rates import RateLimits
from taproof.oidc.answers import (
    ANY_ORIGIN,
    challenge,
    failure_answer,
    json_answer,
    preflight_routes,
    read_form,
)
from taproof.oidc.services import ProviderServices
from taproof.service.oidc.tokens import slow_down

_EXPOSED: Final[RawHeaders] = [
    *ANY_ORIGIN,
    (b"access-control-expose-headers", b"Retry-After, WWW-Authenticate"),
]
_BY_SCRIPTS: Final = ("token", "userinfo", "par", "device_authorization", "revoke", "introspect")


class ProtocolEndpoints:
    """Serves the calls of clients. Scripts of any origin may make them, because clients without a secret do."""

    def __init__(self, services: ProviderServices, limits: RateLimits) -> None:
        self._tokens = services.tokens
        self._access_tokens = services.access_tokens
        self._grants = services.grants
        self._requests = services.requests
        self._devices = services.devices
        self._limits = limits

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route("/oidc/token", self._issue_tokens, methods=["POST"]),
            Route("/oidc/userinfo", self._read_user, methods=["GET", "POST"]),
            Route("/oidc/par", self._push_request, methods=["POST"]),
            Route("/oidc/device_authorization", self._begin_device, methods=["POST"]),
            Route("/oidc/revoke", self._revoke_token, methods=["POST"]),
            Route("/oidc/introspect", self._introspect_token, methods=["POST"]),
            *preflight_routes(*(f"/oidc/{name}" for name in _BY_SCRIPTS)),
        ]

    async def _issue_tokens(self, request: Request) -> Response:
        async def issue(client: SignInClient, parameters: dict[str, str]) -> dict[str, Any]:
            grant = parameters.get("grant_type")
            if grant == CODE_GRANT:
                return await self._tokens.redeem_code(client, parameters)
            if grant == DEVICE_GRANT:
                if not self._limits.admits_device_poll(parameters.get("device_code", "")):
                    raise slow_down()
                return await self._tokens.redeem_device_code(client, parameters)
            if grant == REFRESH_GRANT:
                return await self._grants.refresh_tokens(client, parameters)
            if grant is None:
                raise OAuthError("invalid_request", "grant_type is missing.")
            raise OAuthError(
                "unsupported_grant_type", f"grant_type must be {CODE_GRANT}, {REFRESH_GRANT} or {DEVICE_GRANT}."
            )

        return await self._answer_client(request, issue)

    async def _revoke_token(self, request: Request) -> Response:
        async def revoke(client: SignInClient, parameters: dict[str, str]) -> dict[str, Any]:
            await self._access_tokens.revoke_token(client, parameters)
            return {}

        return await self._answer_client(request, revoke)

    async def _introspect_token(self, request: Request) -> Response:
        return await self._answer_client(request, self._access_tokens.introspect_token)

    async def _push_request(self, request: Request) -> Response:
        async def push(client: SignInClient, parameters: dict[str, str]) -> dict[str, Any]:
            self._count_start(request, client)
            return await self._requests.push_request(client, parameters)

        return await self._answer_client(request, push, status=201)

    async def _begin_device(self, request: Request) -> Response:
        async def begin(client: SignInClient, parameters: dict[str, str]) -> dict[str, Any]:
            self._count_start(request, client)
            return await self._devices.begin_device(client, parameters.get("scope", ""))

        return await self._answer_client(request, begin)

    def _count_start(self, request: Request, client: SignInClient) -> None:
        """Count a call with which a client stores a row. Anyone can use the id of a client without a secret."""
        self._limits.count_generate(request.scope, client.client.project_id, public=client.secret_hash is None)

    async def _answer_client(
        self,
        request: Request,
        answer: Callable[[SignInClient, dict[str, str]], Awaitable[dict[str, Any]]],
        status: int = 200,
    ) -> Response:
        """Authenticate the client, and answer its call."""
        try:
            parameters = await read_form(request)
            client = await self._tokens.authenticate_client(_one_header(request, b"authorization"), parameters)
            return json_answer(await answer(client, parameters), status, _EXPOSED)
        except Exception as error:  # noqa: BLE001 — a bug must be logged and answered in the shape of OAuth errors.
            if isinstance(error, OAuthError) and error.error == "invalid_client":
                await self._note_refusal(request, error)
            return failure_answer(error, [*_EXPOSED, *challenge(error, "Basic")])

    async def _note_refusal(self, request: Request, error: OAuthError) -> None:
        """Log the refusal of a client. Its page in the console shows it too, at the rate at which it is logged."""
        note = partial(self._limits.refused_credentials.note, "client_secret", request.scope)
        if not isinstance(error, ClientRefused):
            note()
        elif note(client_id=error.client_id, used=error.used, expected=error.expected):
            await self._tokens.record_refusal(error)

    async def _read_user(self, request: Request) -> Response:
        access_token = bearer_token(request.scope)
        try:
            if access_token is None and request.method == "POST" and "content-type" in request.headers:
                access_token = (await read_form(request)).get("access_token")
            if access_token is None:
                # Without a token, the response names no error (RFC 6750, section 3.1).
                error = OAuthError("invalid_token", "Send the access token: Authorization: Bearer oat_...")
                return failure_answer(error, [*_EXPOSED, (b"www-authenticate", b"Bearer")])
            return json_answer(await self._access_tokens.read_user(access_token), headers=_EXPOSED)
        except Exception as error:  # noqa: BLE001 — as in `_answer_client`.
            return failure_answer(error, [*_EXPOSED, *challenge(error, "Bearer")])


def _one_header(request: Request, name: bytes) -> str | None:
    """Return a header's value.

    Raises:
        OAuthError: there are several, and each reader could use another one.
    """
    values = [value for key, value in request.scope["headers"] if key == name]
    if len(values) > 1:
        raise OAuthError("invalid_request", "Send one Authorization header.")
    return values[0].decode("latin-1") if values else None
