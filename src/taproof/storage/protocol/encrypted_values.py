"""The interface of `store.encrypted_values`."""

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
    "oidc_session",
    "signing_key",
    "mark",
]
"""A kind of encrypted value. Each kind is one column of one table: see `queries/encrypted_values.py`."""
RowKey = tuple[str | int | bytes, ...]
"""The primary key of a row."""


class EncryptedRow(NamedTuple):
    """An encrypted value. `name` is the id of the project, event or session, or the name of the metadata entry."""

    key: RowKey
    name: str
    encrypted: bytes


class EncryptedPage(NamedTuple):
    """A page of encrypted values in the order of their keys.

    `after` is the start of the next page, None after the last page. A page may be empty without being the last.
    """

    rows: list[EncryptedRow]
    after: RowKey | None


class Replacement(NamedTuple):
    """A new encrypted value and the old one that it replaces. Nothing changes if the row no longer contains `old`."""

    key: RowKey
    old: bytes
    new: bytes


class EncryptedValueStorage(Protocol):
    """All encrypted values, for the rotation of the master key."""

    async def list_encrypted_values(self, kind: EncryptedKind, after: RowKey | None, limit: int) -> EncryptedPage:
        """Return the next encrypted values of a kind, from at most `limit` rows. Rows added meanwhile may be missed."""

    async def replace_encrypted_values(self, kind: EncryptedKind, replacements: Sequence[Replacement]) -> int:
        """Replace each value that has not changed since it was read; return the number of replaced values."""
