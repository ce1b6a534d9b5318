"""Everything that is sealed, sealed anew under the first master key, while the service goes on.

A value is opened in its own place and sealed for that place: one that was moved or altered does not open, and is left
as it is. It is replaced only if it is still the one that was read, so nothing that changes meanwhile is undone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from taproof.core.encryption import Sealer
from taproof.core.entropy import Entropy
from taproof.core.errors import SealBroken
from taproof.service.associated_data import (
    bot_token_binding,
    event_body_binding,
    phone_binding,
    phone_request_binding,
    webhook_secret_binding,
)
from taproof.service.installation import KEY_MARK
from taproof.service.webhooks import answer_binding
from taproof.storage.protocol import Storage
from taproof.storage.sealed_protocol import Replacement, SealedKind, SealedRow

PAGE: Final = 500
"""Rows that are looked at in one read."""
BATCH: Final = 100
"""Values that are replaced in one write: on SQLite it holds up other writers for a few milliseconds."""
_PAUSE: Final = 0.02
"""Seconds between two writes, in which the service's own come first: several times what those wait for the lock."""
PASSES: Final = 5
"""Walks at most. Each after the second is there since the one before it found values of a node that seals on."""

BINDINGS: Final[Mapping[SealedKind, Callable[[SealedRow], str]]] = {
    "webhook_secret": lambda row: webhook_secret_binding(row.name),
    "next_webhook_secret": lambda row: webhook_secret_binding(row.name),
    "bot_token": lambda row: bot_token_binding(row.name),
    "event_body": lambda row: event_body_binding(row.name),
    "webhook_answer": lambda row: answer_binding(row.name, int(row.key[1])),
    "phone": lambda row: phone_binding(row.name),
    "phone_request": lambda row: phone_request_binding(row.name),
    # Last: as long as it is under another key than the first, no walk has come to its end since there is that key.
    "mark": lambda row: row.name,
}
"""What the values of each kind are bound to, in the order of a walk."""


@dataclass(slots=True)
class Resealed:
    """What was done so far.

    `left`: values that the latest walk found under another key than the first, before it did what it could.
    `unreadable`: those that do not open, in that walk: sealed under none of the keys, moved, or altered.
    """

    resealed: int = 0
    left: int = 0
    unreadable: list[tuple[SealedKind, str]] = field(default_factory=list)


class Resealer:
    """Seals everything under the first master key.

    Args:
        storage: the store.
        sealer: has the new key first.
        entropy: returns random bytes.
        told: called after each write with the number of values that were sealed anew so far.
    """

    def __init__(
        self, storage: Storage, sealer: Sealer, entropy: Entropy, *, told: Callable[[int], None] = lambda _: None
    ) -> None:
        self._storage = storage
        self._sealer = sealer
        self._entropy = entropy
        self._told = told
        self._done = Resealed()

    async def reseal(self, settle: Callable[[], Awaitable[None]]) -> Resealed:
        """Walk through everything until a whole walk finds nothing under another key than the first, twice at least.

        `settle` waits between two walks, so long that what was sealed before the key became the first is stored, and
        what was read before it was replaced is opened. In what is returned `left` is 0, unless somebody seals under
        another key all the time.
        """
        for number in range(PASSES):
            if number:
                await settle()
            self._done.left, self._done.unreadable = 0, []
            for kind in BINDINGS:
                await self._walk(kind)
            if number and not self._done.left:
                break
        return self._done

    async def _walk(self, kind: SealedKind) -> None:
        page = await self._storage.list_sealed(kind, None, PAGE)
        while True:
            replacements = [each for row in page.rows if (each := self._resealed(kind, row)) is not None]
            self._done.left += len(replacements)
            for first in range(0, len(replacements), BATCH):
                batch = replacements[first : first + BATCH]
                self._done.resealed += await self._storage.replace_sealed(kind, batch)
                self._told(self._done.resealed)
                await asyncio.sleep(_PAUSE)
            if page.after is None:
                return
            page = await self._storage.list_sealed(kind, page.after, PAGE)

    def _resealed(self, kind: SealedKind, row: SealedRow) -> Replacement | None:
        """Return what takes the place of a value; None when it may stay, or cannot be opened."""
        if self._sealer.is_current(row.sealed) or (kind == "mark" and row.name != KEY_MARK):
            return None
        binding = BINDINGS[kind](row)
        try:
            text = self._sealer.unseal(row.sealed, binding)
        except SealBroken:
            self._done.unreadable.append((kind, row.name))
            return None
        return Replacement(row.key, row.sealed, self._sealer.seal(text, binding, self._entropy))
