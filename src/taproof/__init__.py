"""Taproof: sign users in with their messenger account. This package's own names are the SDK's."""

from taproof.sdk import (
    Identity,
    ProofError,
    ProofExpired,
    ProofMalformed,
    ProofNotYetValid,
    ProofSignatureInvalid,
    ProofWrongProject,
    WebhookError,
    WebhookEvent,
    WebhookFromFuture,
    WebhookMalformed,
    WebhookSignatureInvalid,
    WebhookTooOld,
    verify_proof,
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
