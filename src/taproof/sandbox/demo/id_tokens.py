"""Checks ID tokens, as the backend of any application does: with PyJWT and the service's public keys.

Source: OpenID Connect Core 1.0, section 3.1.3.7.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import jwt

from taproof.core.clock import SECOND, Clock

_REQUIRED: Final = ["iss", "sub", "aud", "exp", "at_hash"]


class IdTokenRefused(Exception):
    """The ID token is not accepted: do not sign the user in. The message does not contain the token."""


class IdTokens:
    """Checks the ID tokens of one client. `issuer` is the service's base URL.

    `read_jwks` returns the service's JWK set. It is called at each sign-in, since the keys rotate. An application
    elsewhere reads `/oidc/jwks`, for example with PyJWT's `PyJWKClient`.
    """

    def __init__(
        self, issuer: str, client_id: str, read_jwks: Callable[[], Awaitable[dict[str, Any]]], clock: Clock
    ) -> None:
        self.issuer: Final = issuer
        self.client_id: Final = client_id
        self._read_jwks = read_jwks
        self._clock = clock

    async def verify_id_token(self, id_token: str) -> dict[str, Any]:
        """Return the claims of an ID token.

        Raises:
            IdTokenRefused: the service has not signed it for this client, or it has expired.
            StoreUnavailable: the keys cannot be read.
        """
        keys = jwt.PyJWKSet.from_dict(await self._read_jwks())
        try:
            key = keys[jwt.get_unverified_header(id_token)["kid"]]
            # The key decides the algorithm, because anyone can write the header (RFC 8725, section 3.1).
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key,
                algorithms=[key.algorithm_name],
                audience=self.client_id,
                issuer=self.issuer,
                # PyJWT compares times with the machine's clock, but the demo has a clock of its own.
                options={"require": _REQUIRED, "strict_aud": True, "verify_exp": False, "verify_iat": False},
            )
        except (jwt.PyJWTError, KeyError, ValueError, RecursionError):
            # `from None`: PyJWT's error could quote the token.
            raise IdTokenRefused(f"The ID token was not signed by {self.issuer} for {self.client_id}.") from None
        if claims["exp"] * SECOND <= self._clock():
            raise IdTokenRefused("The ID token has expired. Start a new sign-in.")
        return claims
