"""PKCE (RFC 7636) with S256: a session created with a `code_challenge` can only be read with its `code_verifier`."""

import base64
import hashlib
import hmac
import re
from typing import Final, TypeGuard

from taproof.core.clock import SECOND

METHOD: Final = "S256"
REREAD_WINDOW: Final = 60 * SECOND
"""Milliseconds after the first confirmed read during which the holder of the verifier can read the same response again.

A lost response thus does not lose the sign-in."""
CHALLENGE_PATTERN: Final = "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"
VERIFIER_PATTERN: Final = "^[A-Za-z0-9._~-]{43,128}$"

_CHALLENGE: Final = re.compile(CHALLENGE_PATTERN.strip("^$"))
_VERIFIER: Final = re.compile(VERIFIER_PATTERN.strip("^$"))


def challenge_digest(code_challenge: str) -> bytes | None:
    """Return the SHA-256 that a code challenge encodes, or None if it is malformed."""
    if _CHALLENGE.fullmatch(code_challenge) is None:
        return None
    return base64.urlsafe_b64decode(f"{code_challenge}=")


def is_code_verifier(value: object) -> TypeGuard[str]:
    """Return whether `value` has the format of a code verifier: 43 to 128 unreserved characters."""
    return isinstance(value, str) and _VERIFIER.fullmatch(value) is not None


def is_proven(digest: bytes | None, code_verifier: object) -> bool:
    """Return whether a session may be read: it has no challenge, or the given verifier (any value) matches."""
    if digest is None:
        return True
    if not is_code_verifier(code_verifier):
        return False
    return hmac.compare_digest(hashlib.sha256(code_verifier.encode()).digest(), digest)
