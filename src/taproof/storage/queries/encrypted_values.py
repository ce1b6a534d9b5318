"""The columns that hold sealed values, and the statements that walk and replace them, for both stores."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from taproof.storage.sealed_protocol import RowKey, SealedKind, SealedPage, SealedRow


class SealedColumn(NamedTuple):
    """A column, the primary key of its table, what comes before every such key, and the column with the name."""

    table: str
    column: str
    key: tuple[str, ...]
    before_all: RowKey
    name: str


_PROJECT: Final = (("id",), ("",), "id")
_SESSION: Final = (("day", "token_hash"), (-1, b""))
SEALED_COLUMNS: Final[Mapping[SealedKind, SealedColumn]] = {
    "webhook_secret": SealedColumn("projects", "sealed_webhook_secret", *_PROJECT),
    "next_webhook_secret": SealedColumn("projects", "sealed_next_webhook_secret", *_PROJECT),
    "bot_token": SealedColumn("projects", "sealed_bot_token", *_PROJECT),
    "event_body": SealedColumn("webhook_events", "sealed_body", ("id",), ("",), "id"),
    "webhook_answer": SealedColumn("webhook_attempts", "sealed_answer", ("event_id", "number"), ("", 0), "event_id"),
    "phone": SealedColumn("sessions", "sealed_phone", *_SESSION, "id"),
    "phone_request": SealedColumn("phone_requests", "sealed_token", *_SESSION, "session_id"),
    "mark": SealedColumn("marks", "value", ("name",), ("",), "name"),
}


def _list(of: SealedColumn) -> str:
    key = ", ".join(of.key)
    places = ", ".join(f"${place}" for place in range(1, len(of.key) + 1))
    return (
        f"SELECT {key}, {of.name}, {of.column} FROM {of.table} WHERE ({key}) > ({places}) ORDER BY {key} "
        f"LIMIT ${len(of.key) + 1}"
    )


def _replace(of: SealedColumn) -> str:
    # The key first, as the index has it; the guard last.
    found = " AND ".join(f"{name} = ${place}" for place, name in enumerate(of.key, 2))
    guard = f"${len(of.key) + 2}"
    return f"UPDATE {of.table} SET {of.column} = $1 WHERE {found} AND {of.column} = {guard} RETURNING {of.key[0]}"


LIST_SEALED: Final = {kind: _list(column) for kind, column in SEALED_COLUMNS.items()}
"""A page: $1 and on are the key that it begins after, the last is the limit."""
REPLACE_SEALED: Final = {kind: _replace(column) for kind, column in SEALED_COLUMNS.items()}
"""$1 is the new value, then come the key and the old value."""


def sealed_page(kind: SealedKind, rows: list[Any], limit: int) -> SealedPage:
    """Return the page that these rows of `LIST_SEALED` are."""
    width = len(SEALED_COLUMNS[kind].key)
    # Nothing is empty that was sealed: that is a body which was erased.
    found = [SealedRow(tuple(row[:width]), row[width], row[width + 1]) for row in rows if row[width + 1]]
    return SealedPage(found, tuple(rows[-1][:width]) if len(rows) == limit else None)
