"""Read access tokens: the claims for their holder, and their state for their client (RFC 7662; RFC 7009).

Sources: OpenID Connect Core 1.0, section 5.3; RFC 6750; RFC 7009; RFC 7662.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from taproof.core.clock import SECOND, Clock
from taproof.core.identifiers import is_key, key_hash
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.errors import OAuthError
from taproof.core.oidc.grants import granted_scopes, read_refresh_token, stored_scopes
from taproof.core.oidc.model import ACCESS_TOKEN_LIFETIME, Authorization
from taproof.core.oidc.requests import AuthorizationRequest
from taproof.service.oidc.issuing import SignedInUser, TokenIssuer
from taproof.storage.protocol import Storage

_WRONG_TOKEN: Final = "The access token is unknown, has expired or was revoked. Sign in again."  # noqa: S105 — a sentence.


class _Access(NamedTuple):
    """A valid access token: its user, and its expiry (ms)."""

    user: SignedInUser
    expires_at: int


class AccessTokens:
    """Reads, revokes and introspects tokens.

    Args:
        storage: the store.
        issuing: makes the claims.
        clock: returns the time in ms.
    """

    def __init__(self, storage: Storage, issuing: TokenIssuer, clock: Clock) -> None:
        self._storage = storage
        self._issuing = issuing
        self._clock = clock

    async def read_user(self, access_token: str) -> dict[str, Any]:
        """Return the claims for an access token (OpenID Connect Core, section 5.3.2).

        Raises:
            OAuthError: `invalid_token`.
        """
        found = await self._find(access_token)
        if found is None:
            raise OAuthError("invalid_token", _WRONG_TOKEN)
        return self._issuing.about_user(found.user)

    async def introspect_token(self, client: SignInClient, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the state of a token to its client (RFC 7662, section 2.2).

        Anything but a valid token of this client is only "not active", so that nobody can probe for tokens.

        Raises:
            OAuthError: the client has no secret, or the token is missing.
        """
        if client.secret_hash is None:
            raise OAuthError("invalid_client", "Introspection requires a client with a secret.")
        token = _token(parameters)
        answer = await self._describe_refresh_token(client, token)
        if answer is None:
            answer = await self._describe_access_token(client, token)
        return {"active": False} if answer is None else {"active": True, "client_id": client.client.id, **answer}

    async def _describe_access_token(self, client: SignInClient, token: str) -> dict[str, Any] | None:
        found = await self._find(token)
        if found is None or found.user.client.client.id != client.client.id:
            return None
        claims = self._issuing.about_user(found.user)
        answer = {
            "scope": " ".join(found.user.scopes),
            "token_type": "Bearer",
            "exp": found.expires_at // SECOND,
            "iat": (found.expires_at - ACCESS_TOKEN_LIFETIME) // SECOND,
            "sub": claims["sub"],
            "aud": client.client.id,
            "iss": self._issuing.issuer,
        }
        username = claims.get("preferred_username")
        return answer if username is None else answer | {"username": username}

    async def _describe_refresh_token(self, client: SignInClient, token: str) -> dict[str, Any] | None:
        read = read_refresh_token(token)
        grant = None if read is None else await self._storage.grants.read_grant_by_family(read.hashes.family)
        if read is None or grant is None or grant.client_id != client.client.id:
            return None
        if grant.refresh_hash != read.hashes.secret or not grant.is_live(client.version, self._clock()):
            return None
        if not client.client.groups.admits(grant.messenger_id):
            return None
        return {
            "scope": grant.scopes,
            "exp": grant.idle_expires_at // SECOND,
            "iat": (grant.refreshed_at or grant.created_at) // SECOND,
            "sub": grant.messenger_id,
            "aud": client.client.id,
            "iss": self._issuing.issuer,
        }

    async def revoke_token(self, client: SignInClient, parameters: Mapping[str, str]) -> None:
        """Revoke a token of a client (RFC 7009). A refresh token ends its grant, and so its access tokens.

        Nothing happens for a token that is unknown or belongs to another client (section 2.2). The hint is not needed,
        because a token shows what it is.

        Raises:
            OAuthError: the token is missing.
        """
        token = _token(parameters)
        read = read_refresh_token(token)
        if read is None:
            await self._revoke_access_token(client, key_hash(token))
            return
        grant = await self._storage.grants.read_grant_by_family(read.hashes.family)
        # This includes a token that was already replaced: revoking it means that the family should end.
        if grant is not None and grant.client_id == client.client.id:
            await self._storage.grants.end_grant(grant.id, self._clock(), "revoked")

    async def _revoke_access_token(self, client: SignInClient, access_token_hash: bytes) -> None:
        # A write waits for the disk, and anyone can send other text with the id of a client without a secret.
        found = await self._storage.authorizations.read_authorization_by_access_token(access_token_hash)
        grant = await self._storage.grants.read_grant_by_access_token(access_token_hash) if found is None else None
        holder = found or grant
        if holder is not None and holder.client_id == client.client.id:
            await self._storage.grants.revoke_access_token(access_token_hash, client.client.id)

    async def _find(self, access_token: str) -> _Access | None:
        """Return the access of a valid access token; None for any other text."""
        if not is_key(access_token, "oat"):
            return None
        hashed = key_hash(access_token)
        found = await self._storage.authorizations.read_authorization_by_access_token(hashed)
        access = await self._of_refresh(hashed) if found is None else await self._of_sign_in(found)
        if access is None or not access.user.client.client.groups.admits(access.user.identity.messenger_id):
            return None
        return access

    async def _of_sign_in(self, found: Authorization) -> _Access | None:
        """Return the access of the first access token of a sign-in."""
        now, expires_at = self._clock(), found.access_expires_at
        if found.revoked_at is not None or expires_at is None or expires_at <= now or found.session is None:
            return None
        client = await self._storage.oidc_clients.read_client(found.client_id)
        session = await self._storage.sessions.read_session(found.session)
        if client is None or session is None or session.reported_at is not None:
            return None
        grant = await self._storage.grants.read_grant(found.id)
        if grant is not None and not grant.is_live(client.version, now):
            return None
        scopes = granted_scopes(client.client, AuthorizationRequest.load(found.request).scopes)
        return _Access(self._issuing.of_session(client, session, scopes), expires_at)

    async def _of_refresh(self, access_token_hash: bytes) -> _Access | None:
        """Return the access of the access token that the last refresh of a grant gave."""
        now = self._clock()
        grant = await self._storage.grants.read_grant_by_access_token(access_token_hash)
        if grant is None or grant.access_expires_at is None or grant.access_expires_at <= now:
            return None
        client = await self._storage.oidc_clients.read_client(grant.client_id)
        if client is None or not grant.is_live(client.version, now):
            return None
        user = self._issuing.of_grant(client, grant, stored_scopes(grant.access_scopes or ""))
        return _Access(user, grant.access_expires_at)


def _token(parameters: Mapping[str, str]) -> str:
    token = parameters.get("token")
    if token is None:
        raise OAuthError("invalid_request", "token is missing.")
    return token
