"""Taproof: sign users in with their messenger account. This package's own names are the SDK's."""

from taproof.sdk import (
    Identity,
    ProofError,
    ProofExpired,
    ProofMalformed,
    ProofNotYetValid,
    ProofSignatureInvalid,
    ProofWrongProject,
    verify_proof,
)

__all__ = [
    "Identity",
    "ProofError",
    "ProofExpired",
    "ProofMalformed",
    "ProofNotYetValid",
    "ProofSignatureInvalid",
    "ProofWrongProject",
    "verify_proof",
]
