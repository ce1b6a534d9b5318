"""Issue tokens for authorization codes and device codes.

Sources: RFC 6749, sections 2.3, 4.1.3 and 5; RFC 8628, sections 3.4 and 3.5; OpenID Connect Core 1.0.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from taproof.core.clock import SECOND, Clock
from taproof.core.code_challenge import challenge_digest, is_proven
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.identifiers import key_hash, new_key
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.errors import ClientRefused, OAuthError
from taproof.core.oidc.grants import NewGrant, RefreshToken, gets_refresh_token, granted_scopes, new_refresh_token
from taproof.core.oidc.groups import NOT_ADMITTED
from taproof.core.oidc.model import (
    ACCESS_TOKEN_LIFETIME,
    DEVICE_INTERVAL,
    DEVICE_TOLERANCE,
    Authorization,
    NewTokens,
    RefusedMethod,
)
from taproof.core.oidc.requests import AuthorizationRequest
from taproof.core.session_state import visible_status
from taproof.core.sessions import Session
from taproof.service.oidc.devices import device_code_hash
from taproof.service.oidc.issuing import SignedInUser, TokenIssuer
from taproof.service.oidc.keys import Signer
from taproof.service.oidc.requests import require_grant_type, require_public_access
from taproof.service.oidc.sign_in import code_hash
from taproof.storage.protocol import Storage

_WRONG_CLIENT = (
    "The client is unknown, or its secret is wrong or missing. Copy client_id and client_secret from the console."
)
_WRONG_CODE = "The code is unknown, has expired, was used before, or belongs to another client or redirect_uri."
_METHODS = {"basic": "client_secret_basic", "post": "client_secret_post", "none": "no secret"}
"""The ways to authenticate, as metadata and applications name them."""


class _Presented(NamedTuple):
    """The credentials of a client, as a request presents them."""

    method: str
    client_id: str
    secret: str | None


class _Answerable(NamedTuple):
    """Everything that the response with the tokens needs, decrypted before the code is used up.

    `grant` is None if the client is to hold nothing of the user after the sign-in.
    """

    user: SignedInUser
    nonce: str | None
    signer: Signer
    access_token: str
    tokens: NewTokens
    grant: NewGrant | None
    refresh: RefreshToken | None


class Tokens:
    """Authenticates clients, and issues the tokens of sign-ins.

    Args:
        storage: the store.
        encryptor: encrypts phone numbers.
        issuing: makes the responses.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(
        self, storage: Storage, encryptor: Encryptor, issuing: TokenIssuer, clock: Clock, entropy: Entropy
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._issuing = issuing
        self._clock = clock
        self._entropy = entropy

    async def authenticate_client(self, authorization: str | None, parameters: Mapping[str, str]) -> SignInClient:
        """Return the client that sent a request to the token, PAR or device endpoint (RFC 6749, section 2.3.1).

        Args:
            authorization: the Authorization header; None if there is none.
            parameters: the parameters in the body.

        Raises:
            ClientRefused: the client does not prove its identity as its auth_method requires.
            OAuthError: the client is unknown, sends its credentials in several places, or has no secret although the
                project has no public access.
        """
        presented = _presented(authorization, parameters)
        found = await self._storage.oidc_clients.read_client(presented.client_id)
        if found is None:
            raise OAuthError("invalid_client", _WRONG_CLIENT)
        used, expected = presented.method, found.client.auth_method
        if found.secret_hash is not None:
            secret = presented.secret
            if secret is None or not hmac.compare_digest(key_hash(secret), found.secret_hash):
                raise ClientRefused(found.client.id, used, expected, _WRONG_CLIENT)
        # A wrong method is only named after the secret was checked. With "any", this secret may come in either way.
        if expected not in {used, "any"}:
            raise ClientRefused(
                *(found.client.id, used, expected),
                f"This client must use {_METHODS[expected]}, but the request used {_METHODS[used]}. Set the client's "
                "auth_method to any, or change the setting of the application.",
                is_proven=True,
            )
        require_public_access(found)
        return found

    async def record_refusal(self, refused: ClientRefused) -> None:
        """Store the wrong method with which a client authenticated, for its page in the console."""
        if refused.is_proven:
            method = RefusedMethod(refused.used, self._clock())
            await self._storage.oidc_clients.record_refused_method(refused.client_id, method, refused.expected)

    async def redeem_code(self, client: SignInClient, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Exchange an authorization code for tokens; return the response (RFC 6749, section 4.1.4).

        Raises:
            OAuthError: the code gives nothing. If it was used before, the tokens that it gave are revoked.
        """
        require_grant_type(client, "authorization_code")
        code = parameters.get("code")
        if code is None:
            raise OAuthError("invalid_request", "code is missing.")
        hashed = code_hash(code)
        found = await self._storage.authorizations.read_authorization_by_code(hashed)
        if found is None or found.client_id != client.client.id:
            raise OAuthError("invalid_grant", _WRONG_CODE)
        now = self._clock()
        if found.redeemed_at is not None:
            await self._refuse_reuse(found, now)
        request = AuthorizationRequest.load(found.request)
        if parameters.get("redirect_uri") != request.redirect_uri:
            raise OAuthError("invalid_grant", _WRONG_CODE)
        _check_verifier(client, request, parameters.get("code_verifier"))
        session = await self._require_session(found)
        answerable = await self._prepare(client, found, session, now)
        if not await self._storage.authorizations.redeem_code(hashed, answerable.tokens, now, answerable.grant):
            current = await self._storage.authorizations.read_authorization_by_code(hashed)
            if current is not None and current.redeemed_at is not None:
                await self._refuse_reuse(current, now)
            raise OAuthError("invalid_grant", _WRONG_CODE)
        return self._issue(answerable, now)

    async def _refuse_reuse(self, found: Authorization, now: int) -> None:
        # Only the first reuse has something to revoke. The others cause no write.
        if found.revoked_at is None:
            await self._storage.authorizations.revoke_tokens(found.id, now)
        raise OAuthError("invalid_grant", _WRONG_CODE)

    async def redeem_device_code(self, client: SignInClient, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Exchange a device code for tokens once the user has confirmed (RFC 8628, section 3.4).

        Raises:
            OAuthError: `authorization_pending` or `slow_down` while the device should try again; any other error is
                final.
        """
        require_grant_type(client, "device_code")
        device_code = parameters.get("device_code")
        if device_code is None:
            raise OAuthError("invalid_request", "device_code is missing.")
        now = self._clock()
        since = now - DEVICE_INTERVAL * SECOND + DEVICE_TOLERANCE
        polled = await self._storage.authorizations.poll_authorization(device_code_hash(device_code), now, since)
        if polled is None or polled[0].client_id != client.client.id:
            raise OAuthError("invalid_grant", "The device_code is unknown. Start again.")
        found, too_soon = polled
        _check_device(client, found, now)
        if too_soon:
            raise slow_down()
        if found.session is None:
            raise OAuthError("authorization_pending", "The user has not confirmed yet.")
        session = await self._storage.sessions.read_session(found.session)
        status = None if session is None else visible_status(session.status, session.expires_at, now)
        if session is None or status in {"cancelled", "used"}:
            raise OAuthError("access_denied", "The user cancelled the sign-in.")
        if status != "confirmed":
            # After an expired session, the user can start another one on the page.
            raise OAuthError("authorization_pending", "The user has not confirmed yet.")
        answerable = await self._prepare(client, found, session, now)
        if not client.client.groups.admits(answerable.user.identity.messenger_id):
            raise OAuthError("access_denied", NOT_ADMITTED)
        finish = self._storage.authorizations.finish_authorization
        if not await finish(found.id, found.session, now, answerable.tokens, answerable.grant):
            raise OAuthError("invalid_grant", "The device_code was used before, or the sign-in was reported.")
        return self._issue(answerable, now)

    async def _require_session(self, found: Authorization) -> Session:
        """Return the session of a code, which its user has not reported."""
        session = None if found.session is None else await self._storage.sessions.read_session(found.session)
        if session is None or session.reported_at is not None:
            raise OAuthError("invalid_grant", "The user reported this sign-in.")
        return session

    async def _prepare(self, client: SignInClient, found: Authorization, session: Session, now: int) -> _Answerable:
        """Read the key and decrypt the phone number. If one cannot be decrypted, the code is not used up."""
        request = AuthorizationRequest.load(found.request)
        user = self._issuing.of_session(client, session, granted_scopes(client.client, request.scopes))
        signer = await self._issuing.find_signer(client)
        access_token = new_key("oat", self._entropy)
        refresh = new_refresh_token(self._entropy) if gets_refresh_token(client.client, user.scopes) else None
        grant = None
        if refresh is not None or client.client.backchannel_logout_uri:
            grant = self._new_grant(user, found, session, refresh, now)
        tokens = NewTokens(key_hash(access_token), now + ACCESS_TOKEN_LIFETIME, client.version)
        return _Answerable(user, request.nonce, signer, access_token, tokens, grant, refresh)

    def _new_grant(
        self, user: SignedInUser, found: Authorization, session: Session, refresh: RefreshToken | None, now: int
    ) -> NewGrant:
        phone = user.identity.messenger_phone if refresh is not None and "phone" in user.scopes else None
        return NewGrant(
            id=found.id,
            client_id=found.client_id,
            client_version=user.client.version,
            project_id=found.project_id,
            session=session.key,
            identity=user.identity,
            scopes=" ".join(user.scopes),
            auth_time=user.auth_time,
            created_at=now,
            refresh=None if refresh is None else refresh.hashes,
            encrypted_phone=None
            if phone is None
            else self._encryptor.encrypt(phone, associated_data_of("grant_phone", found.id), self._entropy),
        )

    def _issue(self, answerable: _Answerable, now: int) -> dict[str, Any]:
        grant, refresh = answerable.grant, answerable.refresh
        return self._issuing.answer(
            answerable.user,
            answerable.signer,
            answerable.access_token,
            now,
            nonce=answerable.nonce,
            refresh_token=None if refresh is None else refresh.text,
            sid=None if grant is None else grant.id,
        )


def slow_down() -> OAuthError:
    """Return the error for a device that polls too often (RFC 8628, section 3.5)."""
    return OAuthError("slow_down", f"Wait at least {DEVICE_INTERVAL} seconds between two requests.")


def _presented(authorization: str | None, parameters: Mapping[str, str]) -> _Presented:
    """Return the credentials in a request, which must use one method only (RFC 6749, section 2.3).

    An empty id or secret counts as omitted, in the header too: libraries send it for clients without a secret.
    """
    if "client_assertion" in parameters or "client_assertion_type" in parameters:
        raise OAuthError("invalid_client", "Client assertions are not supported. Use the client's secret.")
    basic_id, basic_secret = _read_basic(authorization) if authorization else ("", "")
    client_id, secret = parameters.get("client_id", basic_id), parameters.get("client_secret", "")
    if (basic_secret and secret) or (basic_id and client_id != basic_id):
        raise OAuthError("invalid_request", "Send the client's credentials in one place only.")
    if not client_id:
        raise OAuthError("invalid_client", "client_id is missing. Send it in the body, or with HTTP Basic.")
    if basic_secret:
        return _Presented("basic", client_id, basic_secret)
    return _Presented("post", client_id, secret) if secret else _Presented("none", client_id, None)


def _read_basic(authorization: str) -> tuple[str, str]:
    """Return the client id and secret of an Authorization header. Both are form-encoded (RFC 6749, section 2.3.1)."""
    scheme, _, encoded = authorization.partition(" ")
    encoded = encoded.strip()
    padding = "=" * (-len(encoded) % 4)  # Some libraries leave it out.
    try:
        text = base64.b64decode(encoded + padding, validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    client_id, separator, secret = text.partition(":")
    if scheme.lower() != "basic" or not separator:
        raise OAuthError("invalid_client", "The Authorization header is not valid HTTP Basic authentication.")
    return unquote_plus(client_id), unquote_plus(secret)


def _check_verifier(client: SignInClient, request: AuthorizationRequest, verifier: str | None) -> None:
    """Refuse a wrong or missing code verifier, and one that was never announced (RFC 9700, section 2.1.1)."""
    if request.code_challenge is None:
        if client.client.auth_method == "none":  # It had a secret when the request was made.
            raise OAuthError("invalid_grant", "A client without a secret must send code_challenge (PKCE, RFC 7636).")
        if verifier is not None:
            raise OAuthError("invalid_grant", "code_verifier was sent, but the request had no code_challenge.")
        return
    if not is_proven(challenge_digest(request.code_challenge), verifier):
        raise OAuthError("invalid_grant", "code_verifier is missing or does not match the code_challenge.")


def _check_device(client: SignInClient, found: Authorization, now: int) -> None:
    if found.redeemed_at is not None:
        raise OAuthError("invalid_grant", "The device_code was used before.")
    if found.ended_at is not None:
        raise OAuthError("access_denied", "The sign-in of this device was refused.")
    if not client.can_finish("device_code", found.created_at):
        raise OAuthError("access_denied", "The client lost the grant device_code meanwhile. Start again.")
    if found.expires_at <= now:
        raise OAuthError("expired_token", "The device_code has expired. Start again.")
