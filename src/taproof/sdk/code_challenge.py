"""Code verifiers and challenges (RFC 7636, 4.1 and 4.2; S256 only). Reading the result requires the verifier."""

import base64
import hashlib
import re
import secrets
from typing import Final

_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def new_code_verifier() -> str:
    """Return a new code verifier: 43 characters with 256 random bits. Keep it in the client that starts the session."""
    return secrets.token_urlsafe(32)  # noqa: TID251 — the SDK cannot use the service's `entropy`.


def code_challenge(code_verifier: str) -> str:
    """Return the `code_challenge` for generate: BASE64URL(SHA256(code_verifier)), 43 characters.

    Raises:
        ValueError: the verifier is not 43 to 128 characters of A-Z a-z 0-9 - . _ ~. The message does not contain it.
    """
    if not isinstance(code_verifier, str) or _VERIFIER.fullmatch(code_verifier) is None:
        raise ValueError(
            "A code verifier is 43 to 128 characters of A-Z a-z 0-9 - . _ ~. Make one with new_code_verifier()."
        )
    digest = hashlib.sha256(code_verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
