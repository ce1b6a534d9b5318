"""Authorization requests, sent by the browser or pushed by the client (RFC 6749, section 4.1.1; RFC 9126)."""

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
from taproof.storage.protocol import Storage

_CREDENTIALS: Final = frozenset({"client_secret", "client_assertion", "client_assertion_type"})


class AuthorizationRequests:
    """Reads authorization requests."""

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
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
        if parameters.get("request_uri", "").startswith(REQUEST_URI_PREFIX):
            parameters = await self._take_pushed(client_id, parameters["request_uri"])
        address = _return_address(found, parameters)
        try:
            if "request_uri" in parameters:
                raise OAuthError("request_uri_not_supported", "Push the request first (RFC 9126), or send parameters.")  # noqa: TRY301
            return found, _check(found, parameters, address)
        except OAuthError as error:
            raise RefusedByRedirect(error, address) from None

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
        try:
            _check(client, parameters, address)
        except OAuthError as error:
            # The browser gets this answer later, as the client expects it.
            if error.error != "login_required":
                raise
        request_uri = REQUEST_URI_PREFIX + random_base64url(self._entropy)
        kept = {name: value for name, value in parameters.items() if name not in _CREDENTIALS}
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
    require_grant(found, "authorization_code")
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


def require_grant(found: SignInClient, grant: GrantType) -> None:
    """Refuse a client that does not have a grant (RFC 6749, sections 4.1.2.1 and 5.2; RFC 8628, section 3.2).

    Raises:
        OAuthError: the client is refused.
    """
    if grant not in found.client.grant_types:
        raise OAuthError("unauthorized_client", f"This client may not use {grant}. Add it to the client's grant_types.")


def _uri_hash(request_uri: str) -> bytes:
    return hashlib.sha256(request_uri.encode()).digest()
