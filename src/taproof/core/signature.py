"""Webhook signatures over exactly the bytes that are sent.

`X-Service-Signature` is the spec's (service-spec.md, Authentication); the other three are those of Standard Webhooks
(https://www.standardwebhooks.com), so that one secret serves both kinds of receiver.
"""

import base64
import hashlib
import hmac

from taproof.core.clock import SECOND


def signature_headers(event_id: str, body: bytes, webhook_secret: str, now: int) -> dict[str, str]:
    """Return the headers that let a receiver check `body`, signed with the `whsec_…` secret at `now` (ms)."""
    timestamp = str(now // SECOND)
    key = base64.b64decode(webhook_secret.removeprefix("whsec_"))
    signed = f"{event_id}.{timestamp}.".encode() + body
    standard = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "X-Service-Signature": hmac.new(webhook_secret.encode(), body, hashlib.sha256).hexdigest(),
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{standard}",
    }
