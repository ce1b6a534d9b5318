"""Notify clients that their users are signed out (OpenID Connect Back-Channel Logout 1.0).

`webhooks/logouts.py` posts what this signs. A logout token is signed anew for each attempt, because it lives for two
minutes only.
"""

from collections.abc import Collection
from typing import Final
from urllib.parse import urlencode

from taproof.core.clock import SECOND, Clock
from taproof.core.entropy import Entropy
from taproof.core.identifiers import new_id
from taproof.core.oidc.grants import LOGOUT_DELAYS, LOGOUT_TOKEN_LIFETIME, Logout, LogoutOutcome
from taproof.core.retry_after import retry_after_delay
from taproof.core.retry_schedule import next_attempt_at
from taproof.service.oidc.keys import SigningKeys
from taproof.service.webhooks import LEASE, SEND_TIMEOUT, SignedRequest, WebhookResponse, request_headers
from taproof.storage.protocol import Storage

_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
_ACCEPTED: Final = frozenset({200, 204})
"""The statuses of success (section 2.8). Some frameworks answer with 204 if the body is empty."""


class Logouts:
    """Claims due logouts, signs their tokens, and records the outcome of each attempt.

    Args:
        storage: the store.
        keys: sign the logout tokens.
        clock: returns the time in ms.
        entropy: returns random bytes.
        issuer: the service's base URL.
        user_agent: sent as `User-Agent`.
    """

    def __init__(
        self, storage: Storage, keys: SigningKeys, clock: Clock, entropy: Entropy, *, issuer: str, user_agent: str
    ) -> None:
        self._storage = storage
        self._keys = keys
        self._clock = clock
        self._entropy = entropy
        self._issuer = issuer
        self._headers = request_headers(user_agent) | {"Content-Type": "application/x-www-form-urlencoded"}

    async def claim_logouts(self, limit: int, passed_over: Collection[str] = ()) -> list[Logout]:
        """Lease at most `limit` due logouts, of other clients than those with the ids `passed_over`."""
        now = self._clock()
        return await self._storage.logouts.claim_logouts(now, now + LEASE, limit, passed_over)

    def has_time(self, logout: Logout) -> bool:
        """Return whether a post that starts now ends before the lease of the logout."""
        return self._clock() + SEND_TIMEOUT * SECOND < logout.leased_until

    async def sign_logout(self, logout: Logout) -> SignedRequest | None:
        """Return the request that notifies the client; None, and forget the logout, if the client has no URI any more.

        Raises:
            DecryptionFailed: the signing key cannot be decrypted.
        """
        client = await self._storage.oidc_clients.read_client(logout.client_id)
        if client is None or not logout.uri:
            await self._storage.logouts.finish_logout(logout)
            return None
        issued_at = self._clock() // SECOND
        claims = {
            "iss": self._issuer,
            "aud": logout.client_id,
            "iat": issued_at,
            "exp": issued_at + LOGOUT_TOKEN_LIFETIME // SECOND,
            "jti": new_id("logout", self._entropy),
            "events": {_EVENT: {}},
            "sid": logout.sid,
        }
        if logout.messenger_id is not None:
            claims["sub"] = logout.messenger_id
        signer = await self._keys.find_signer(client.client.signing_alg)
        body = urlencode({"logout_token": signer.sign_logout(claims)}).encode()
        return SignedRequest(logout.uri, self._headers, body)

    async def finish_attempt(self, logout: Logout, answer: WebhookResponse) -> LogoutOutcome:
        """Record the outcome of an attempt, and when the next one is due after a failure."""
        now = self._clock()
        if answer.status in _ACCEPTED:
            await self._storage.logouts.finish_logout(logout)
            return "delivered"
        asked = retry_after_delay(answer.retry_after, now)
        due_at = next_attempt_at(logout.attempt - 1, now, self._entropy, LOGOUT_DELAYS, asked=asked)
        await self._storage.logouts.retry_logout(logout, due_at, answer.error or str(answer.status), now)
        return "dead" if due_at is None else "retried"
