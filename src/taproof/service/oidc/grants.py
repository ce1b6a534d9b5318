"""Refresh tokens (RFC 6749, section 6; RFC 9700, section 4.14; OpenID Connect Core 1.0, sections 11 and 12)."""

from collections.abc import Mapping
from typing import Any, Final

import structlog

from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.identifiers import key_hash, new_key
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.errors import OAuthError
from taproof.core.oidc.grants import OidcGrant, RotatedTokens, new_refresh_token, read_refresh_token, stored_scopes
from taproof.core.oidc.model import ACCESS_TOKEN_LIFETIME
from taproof.core.oidc.requests import Scope, read_scopes
from taproof.service.oidc.issuing import TokenIssuer
from taproof.service.oidc.requests import require_grant_type
from taproof.storage.protocol import Storage

_OVER: Final = "The refresh token is unknown, has expired or was revoked, or belongs to another client. Sign in again."
_REUSED: Final = (
    "The refresh token was used before, so all tokens of the sign-in were revoked. Sign in again, and always store the "
    "refresh token of the last response."
)

_log = structlog.get_logger(__name__)


class Grants:
    """Refreshes the tokens of users who stay signed in to clients.

    Args:
        storage: the store.
        issuing: makes the responses.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(self, storage: Storage, issuing: TokenIssuer, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._issuing = issuing
        self._clock = clock
        self._entropy = entropy

    async def refresh_tokens(self, client: SignInClient, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Exchange a refresh token for new tokens, and return the response. The token works once.

        Raises:
            OAuthError: the token gives nothing. If it was used before, all tokens of its sign-in are revoked.
        """
        require_grant_type(client, "refresh_token")
        given = parameters.get("refresh_token")
        if given is None:
            raise OAuthError("invalid_request", "refresh_token is missing.")
        token, now = read_refresh_token(given), self._clock()
        grant = None if token is None else await self._storage.grants.read_grant_by_family(token.hashes.family)
        if token is None or grant is None or grant.client_id != client.client.id:
            raise OAuthError("invalid_grant", _OVER)
        if not grant.is_live(client.version, now) or not client.client.groups.admits(grant.messenger_id):
            raise OAuthError("invalid_grant", _OVER)
        scopes = _narrowed(grant, parameters.get("scope"))
        # Do this before the token is used up, because it can fail.
        user, signer = self._issuing.of_grant(client, grant, scopes), await self._issuing.find_signer(client)
        new, access_token = new_refresh_token(self._entropy, given), new_key("oat", self._entropy)
        rotated = RotatedTokens(
            new.hashes.secret, key_hash(access_token), now + ACCESS_TOKEN_LIFETIME, " ".join(scopes)
        )
        outcome = await self._storage.grants.refresh_grant(client.client.id, token.hashes, rotated, now)
        if outcome == "reused":
            _log.warning("oidc.refresh_token_reused", client_id=client.client.id, grant_id=grant.id)
            raise OAuthError("invalid_grant", _REUSED)
        if outcome == "gone":
            raise OAuthError("invalid_grant", _OVER)
        return self._issuing.answer(user, signer, access_token, now, refresh_token=new.text, sid=grant.id)


def _narrowed(grant: OidcGrant, asked: str | None) -> tuple[Scope, ...]:
    """Return the scopes of a refresh: those of the grant, or fewer (RFC 6749, section 6)."""
    granted = stored_scopes(grant.scopes)
    if asked is None:
        return granted
    scopes = read_scopes(asked)
    if not set(scopes) <= set(granted):
        raise OAuthError("invalid_scope", "A refresh can ask for the scopes of the sign-in or fewer, not for more.")
    return scopes
