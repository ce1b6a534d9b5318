"""The SDK: what an application imports. It needs nothing of the server's, and PyJWT alone.

`proof.py` checks the proof that a browser brings. The names below are also those of `taproof` itself.
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
