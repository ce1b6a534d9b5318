"""Grants, which a client holds for a user after a sign-in, and their refresh tokens.

Sources: RFC 6749, sections 1.5 and 6; RFC 9700, section 4.14; OpenID Connect Back-Channel Logout 1.0.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.entropy import Entropy
from taproof.core.identifiers import checksum_of, key_hash, letters_of
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import OidcClient
from taproof.core.oidc.requests import SCOPES, Scope
from taproof.core.sessions import SessionKey

IDLE_LIFETIME: Final = 30 * DAY
"""The time (ms) after which an unused refresh token expires."""
GRANT_LIFETIME: Final = 180 * DAY
"""The lifetime (ms) of a grant, however often it is used."""
KEPT_AFTER_END: Final = 30 * DAY
"""The time (ms) for which an ended grant is kept, so that a report of its sign-in can still sign the user out.

An erasure finds the logouts of a user by their grants, so this is longer than `LOGOUTS_KEPT`.
"""
LOGOUT_TOKEN_LIFETIME: Final = 2 * MINUTE
"""The lifetime (ms) of a logout token (Back-Channel Logout 1.0, section 2.4)."""
LOGOUT_DELAYS: Final = (
    *(5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 8 * HOUR),
)
"""Milliseconds between two attempts to deliver a logout token: about a day in all."""
LOGOUTS_KEPT: Final = 7 * DAY
"""The time (ms) for which a logout that was not delivered is kept, so that the console shows it."""

EndReason = Literal["reported", "blocked", "removed", "ended", "signed_out", "revoked", "reused"]
"""The reason why a grant ended.

"reported": the user reported the sign-in. "blocked": the user blocked the project. "removed": the user is in no allowed
group of the client any more. "ended": a developer ended it. "signed_out": the client signed the user out. "revoked":
the client revoked the refresh token. "reused": a refresh token or an authorization code was used twice.
"""
TOLD_REASONS: Final[frozenset[EndReason]] = frozenset({"reported", "blocked", "removed", "ended"})
"""The reasons that the client does not know yet, for which it gets a logout token."""
Refreshed = Literal["refreshed", "reused", "gone"]
"""The outcome of a refresh. "reused": the token was used before, which ended the grant. "gone": it was not live."""
LogoutOutcome = Literal["delivered", "retried", "dead"]
"""The outcome of an attempt to deliver a logout token. "retried": another one follows. "dead": it was the last one."""

_TOKEN: Final = re.compile(r"ort_([A-Za-z0-9]{22})([A-Za-z0-9]{43})([A-Za-z0-9]{6})")


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A grant to store. Times are in ms.

    Args:
        id: the id of the sign-in, which is also the claim `sid`.
        client_id: the client.
        client_version: the client's version when it authenticated.
        project_id: the client's project.
        session: the sign-in session that gave it.
        identity: the account, as it confirmed. The phone number is not stored.
        scopes: the scopes that refresh tokens give, separated by spaces.
        auth_time: the time of Confirm.
        created_at: the time at which the tokens were issued.
        refresh: the hashes of the first refresh token; None if the client gets none.
        encrypted_phone: the phone number, if the scopes include it.
    """

    id: str
    client_id: str
    client_version: int
    project_id: str
    session: SessionKey
    identity: MessengerIdentity
    scopes: str
    auth_time: int
    created_at: int
    refresh: "RefreshHashes | None" = None
    encrypted_phone: bytes | None = None


@dataclass(frozen=True, slots=True)
class OidcGrant:
    """A stored grant. See `NewGrant` for the first fields.

    `access_expires_at` and `access_scopes` are those of the access token of the last refresh. `idle_expires_at` is the
    time at which it ends unless it is refreshed before. `refresh_hash` is the SHA-256 of the secret part of its refresh
    token; None without one.
    """

    id: str
    client_id: str
    client_version: int
    project_id: str
    messenger_id: str
    messenger_name: str
    messenger_username: str
    encrypted_phone: bytes | None
    scopes: str
    auth_time: int
    access_expires_at: int | None
    access_scopes: str | None
    created_at: int
    refreshed_at: int | None
    idle_expires_at: int
    ended_at: int | None
    ended_reason: EndReason | None
    refresh_hash: bytes | None

    def is_live(self, client_version: int, now: int) -> bool:
        """Return whether the grant is in force at `now` (ms) for a client with this version."""
        return self.ended_at is None and self.client_version == client_version and self.idle_expires_at > now


class RefreshHashes(NamedTuple):
    """The stored form of a refresh token: the SHA-256 of each of its two parts."""

    family: bytes
    secret: bytes


class RefreshToken(NamedTuple):
    """A refresh token, read or new."""

    text: str
    hashes: RefreshHashes


@dataclass(frozen=True, slots=True)
class RotatedTokens:
    """The new tokens of a grant, as a refresh stores them. Times are in ms.

    Args:
        secret: the SHA-256 of the second part of the new refresh token.
        access_token_hash: the SHA-256 of the new access token.
        access_expires_at: its expiry.
        access_scopes: its scopes, separated by spaces.
    """

    secret: bytes
    access_token_hash: bytes
    access_expires_at: int
    access_scopes: str


@dataclass(frozen=True, slots=True)
class Logout:
    """A claimed logout: a client to tell that a user is signed out. The claim is a lease that ends at `leased_until`.

    `messenger_id` is None if the user was erased. `uri` is "" if the client has none any more. `attempt` counts from 1.
    `developer_id` is the developer of the project; "" if the project was deleted.
    """

    sid: str
    client_id: str
    project_id: str
    messenger_id: str | None
    attempt: int
    leased_until: int
    uri: str
    developer_id: str


class LogoutFailure(NamedTuple):
    """The last failed attempt to notify a client of a logout: its time (ms), its reason, and whether more follow."""

    failed_at: int
    failure: str
    is_retried: bool


def new_refresh_token(entropy: Entropy, family: str | None = None) -> RefreshToken:
    """Return a new refresh token: `ort_`, the part of its family, a secret part and a checksum.

    Args:
        entropy: returns random bytes.
        family: the token that the new one replaces; None for the first of a grant.
    """
    family_part = letters_of(entropy(17))[:22] if family is None else family[4:26]
    secret_part = letters_of(entropy(33))[:43]
    text = f"ort_{family_part}{secret_part}{checksum_of('ort', family_part + secret_part)}"
    return RefreshToken(text, RefreshHashes(key_hash(family_part), key_hash(secret_part)))


def read_refresh_token(text: str) -> RefreshToken | None:
    """Return a refresh token from its text; None if it is malformed."""
    found = _TOKEN.fullmatch(text)
    if found is None or found[3] != checksum_of("ort", found[1] + found[2]):
        return None
    return RefreshToken(text, RefreshHashes(key_hash(found[1]), key_hash(found[2])))


def gets_refresh_token(client: OidcClient, scopes: tuple[Scope, ...]) -> bool:
    """Return whether a client that asked for these scopes gets a refresh token (OpenID Connect Core, section 11)."""
    return "offline_access" in scopes and "refresh_token" in client.grant_types


def granted_scopes(client: OidcClient, scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """Return those of the requested scopes that a client gets."""
    if gets_refresh_token(client, scopes):
        return scopes
    return tuple(scope for scope in scopes if scope != "offline_access")


def stored_scopes(text: str) -> tuple[Scope, ...]:
    """Return the scopes of a grant from their stored form. Those of a newer release are ignored."""
    names = text.split()
    return tuple(scope for scope in SCOPES if scope in names)
