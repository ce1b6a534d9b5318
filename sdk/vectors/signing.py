"""What the vectors are signed with: HMAC from the standard library, so that anything at all can be signed."""

# ruff: noqa: INP001 — a script and its parts, no package.

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

SECRET: Final = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET: Final = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
SECRET_KEY: Final = "sk_" + "a" * 49
PROJECT: Final = "proj_0123456789abcdefABCDEF"
OTHER_PROJECT: Final = "proj_9999999999999999999999"
TOKEN: Final = "T" * 42 + "A"
NOW: Final = 1_795_214_643


def encoded(value: bytes) -> str:
    """Return it in base64url without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def signed_proof(payload: bytes, header: bytes = b'{"typ":"JWT","alg":"HS256"}', secret: str = SECRET) -> str:
    """Return the compact form of these bytes, whatever they are, signed with HS256."""
    signed = f"{encoded(header)}.{encoded(payload)}"
    return f"{signed}.{encoded(hmac.digest(secret.encode(), signed.encode(), hashlib.sha256))}"


def standard_headers(
    body: bytes, secrets: Sequence[str] = (SECRET,), event_id: str = "evt_1", timestamp: str = str(NOW)
) -> dict[str, str]:
    """Return the three headers of Standard Webhooks, with one signature for each secret."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    signatures = [
        base64.b64encode(hmac.digest(base64.b64decode(each.removeprefix("whsec_")), signed, hashlib.sha256)).decode()
        for each in secrets
    ]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{each}" for each in signatures),
    }


def service_header(body: bytes, secret: str = SECRET) -> dict[str, str]:
    """Return the header of service-spec.md, Authentication."""
    return {"X-Service-Signature": hmac.digest(secret.encode(), body, hashlib.sha256).hex()}


def changed(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> bytes:
    """Return the fields with changes, as JSON; `...` leaves a field out."""
    kept = {name: value for name, value in {**fields, **changes}.items() if value is not ...}
    return json.dumps(kept, separators=(",", ":")).encode()


def inserted(text: bytes, more: bytes) -> bytes:
    """Return the JSON object with `more` before its closing bracket, for what json.dumps would not write."""
    return text[:-1] + b"," + more + b"}"
