"""The proof: a JWT with HS256, and the secret that signs it (service-spec.md, Proof; RFC 7519; RFC 8725)."""

import hmac
import json
from base64 import urlsafe_b64encode
from typing import Final

from taproof.core.clock import SECOND
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import EncryptedWebhookSecrets

ISSUER: Final = "taproof"
PROOF_LIFETIME: Final = 300
"""Seconds from `iat` to `exp` (service-spec.md, Limits)."""
_to_json: Final = json.JSONEncoder(separators=(",", ":")).encode


def signing_secrets(stored: EncryptedWebhookSecrets, now: int) -> tuple[bytes, bytes | None]:
    """Return the secret that signs proofs and webhooks at `now`, and during a rotation the next secret.

    From `next_at` on, only the next secret is valid, even if the stored row has not changed yet.
    """
    if stored.next is None or stored.next_at is None:
        return stored.current, None
    return (stored.next, None) if stored.next_at <= now else (stored.current, stored.next)


def _base64url(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


_HEADER: Final = _base64url(_to_json({"alg": "HS256", "typ": "JWT"}).encode()) + b"."


def sign_proof(identity: MessengerIdentity, project_id: str, session_token: str, webhook_secret: str, now: int) -> str:
    """Return the signed proof. The key is the whole `whsec_…` string, as bytes (contract.md).

    The result is the same as that of PyJWT, which takes three times as long (maintainers/decisions/0019).
    """
    issued_at = now // SECOND
    claims = {
        **identity.to_fields(),
        "messenger_username": identity.messenger_username,
        "project_id": project_id,
        "session_token": session_token,
        "iss": ISSUER,
        "iat": issued_at,
        "exp": issued_at + PROOF_LIFETIME,
    }
    signed = _HEADER + _base64url(_to_json(claims).encode())
    signature = _base64url(hmac.digest(webhook_secret.encode(), signed, "sha256"))
    return f"{signed.decode()}.{signature.decode()}"
