"""The stored values of the OpenID provider, as frozen values. Times are milliseconds since the epoch."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from taproof.contract.client import SigningAlg
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.sessions import SessionKey

AUTHORIZATION_LIFETIME: Final = 30 * MINUTE
"""The time (ms) within which a sign-in must be finished, including every new start of an expired session."""
DEVICE_LIFETIME: Final = 10 * MINUTE
"""The lifetime (ms) of a device code (RFC 8628, `expires_in`)."""
DEVICE_INTERVAL: Final = 5
"""The time in seconds that a device waits between two requests (RFC 8628, `interval`)."""
DEVICE_TOLERANCE: Final = SECOND
"""The time (ms) by which a device's request may come too early, because two requests can take different times."""
KEPT_AFTER: Final = 10 * MINUTE
"""The time (ms) for which a sign-in is kept after its end, so that its page and its device learn how it ended."""
CODE_LIFETIME: Final = 60 * SECOND
"""The lifetime (ms) of an authorization code."""
ACCESS_TOKEN_LIFETIME: Final = HOUR
PUSHED_LIFETIME: Final = 90 * SECOND
"""The lifetime (ms) of a pushed authorization request (RFC 9126, section 2.2)."""
KEY_LIFETIME: Final = 90 * DAY
"""The time (ms) for which a key signs."""
PUBLISHED_BEFORE: Final = DAY
"""The time (ms) for which a key is published before it signs, so that every cached copy of the JWKS contains it."""
PUBLISHED_AFTER: Final = DAY + HOUR
"""The time (ms) for which a key is published after its successor signs. ID tokens live for at most a day."""
JWKS_MAX_AGE: Final = 300
"""The time in seconds for which the JWKS may be cached. A leaked key is trusted for as long after its end."""
HINTS_ACCEPTED_FOR: Final = 180 * DAY
"""The time (ms) for which a key that no longer signs is kept, to verify the ID tokens of id_token_hint."""
REFUSAL_KEPT_FOR: Final = HOUR
"""The time (ms) after which another refusal of the same kind replaces the one that the console shows."""
KEYS_RELOADED_AFTER: Final = 5 * SECOND
"""The interval (ms) at which each process reads the keys. A replaced key is used for at most this time."""


@dataclass(frozen=True, slots=True)
class NewAuthorization:
    """A sign-in to store.

    Args:
        id: `auth_…`; it occurs in the page's URL.
        client_id: the client that asked.
        project_id: the client's project.
        request: the result of `AuthorizationRequest.dump`.
        created_at: the time of the request.
        expires_at: the time after which it can no longer be finished.
        browser_hash: the SHA-256 of the cookie that binds it to a browser; None until a browser is bound.
        session: the sign-in session that the user confirms; None until it is created.
        encrypted_session: the session's token and code verifier; None without a session.
        device_code_hash: the SHA-256 of the device code; None without a device.
        user_code: the code that the user types; None without a device.
        expected_user: the messenger id of the only account that may confirm; None for any.
    """

    id: str
    client_id: str
    project_id: str
    request: str
    created_at: int
    expires_at: int
    browser_hash: bytes | None = None
    session: SessionKey | None = None
    encrypted_session: bytes | None = None
    device_code_hash: bytes | None = None
    user_code: str | None = None
    expected_user: str | None = None


@dataclass(frozen=True, slots=True)
class Authorization:
    """A stored sign-in. See `NewAuthorization` for the first fields. `expected_user` is None once it is finished.

    `ended_at` is the time at which the user went back without signing in. `code_expires_at` is None until the session
    is consumed for a code. `redeemed_at` is the time at which tokens were issued. `revoked_at` is the time at which the
    code was used again.
    """

    id: str
    client_id: str
    project_id: str
    request: str
    created_at: int
    expires_at: int
    browser_hash: bytes | None
    session: SessionKey | None
    encrypted_session: bytes | None
    user_code: str | None
    expected_user: str | None
    ended_at: int | None
    code_expires_at: int | None
    redeemed_at: int | None
    access_expires_at: int | None
    revoked_at: int | None


class RefusedMethod(NamedTuple):
    """The way in which a client last authenticated with the wrong method, and when (ms)."""

    method: str
    at: int


class NewTokens(NamedTuple):
    """The tokens of a sign-in: the SHA-256 of the access token, its expiry (ms), and the client's version."""

    access_token_hash: bytes
    access_expires_at: int
    client_version: int = 0


class NewCode(NamedTuple):
    """An authorization code: its SHA-256, and its expiry (ms)."""

    code_hash: bytes
    code_expires_at: int


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs ID tokens from `signs_from` until its successor does.

    `generation` counts the keys of an algorithm. `public_jwk` is the JSON of its JWK (RFC 7517), with `kid` and `alg`.
    """

    alg: SigningAlg
    generation: int
    kid: str
    encrypted_private_key: bytes
    public_jwk: str
    created_at: int
    signs_from: int
