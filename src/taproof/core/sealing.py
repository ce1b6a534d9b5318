"""Encryption at rest: AES-256-GCM under the master key, bound to the row that the value belongs to.

A sealed value is `version (1) | key id (4) | nonce (12) | ciphertext and tag`. The binding (for example
`webhook_secret:proj_…`) is authenticated, so that a value moved to another row does not open.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from taproof.core.entropy import Entropy
from taproof.core.errors import SealBroken

KEY_SIZE: Final = 32
_VERSION: Final = b"\x01"
_KEY_ID: Final = slice(1, 5)
_NONCE: Final = slice(5, 17)


def new_master_key(entropy: Entropy) -> str:
    """Return a new master key: the base64url of 32 random bytes."""
    return base64.urlsafe_b64encode(entropy(KEY_SIZE)).decode()


class Sealer:
    """Seals and opens values.

    Args:
        master_key: the base64 or base64url of 32 bytes.

    Raises:
        ValueError: the key does not have that form.
    """

    def __init__(self, master_key: str) -> None:
        try:
            key = base64.b64decode(master_key.strip().translate(str.maketrans("-_", "+/")), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != KEY_SIZE:
            raise ValueError("the master key must be the base64 of exactly 32 bytes")
        self._key = key
        self._key_id = hashlib.sha256(b"taproof master key id" + key).digest()[:4]
        self._cipher = AESGCM(key)

    def seal(self, plaintext: str, binding: str, entropy: Entropy) -> bytes:
        """Encrypt `plaintext` for the place that `binding` names."""
        nonce = entropy(12)
        return _VERSION + self._key_id + nonce + self._cipher.encrypt(nonce, plaintext.encode(), binding.encode())

    def unseal(self, sealed: bytes, binding: str) -> str:
        """Decrypt a value that was sealed for `binding`.

        Raises:
            SealBroken: it was altered, was sealed for another place, or under another key.
        """
        if sealed[:1] != _VERSION or sealed[_KEY_ID] != self._key_id:
            raise SealBroken
        try:
            return self._cipher.decrypt(sealed[_NONCE], sealed[_NONCE.stop :], binding.encode()).decode()
        except (InvalidTag, ValueError):
            raise SealBroken from None

    def derive(self, purpose: str) -> str:
        """Return a secret for `purpose` that every node with this master key derives alike: 64 hex digits."""
        return hmac.new(self._key, purpose.encode(), hashlib.sha256).hexdigest()
