"""The claims of ID tokens and userinfo responses (contract.md, OpenID provider; OpenID Connect Core, section 5.1)."""

import base64
import hashlib
from typing import Any, Literal

from taproof.core.clock import SECOND
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.requests import Scope


def user_claims(
    identity: MessengerIdentity,
    scopes: tuple[Scope, ...],
    auth_time: int,
    *,
    email: Literal["none", "synthetic"],
    email_domain: str,
    groups: tuple[str, ...],
) -> dict[str, Any]:
    """Return the claims about the user that the scopes ask for.

    Args:
        identity: the account that confirmed. Its phone number is None unless the project collects numbers.
        scopes: the scopes of the request.
        auth_time: the time (ms) of Confirm, at which the name was read from the messenger.
        email: `synthetic` to add an address that no mail server receives, for applications that require one.
        email_domain: the domain of synthetic addresses.
        groups: the names of the user's groups at the client.
    """
    claims: dict[str, Any] = {"sub": identity.messenger_id}
    if "profile" in scopes:
        claims |= {"name": identity.messenger_name, "updated_at": auth_time // SECOND}
        if identity.messenger_username:
            claims["preferred_username"] = identity.messenger_username
    if "phone" in scopes and identity.messenger_phone is not None:
        claims |= {"phone_number": identity.messenger_phone, "phone_number_verified": True}
    if "groups" in scopes:
        claims["groups"] = list(groups)
    if email == "synthetic":
        claims |= {"email": f"{identity.messenger_id}@{email_domain}", "email_verified": False}
    return claims


def id_token_claims(
    about_user: dict[str, Any],
    *,
    issuer: str,
    client_id: str,
    now: int,
    lifetime: int,
    auth_time: int,
    nonce: str | None,
    access_token: str,
    sid: str | None = None,
) -> dict[str, Any]:
    """Return the claims of an ID token. `now` and `auth_time` are in ms, `lifetime` in seconds.

    `sid` is the id of the sign-in, if its client can learn of its end (Back-Channel Logout 1.0, section 2.1).
    """
    issued_at = now // SECOND
    claims = {
        "iss": issuer,
        **about_user,
        "aud": client_id,
        "exp": issued_at + lifetime,
        "iat": issued_at,
        "auth_time": auth_time // SECOND,
        "at_hash": token_hash(access_token),
        # RFC 8176, multiple-channel authentication: the user confirmed in the messenger.
        "amr": ["mca"],
    }
    optional = {"nonce": nonce, "sid": sid}
    return claims | {name: value for name, value in optional.items() if value is not None}


def token_hash(access_token: str) -> str:
    """Return `at_hash`: the base64url of the left half of the SHA-256 (OpenID Connect Core, section 3.1.3.6)."""
    digest = hashlib.sha256(access_token.encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()


def hashes_of(at_hash: str) -> tuple[bytes, bytes]:
    """Return the lowest and the highest SHA-256 of the access token with this `at_hash`, which is half of it."""
    half = base64.urlsafe_b64decode(at_hash + "==")
    return half + bytes(16), half + b"\xff" * 16
