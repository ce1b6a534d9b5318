"""Encryption at rest: AES-256-GCM under a master key, with the value's row as associated data.

An encrypted value is `version (1) | key id (4) | nonce (12) | ciphertext and tag`. The associated data (for example
`webhook_secret:proj_…`) is authenticated, so a value moved to another row cannot be decrypted. During a rotation there
are several master keys. The first key encrypts, all keys decrypt, and the key id selects the key.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed

BoundKind = Literal[
    "webhook_secret",
    "bot_token",
    "event_body",
    "phone",
    "phone_request",
    "oidc_session",
    "grant_phone",
    "signing_key",
]
"""The kinds of encrypted values that are bound to a row by a single id."""

KEY_SIZE: Final = 32
_VERSION: Final = b"\x01"
_KEY_ID: Final = slice(1, 5)
_NONCE: Final = slice(5, 17)
_BETWEEN: Final = re.compile(r"[,\n]")


def new_master_key(entropy: Entropy) -> str:
    """Return a new master key: the base64url of 32 random bytes."""
    return base64.urlsafe_b64encode(entropy(KEY_SIZE)).decode()


def split_master_keys(text: str) -> list[str]:
    """Return the master keys in a text, where commas or line ends separate them. The keys are not validated."""
    return [each.strip() for each in _BETWEEN.split(text.strip())]


class _Key:
    """One master key, ready for use. Its `repr` does not show the secret."""

    __slots__ = ("cipher", "id", "secret")

    def __init__(self, text: str) -> None:
        try:
            secret = base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != KEY_SIZE:
            raise ValueError("the master key must be the base64 of exactly 32 bytes")
        self.secret = secret
        self.id = hashlib.sha256(b"taproof master key id" + secret).digest()[:4]
        self.cipher = AESGCM(secret)


class Encryptor:
    """Encrypts and decrypts values.

    Args:
        master_keys: the base64 or base64url of 32 bytes, or several such keys separated by commas or line ends.
        newer: called before each use. It returns the keys if they have changed since its last call, else None. It must
            return only keys that this class accepts.

    Raises:
        ValueError: a key is malformed, or two keys have the same id (one of about four billion).
    """

    def __init__(self, master_keys: str, newer: Callable[[], str | None] | None = None) -> None:
        self._newer = newer
        self._known = _ready(master_keys)

    @property
    def key_count(self) -> int:
        """The number of master keys."""
        return len(self._keys())

    def encrypt(self, plaintext: str, associated_data: str, entropy: Entropy) -> bytes:
        """Encrypt `plaintext` under the first key, bound to `associated_data`."""
        nonce, key = entropy(12), self._keys()[0]
        return _VERSION + key.id + nonce + key.cipher.encrypt(nonce, plaintext.encode(), associated_data.encode())

    def decrypt(self, encrypted: bytes, associated_data: str) -> str:
        """Decrypt a value that was encrypted for `associated_data` under any of the keys.

        Raises:
            DecryptionFailed: the value was altered, or was encrypted for other associated data or under an unknown key.
        """
        key = self._key_of(encrypted)
        if key is None:
            raise DecryptionFailed
        try:
            return key.cipher.decrypt(encrypted[_NONCE], encrypted[_NONCE.stop :], associated_data.encode()).decode()
        except (InvalidTag, ValueError):
            raise DecryptionFailed from None

    def is_current(self, encrypted: bytes) -> bool:
        """Return whether a value is encrypted under the first key, judged by its key id."""
        return self._key_of(encrypted) is self._known[0]

    def knows(self, encrypted: bytes) -> bool:
        """Return whether a value is encrypted under a known key, judged by its key id."""
        return self._key_of(encrypted) is not None

    def derive(self, purpose: str) -> str:
        """Return a secret for `purpose`: 64 hex digits, the same on every node with this first key."""
        return self.derive_all(purpose)[0]

    def derive_all(self, purpose: str) -> list[str]:
        """Return the result of `derive` for each key. When checking the secret, accept any of them."""
        return [hmac.digest(key.secret, purpose.encode(), "sha256").hex() for key in self._keys()]

    def _keys(self) -> list[_Key]:
        if self._newer is not None and (text := self._newer()) is not None:
            self._known = _ready(text)
        return self._known

    def _key_of(self, encrypted: bytes) -> _Key | None:
        keys = self._keys()
        if encrypted[:1] != _VERSION:
            return None
        return next((key for key in keys if key.id == encrypted[_KEY_ID]), None)


def _ready(text: str) -> list[_Key]:
    """Return the distinct keys in a text, in order."""
    keys = {key.secret: key for key in map(_Key, split_master_keys(text))}
    if len({key.id for key in keys.values()}) < len(keys):
        raise ValueError("two of the master keys have the same id; create another key")
    return list(keys.values())


def associated_data_of(kind: BoundKind, row_id: str) -> str:
    """Return the associated data that binds an encrypted value to its row, so that it decrypts only there.

    `row_id` is the id of a project (`webhook_secret`, `bot_token`), of an event (`event_body`), of a session (`phone`,
    and `phone_request` for the session token while the session waits for a phone number), of an authorization
    (`oidc_session`), or of a key (`signing_key`).
    """
    return f"{kind}:{row_id}"
