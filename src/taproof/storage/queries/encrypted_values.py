"""The columns of all encrypted values, and the statements that list and replace them when the master key rotates."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from taproof.storage.queries.database import Queries
from taproof.storage.queries.transaction import Transaction

EncryptedKind = Literal[
    "webhook_secret",
    "next_webhook_secret",
    "bot_token",
    "event_body",
    "webhook_answer",
    "phone",
    "phone_request",
    "oidc_session",
    "grant_phone",
    "signing_key",
    "mark",
]
"""A kind of encrypted value. Each kind is one column of one table: see `ENCRYPTED_COLUMNS`."""
RowKey = tuple[str | int | bytes, ...]
"""The primary key of a row."""


class EncryptedRow(NamedTuple):
    """An encrypted value. `name` is the id of the project, event or session, or the name of the metadata entry."""

    key: RowKey
    name: str
    encrypted: bytes


class EncryptedPage(NamedTuple):
    """A page of encrypted values by key, and the start of the next page. A page may be empty without being the last."""

    rows: list[EncryptedRow]
    after: RowKey | None


class Replacement(NamedTuple):
    """A new encrypted value and the old one that it replaces. Nothing changes if the row no longer contains `old`."""

    key: RowKey
    old: bytes
    new: bytes


class EncryptedColumn(NamedTuple):
    """A column with encrypted values.

    `before_all` sorts before every key. `name` is the column for the `name` of an `EncryptedRow`.
    """

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
    "oidc_session": EncryptedColumn("oidc_authorizations", "encrypted_session", ("id",), ("",), "id"),
    "grant_phone": EncryptedColumn("oidc_grants", "encrypted_phone", ("id",), ("",), "id"),
    "signing_key": EncryptedColumn("oidc_signing_keys", "encrypted_private_key", ("alg", "generation"), ("", 0), "kid"),
    "mark": EncryptedColumn("metadata", "value", ("name",), ("",), "name"),
}


def _list(of: EncryptedColumn) -> str:
    key = ", ".join(of.key)
    parameters = ", ".join(f"${index}" for index in range(1, len(of.key) + 1))
    return (
        f"SELECT {key}, {of.name}, {of.column} FROM {of.table} WHERE ({key}) > ({parameters}) ORDER BY {key} "
        f"LIMIT ${len(of.key) + 1}"
    )


def _replace(of: EncryptedColumn) -> str:
    # The columns of the key come first, as in the index; the guard comes last.
    found = " AND ".join(f"{name} = ${index}" for index, name in enumerate(of.key, 2))
    guard = f"${len(of.key) + 2}"
    return f"UPDATE {of.table} SET {of.column} = $1 WHERE {found} AND {of.column} = {guard} RETURNING {of.key[0]}"


LIST_ENCRYPTED: Final = {kind: _list(column) for kind, column in ENCRYPTED_COLUMNS.items()}
"""The statements that list a page. The first values are the key after which the page begins; the limit is last."""
REPLACE_ENCRYPTED: Final = {kind: _replace(column) for kind, column in ENCRYPTED_COLUMNS.items()}
"""The statements that replace one value. `$1` is the new value; the key and the old value follow."""


def encrypted_page(rows: list[Any], limit: int) -> EncryptedPage:
    """Return the page of these rows of `LIST_ENCRYPTED`."""
    found = [EncryptedRow(tuple(key), name, encrypted) for *key, name, encrypted in rows]
    # An encrypted value is never empty: an empty value is an erased event body.
    return EncryptedPage([each for each in found if each.encrypted], found[-1].key if len(rows) == limit else None)


class EncryptedValueQueries(Queries):
    """All encrypted values, for the rotation of the master key."""

    async def list_encrypted_values(self, kind: EncryptedKind, after: RowKey | None, limit: int) -> EncryptedPage:
        """Return the next encrypted values of a kind, from at most `limit` rows. Rows added meanwhile may be missed."""
        start = ENCRYPTED_COLUMNS[kind].before_all if after is None else after
        return encrypted_page(await self._database.read(LIST_ENCRYPTED[kind], *start, limit), limit)

    async def replace_encrypted_values(self, kind: EncryptedKind, replacements: Sequence[Replacement]) -> int:
        """Replace each value that has not changed since it was read; return the number of replaced values."""

        async def replace(transaction: Transaction) -> int:
            statement = REPLACE_ENCRYPTED[kind]
            return sum(
                [len(await transaction.fetch(statement, each.new, *each.key, each.old)) for each in replacements]
            )

        return await self._database.in_transaction(replace) if replacements else 0
