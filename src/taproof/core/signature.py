"""Webhook signatures over exactly the bytes that are sent.

`X-Service-Signature` comes from service-spec.md (Authentication), the other three headers from Standard Webhooks
(https://www.standardwebhooks.com). One secret serves both kinds of receiver.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence

from taproof.core.clock import SECOND


def signature_headers(event_id: str, body: bytes, webhook_secrets: Sequence[str], now: int) -> dict[str, str]:
    """Return the headers that let a receiver check `body`.

    Args:
        event_id: goes into `webhook-id`, and is signed.
        body: what will be sent.
        webhook_secrets: `whsec_…` strings. `webhook-signature` carries one signature for each, as Standard Webhooks
            defines for a rotation; `X-Service-Signature` carries only that of the first.
        now: the time in ms; goes into `webhook-timestamp`, and is signed.
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
