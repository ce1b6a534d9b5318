"""Everything that is encrypted, encrypted anew under the first master key, while the service goes on.

A value is opened in its own place and encrypted for that place: one that was moved or altered does not open, and is
left as it is. It is replaced only if it is still the one that was read, so nothing that changes meanwhile is undone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from taproof.core.encryption import (
    Encryptor,
    bot_token_associated_data,
    event_body_associated_data,
    phone_associated_data,
    phone_request_associated_data,
    webhook_secret_associated_data,
)
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed
from taproof.service.installation import KEY_MARK
from taproof.service.webhooks import answer_associated_data
from taproof.storage.protocol import EncryptedKind, EncryptedRow, Replacement, Storage

PAGE: Final = 500
"""Rows that are looked at in one read."""
BATCH: Final = 100
"""Values that are replaced in one write: on SQLite it holds up other writers for a few milliseconds."""
_PAUSE: Final = 0.02
"""Seconds between two writes, in which the service's own come first: several times what those wait for the lock."""
PASSES: Final = 5
"""Walks at most. Each after the second is there since the one before it found values of a node that encrypts on."""

ASSOCIATED_DATA: Final[Mapping[EncryptedKind, Callable[[EncryptedRow], str]]] = {
    "webhook_secret": lambda row: webhook_secret_associated_data(row.name),
    "next_webhook_secret": lambda row: webhook_secret_associated_data(row.name),
    "bot_token": lambda row: bot_token_associated_data(row.name),
    "event_body": lambda row: event_body_associated_data(row.name),
    "webhook_answer": lambda row: answer_associated_data(row.name, int(row.key[1])),
    "phone": lambda row: phone_associated_data(row.name),
    "phone_request": lambda row: phone_request_associated_data(row.name),
    # Last: as long as it is under another key than the first, no walk has come to its end since there is that key.
    "mark": lambda row: row.name,
}
"""What the values of each kind are bound to, in the order of a walk."""


@dataclass(slots=True)
class Reencrypted:
    """What was done so far.

    `left`: values that the latest walk found under another key than the first, before it did what it could.
    `unreadable`: those that do not open, in that walk: encrypted under none of the keys, moved, or altered.
    """

    reencrypted: int = 0
    left: int = 0
    unreadable: list[tuple[EncryptedKind, str]] = field(default_factory=list)


class Reencryptor:
    """Re-encrypts everything under the first master key.

    Args:
        storage: the store.
        encryptor: has the new key first.
        entropy: returns random bytes.
        told: called after each write with the number of values that were encrypted anew so far.
    """

    def __init__(
        self, storage: Storage, encryptor: Encryptor, entropy: Entropy, *, told: Callable[[int], None] = lambda _: None
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._entropy = entropy
        self._told = told
        self._done = Reencrypted()

    async def reencrypt(self, settle: Callable[[], Awaitable[None]]) -> Reencrypted:
        """Walk through everything until a whole walk finds nothing under another key than the first, twice at least.

        `settle` waits between two walks, so long that what was encrypted before the key became the first is stored, and
        what was read before it was replaced is opened. In what is returned `left` is 0, unless somebody encrypts under
        another key all the time.
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
        page = await self._storage.encrypted_values.list_encrypted_values(kind, None, PAGE)
        while True:
            replacements = [each for row in page.rows if (each := self._reencrypted(kind, row)) is not None]
            self._done.left += len(replacements)
            for first in range(0, len(replacements), BATCH):
                batch = replacements[first : first + BATCH]
                self._done.reencrypted += await self._storage.encrypted_values.replace_encrypted_values(kind, batch)
                self._told(self._done.reencrypted)
                await asyncio.sleep(_PAUSE)
            if page.after is None:
                return
            page = await self._storage.encrypted_values.list_encrypted_values(kind, page.after, PAGE)

    def _reencrypted(self, kind: EncryptedKind, row: EncryptedRow) -> Replacement | None:
        """Return what takes the place of a value; None when it may stay, or cannot be opened."""
        if self._encryptor.is_current(row.encrypted) or (kind == "mark" and row.name != KEY_MARK):
            return None
        associated_data = ASSOCIATED_DATA[kind](row)
        try:
            text = self._encryptor.decrypt(row.encrypted, associated_data)
        except DecryptionFailed:
            self._done.unreadable.append((kind, row.name))
            return None
        return Replacement(row.key, row.encrypted, self._encryptor.encrypt(text, associated_data, self._entropy))
