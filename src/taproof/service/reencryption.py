"""Re-encrypt all encrypted values under the first master key, while the service runs.

Each value is decrypted and re-encrypted with the associated data of its own row. A value that was moved or altered does
not decrypt and is left unchanged. A value is replaced only if it has not changed since it was read, so concurrent
changes are not lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed
from taproof.service.installation import KEY_MARK
from taproof.service.webhooks import answer_associated_data
from taproof.storage.protocol import Storage
from taproof.storage.queries.encrypted_values import EncryptedKind, EncryptedRow, Replacement

PAGE: Final = 500
"""The number of rows read at a time."""
BATCH: Final = 100
"""The number of values replaced in one write. On SQLite, a write blocks other writers for a few milliseconds."""
PAUSE: Final = 0.02
"""Seconds between two writes. This is several times as long as the service's own writes wait for the lock, so they have
priority."""
PASSES: Final = 5
"""The maximum number of walks. After the second, another walk follows only if the previous one found values that a node
encrypted under another key."""

ASSOCIATED_DATA: Final[Mapping[EncryptedKind, Callable[[EncryptedRow], str]]] = {
    "webhook_secret": lambda row: associated_data_of("webhook_secret", row.name),
    "next_webhook_secret": lambda row: associated_data_of("webhook_secret", row.name),
    "bot_token": lambda row: associated_data_of("bot_token", row.name),
    "event_body": lambda row: associated_data_of("event_body", row.name),
    "webhook_answer": lambda row: answer_associated_data(row.name, int(row.key[1])),
    "phone": lambda row: associated_data_of("phone", row.name),
    "phone_request": lambda row: associated_data_of("phone_request", row.name),
    "oidc_session": lambda row: associated_data_of("oidc_session", row.name),
    "grant_phone": lambda row: associated_data_of("grant_phone", row.name),
    "signing_key": lambda row: associated_data_of("signing_key", row.name),
    # Last: if the check value is encrypted under the first key, a whole walk has finished with this key.
    "mark": lambda row: row.name,
}
"""The associated data of each kind of value, in the order of a walk."""


@dataclass(slots=True)
class Reencrypted:
    """The progress so far. The latest walk found `left` values under a key other than the first.

    It could not decrypt those in `unreadable`: encrypted under an unknown key, moved or altered.
    """

    reencrypted: int = 0
    left: int = 0
    unreadable: list[tuple[EncryptedKind, str]] = field(default_factory=list)


class Reencryptor:
    """Re-encrypts all values under the first master key of the encryptor, in batches.

    Args:
        encryptor: has the new key first.
        on_progress: called after each write with the number of values re-encrypted so far.
        page: the number of rows read at a time.
        batch: the number of values replaced in one write.
        pause: the seconds between two writes.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        entropy: Entropy,
        *,
        on_progress: Callable[[int], None],
        page: int = PAGE,
        batch: int = BATCH,
        pause: float = PAUSE,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._entropy = entropy
        self._on_progress = on_progress
        self._page = page
        self._batch = batch
        self._pause = pause
        self._done = Reencrypted()

    async def reencrypt(self, settle: Callable[[], Awaitable[None]]) -> Reencrypted:
        """Walk through all values, at least twice, until a walk finds none under a key other than the first.

        `settle` waits between two walks. When it returns, values encrypted before the key became the first must be
        stored, and values read before their replacement must be decrypted. The result's `left` is 0 unless a node still
        encrypts under another key.
        """
        for number in range(PASSES):
            if number:
                await settle()
            self._done.left, self._done.unreadable = 0, []
            for kind in ASSOCIATED_DATA:
                await self._walk(kind)
            if number and not self._done.left:
                break
        return self._done

    async def _walk(self, kind: EncryptedKind) -> None:
        page = await self._storage.encrypted_values.list_encrypted_values(kind, None, self._page)
        while True:
            replacements = [each for row in page.rows if (each := self._reencrypted(kind, row)) is not None]
            self._done.left += len(replacements)
            for first in range(0, len(replacements), self._batch):
                batch = replacements[first : first + self._batch]
                self._done.reencrypted += await self._storage.encrypted_values.replace_encrypted_values(kind, batch)
                self._on_progress(self._done.reencrypted)
                await asyncio.sleep(self._pause)
            if page.after is None:
                return
            page = await self._storage.encrypted_values.list_encrypted_values(kind, page.after, self._page)

    def _reencrypted(self, kind: EncryptedKind, row: EncryptedRow) -> Replacement | None:
        """Return the replacement of a value; None if the value needs none or cannot be decrypted."""
        if self._encryptor.is_current(row.encrypted) or (kind == "mark" and row.name != KEY_MARK):
            return None
        associated_data = ASSOCIATED_DATA[kind](row)
        try:
            text = self._encryptor.decrypt(row.encrypted, associated_data)
        except DecryptionFailed:
            self._done.unreadable.append((kind, row.name))
            return None
        return Replacement(row.key, row.encrypted, self._encryptor.encrypt(text, associated_data, self._entropy))
