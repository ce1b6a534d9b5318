"""The SDK: what an application imports. It needs nothing of the server's, and PyJWT alone.

`proof.py` checks the proof that a browser brings, `webhook.py` the webhook that the service sends. The names below are
also those of `taproof` itself.
"""

from taproof.sdk.proof import (
    Identity,
    ProofError,
    ProofExpired,
    ProofMalformed,
    ProofNotYetValid,
    ProofSignatureInvalid,
    ProofWrongProject,
    verify_proof,
)
from taproof.sdk.webhook import (
    WebhookError,
    WebhookEvent,
    WebhookFromFuture,
    WebhookMalformed,
    WebhookSignatureInvalid,
    WebhookTooOld,
    verify_webhook,
)

__all__ = [
    "Identity",
    "ProofError",
    "ProofExpired",
    "ProofMalformed",
    "ProofNotYetValid",
    "ProofSignatureInvalid",
    "ProofWrongProject",
    "WebhookError",
    "WebhookEvent",
    "WebhookFromFuture",
    "WebhookMalformed",
    "WebhookSignatureInvalid",
    "WebhookTooOld",
    "verify_proof",
    "verify_webhook",
]
