"""Authorization requests, sent by the browser or pushed by the client (RFC 6749, section 4.1.1; RFC 9126)."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Final

from taproof.contract.client import GrantType
from taproof.core.clock import SECOND, Clock
from taproof.core.entropy import Entropy
from taproof.core.identifiers import random_base64url
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.errors import OAuthError, RefusedOnPage
from taproof.core.oidc.model import PUSHED_LIFETIME
from taproof.core.oidc.redirect_uris import matches
from taproof.core.oidc.requests import (
    REQUEST_URI_PREFIX,
    AuthorizationRequest,
    RefusedByRedirect,
    ReturnAddress,
    check_request,
    read_return_address,
)
from taproof.service.oidc.keys import SigningKeys
from taproof.storage.protocol import Storage

_EXPECTED_USER: Final = "expected_user"
"""The name under which a pushed request stores the user of its hint, whose ID token would contain names and numbers."""
_NOT_STORED: Final = frozenset(
    {"client_secret", "client_assertion", "client_assertion_type", "id_token_hint", _EXPECTED_USER}
)
"""Parameters that a pushed request does not keep."""


class AuthorizationRequests:
    """Reads authorization requests.

    Args:
        storage: the store.
        keys: verify the ID tokens of hints.
        clock: returns the time in ms.
        entropy: returns random bytes.
        issuer: the service's base URL.
    """

    def __init__(self, storage: Storage, keys: SigningKeys, clock: Clock, entropy: Entropy, issuer: str) -> None:
        self._storage = storage
        self._keys = keys
        self._issuer = issuer
        self._clock = clock
        self._entropy = entropy

    async def read_request(self, parameters: Mapping[str, str]) -> tuple[SignInClient, AuthorizationRequest]:
        """Return the client and its checked request.

        Args:
            parameters: the parameters of the authorization endpoint: see `core.oidc.requests.read_parameters`.

        Raises:
            RefusedOnPage: the client or its redirect URI is not known.
            RefusedByRedirect: the request has another fault.
        """
        client_id = parameters.get("client_id")
        if client_id is None:
            raise RefusedOnPage("request", "invalid_request", "client_id is missing.")
        found = await self._storage.oidc_clients.read_client(client_id)
        if found is None:
            raise RefusedOnPage(
                "unknown_client", "invalid_request", "There is no client with this client_id. Copy it from the console."
            )
        expected_user = None
        if parameters.get("request_uri", "").startswith(REQUEST_URI_PREFIX):
            parameters = await self._take_pushed(client_id, parameters["request_uri"])
            expected_user = parameters.get(_EXPECTED_USER)
        address = _return_address(found, parameters)
        try:
            if "request_uri" in parameters:
                raise OAuthError("request_uri_not_supported", "Push the request first (RFC 9126), or send parameters.")  # noqa: TRY301
            request = _check(found, parameters, address)
            expected_user = expected_user or await self._read_hint(found, parameters)
            return found, dataclasses.replace(request, expected_user=expected_user)
        except OAuthError as error:
            raise RefusedByRedirect(error, address) from None

    async def _read_hint(self, client: SignInClient, parameters: Mapping[str, str]) -> str | None:
        """Return the user whom the request expects, by the ID token of an earlier sign-in; None without a hint.

        Raises:
            OAuthError: the hint is not an ID token that this client got.
        """
        hint = parameters.get("id_token_hint")
        if hint is None:
            return None
        claims = await self._keys.read_id_token(hint, issuer=self._issuer, client_id=client.client.id)
        if claims is None:
            raise OAuthError(
                "invalid_request",
                "id_token_hint is not an ID token that Taproof issued to this client in the last 180 days. Send one, "
                "also an expired one, or leave the parameter out.",
            )
        return str(claims["sub"])

    async def _take_pushed(self, client_id: str, request_uri: str) -> dict[str, str]:
        """Return the pushed parameters. Those that the browser sends beside them do not count (RFC 9126, section 4)."""
        stored = await self._storage.authorizations.take_pushed_request(
            _uri_hash(request_uri), client_id, self._clock()
        )
        if stored is None:
            raise RefusedOnPage(
                "request",
                "invalid_request_uri",
                "This request_uri has expired, was used before or belongs to another client.",
            )
        pushed: dict[str, str] = json.loads(stored)
        return pushed

    async def push_request(self, client: SignInClient, parameters: Mapping[str, str]) -> dict[str, str | int]:
        """Store a request that an authenticated client pushed, and return the response (RFC 9126, section 2.2).

        Raises:
            OAuthError: the request has a fault; nothing is stored.
        """
        if "request_uri" in parameters:
            raise OAuthError(
                "invalid_request", "A pushed request must not contain request_uri (RFC 9126, section 2.1)."
            )
        address = _return_address(client, parameters)
        expected_user = None
        try:
            _check(client, parameters, address)
            expected_user = await self._read_hint(client, parameters)
        except OAuthError as error:
            # The browser gets this answer later, as the client expects it.
            if error.error != "login_required":
                raise
        request_uri = REQUEST_URI_PREFIX + random_base64url(self._entropy)
        kept = {name: value for name, value in parameters.items() if name not in _NOT_STORED}
        if expected_user is not None:
            kept[_EXPECTED_USER] = expected_user
        await self._storage.authorizations.create_pushed_request(
            _uri_hash(request_uri), client.client.id, json.dumps(kept), self._clock() + PUSHED_LIFETIME
        )
        return {"request_uri": request_uri, "expires_in": PUSHED_LIFETIME // SECOND}


def _return_address(found: SignInClient, parameters: Mapping[str, str]) -> ReturnAddress:
    redirect_uri = parameters.get("redirect_uri")
    if redirect_uri is None:
        raise RefusedOnPage("request", "invalid_request", "redirect_uri is missing.")
    if not matches(found.client.redirect_uris, redirect_uri):
        raise RefusedOnPage(
            "redirect_uri",
            "invalid_request",
            "This redirect_uri is not registered for the client. Add it in the console, character by character.",
        )
    return read_return_address(parameters, redirect_uri)


def _check(found: SignInClient, parameters: Mapping[str, str], address: ReturnAddress) -> AuthorizationRequest:
    require_grant_type(found, "authorization_code")
    is_public = found.client.auth_method == "none"
    request = check_request(parameters, address, requires_challenge=is_public)
    require_public_access(found)
    return request


def require_public_access(found: SignInClient) -> None:
    """Refuse a client without a secret if its project has no public access.

    Raises:
        OAuthError: the client is refused.
    """
    if not found.has_access:
        raise OAuthError(
            "unauthorized_client", "Public access is off for this project, so only clients with a secret can sign in."
        )


def require_grant_type(found: SignInClient, grant_type: GrantType) -> None:
    """Refuse a client that does not have a grant type (RFC 6749, sections 4.1.2.1 and 5.2; RFC 8628, section 3.2).

    Raises:
        OAuthError: the client is refused.
    """
    if grant_type not in found.client.grant_types:
        raise OAuthError(
            "unauthorized_client", f"This client may not use {grant_type}. Add it to the client's grant_types."
        )


def _uri_hash(request_uri: str) -> bytes:
    return hashlib.sha256(request_uri.encode()).digest()
