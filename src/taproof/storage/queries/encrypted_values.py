"""All encrypted values, for the rotation of the master key: their columns, and how to walk and replace them."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from taproof.storage.protocol import EncryptedKind, EncryptedPage, EncryptedRow, RowKey
from taproof.storage.queries.database import AnyDatabase, Queries


class EncryptedColumn(NamedTuple):
    """A column, the primary key of its table, what comes before every such key, and the column with the name."""

    table: str
    column: str
    key: tuple[str, ...]
    before_all: RowKey
    name: str


_PROJECT: Final = (("id",), ("",), "id")
_SESSION: Final = (("day", "token_hash"), (-1, b""))
ENCRYPTED_COLUMNS: Final[Mapping[EncryptedKind, EncryptedColumn]] = {
    "webhook_secret": EncryptedColumn("projects", "encrypted_webhook_secret", *_PROJECT),
    "next_webhook_secret": EncryptedColumn("projects", "encrypted_next_webhook_secret", *_PROJECT),
    "bot_token": EncryptedColumn("projects", "encrypted_bot_token", *_PROJECT),
    "event_body": EncryptedColumn("webhook_events", "encrypted_body", ("id",), ("",), "id"),
    "webhook_answer": EncryptedColumn(
        "webhook_attempts", "encrypted_answer", ("event_id", "number"), ("", 0), "event_id"
    ),
    "phone": EncryptedColumn("sessions", "encrypted_phone", *_SESSION, "id"),
    "phone_request": EncryptedColumn("phone_requests", "encrypted_token", *_SESSION, "session_id"),
    "mark": EncryptedColumn("metadata", "value", ("name",), ("",), "name"),
}


def _list(of: EncryptedColumn) -> str:
    key = ", ".join(of.key)
    places = ", ".join(f"${place}" for place in range(1, len(of.key) + 1))
    return (
        f"SELECT {key}, {of.name}, {of.column} FROM {of.table} WHERE ({key}) > ({places}) ORDER BY {key} "
        f"LIMIT ${len(of.key) + 1}"
    )


def _replace(of: EncryptedColumn) -> str:
    # The key first, as the index has it; the guard last.
    found = " AND ".join(f"{name} = ${place}" for place, name in enumerate(of.key, 2))
    guard = f"${len(of.key) + 2}"
    return f"UPDATE {of.table} SET {of.column} = $1 WHERE {found} AND {of.column} = {guard} RETURNING {of.key[0]}"


LIST_ENCRYPTED: Final = {kind: _list(column) for kind, column in ENCRYPTED_COLUMNS.items()}
"""A page: $1 and on are the key that it begins after, the last is the limit."""
REPLACE_ENCRYPTED: Final = {kind: _replace(column) for kind, column in ENCRYPTED_COLUMNS.items()}
"""$1 is the new value, then come the key and the old value."""


def encrypted_page(rows: list[Any], limit: int) -> EncryptedPage:
    """Return the page that these rows of `LIST_ENCRYPTED` are."""
    found = [EncryptedRow(tuple(key), name, encrypted) for *key, name, encrypted in rows]
    # Nothing is empty that was encrypted: that is a body which was erased.
    return EncryptedPage([each for each in found if each.encrypted], found[-1].key if len(rows) == limit else None)


class EncryptedValueQueries(Queries[AnyDatabase]):
    """See `storage.protocol.EncryptedValueStorage`."""

    async def list_encrypted_values(self, kind: EncryptedKind, after: RowKey | None, limit: int) -> EncryptedPage:
        start = ENCRYPTED_COLUMNS[kind].before_all if after is None else after
        return encrypted_page(await self._database.read(LIST_ENCRYPTED[kind], *start, limit), limit)
