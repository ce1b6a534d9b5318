"""What the rotation of the master key asks of a store: to walk sealed values and replace them. See `protocol.py`."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

SealedKind = Literal[
    "webhook_secret",
    "next_webhook_secret",
    "bot_token",
    "event_body",
    "webhook_answer",
    "phone",
    "phone_request",
    "mark",
]
"""Where a sealed value lies: each is one column of one table, see `queries/encrypted_values.py`."""
RowKey = tuple[str | int | bytes, ...]
"""The primary key of a row."""


class SealedRow(NamedTuple):
    """A sealed value. `name` is the id of what it belongs to: a project, an event, a session; or the name of a mark."""

    key: RowKey
    name: str
    sealed: bytes


class SealedPage(NamedTuple):
    """Sealed values, by key. `after` continues the walk and is None at its end; a page before that may be empty."""

    rows: list[SealedRow]
    after: RowKey | None


class Replacement(NamedTuple):
    """One sealed value in place of another one, which must be the one that is there."""

    key: RowKey
    old: bytes
    new: bytes


class SealedStorage(Protocol):
    """The part of the store that all sealed values can be walked through."""

    async def list_sealed(self, kind: SealedKind, after: RowKey | None, limit: int) -> SealedPage:
        """Return the next sealed values of a kind, having looked at no more than `limit` rows.

        No row is passed over that was there when the walk began and still is; those that come meanwhile may be.
        """

    async def replace_sealed(self, kind: SealedKind, replacements: Sequence[Replacement]) -> int:
        """Replace each value that is still the old one; return how many were. Nothing else of their rows changes.

        On PostgreSQL each is a transaction of its own, so that this can be in nobody's way.
        """
