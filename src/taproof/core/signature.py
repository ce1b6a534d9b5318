"""Webhook signatures over exactly the bytes that are sent.

`X-Service-Signature` is defined in service-spec.md (Authentication). The other three headers are defined in Standard
Webhooks (https://www.standardwebhooks.com). One secret serves both kinds of receiver.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from taproof.core.clock import SECOND

SIGNATURES: Final = frozenset({"X-Service-Signature", "webhook-signature"})
"""The headers that only a holder of the webhook secret can make."""


def signature_headers(event_id: str, body: bytes, webhook_secrets: Sequence[str], now: int) -> dict[str, str]:
    """Return the headers that a receiver needs to verify `body`, at the time `now` (ms).

    `webhook-signature` contains one signature for each of the secrets, as Standard Webhooks defines for a rotation.
    `X-Service-Signature` uses only the first.
    """
    timestamp = str(now // SECOND)
    signed = f"{event_id}.{timestamp}.".encode() + body
    return {
        "X-Service-Signature": hmac.new(webhook_secrets[0].encode(), body, hashlib.sha256).hexdigest(),
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_standard_signature(signed, each) for each in webhook_secrets),
    }


def _standard_signature(signed: bytes, webhook_secret: str) -> str:
    key = base64.b64decode(webhook_secret.removeprefix("whsec_"))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"
