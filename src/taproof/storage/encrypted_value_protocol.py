"""What the rotation of the master key asks of a store: to walk encrypted values and replace them. See `protocol.py`."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

EncryptedKind = Literal[
    "webhook_secret",
    "next_webhook_secret",
    "bot_token",
    "event_body",
    "webhook_answer",
    "phone",
    "phone_request",
    "mark",
]
"""Where an encrypted value lies: each is one column of one table, see `queries/encrypted_values.py`."""
RowKey = tuple[str | int | bytes, ...]
"""The primary key of a row."""


class EncryptedRow(NamedTuple):
    """An encrypted value. `name` is the id of its project, event or session, or the name of its metadata entry."""

    key: RowKey
    name: str
    encrypted: bytes


class EncryptedPage(NamedTuple):
    """Encrypted values, by key. `after` continues the walk and is None at its end; a page before that may be empty."""

    rows: list[EncryptedRow]
    after: RowKey | None


class Replacement(NamedTuple):
    """One encrypted value in place of another one, which must be the one that is there."""

    key: RowKey
    old: bytes
    new: bytes


class EncryptedValueStorage(Protocol):
    """The part of the store that all encrypted values can be walked through."""

    async def list_encrypted_values(self, kind: EncryptedKind, after: RowKey | None, limit: int) -> EncryptedPage:
        """Return the next encrypted values of a kind, having looked at no more than `limit` rows.

        No row is passed over that was there when the walk began and still is; those that come meanwhile may be.
        """

    async def replace_encrypted_values(self, kind: EncryptedKind, replacements: Sequence[Replacement]) -> int:
        """Replace each value that is still the old one; return how many were. Nothing else of their rows changes.

        On PostgreSQL each is a transaction of its own, so that this can be in nobody's way.
        """
