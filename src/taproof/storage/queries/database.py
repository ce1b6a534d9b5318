"""The database interface that the parts of a store use, for single statements and for transactions."""

import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from taproof.core.accounts import AuditEntry
from taproof.storage.queries.transaction import Transaction

NO_LIMIT: Final = sys.maxsize
T = TypeVar("T")
Model = TypeVar("Model")


class Purge(NamedTuple):
    """The statements that erase old rows of a table in bounded steps.

    `key` has the columns of the primary key, and `is_old` a condition with a time, day or deleted project as `$1`.
    """

    table: str
    key: str
    is_old: str

    @property
    def find_any(self) -> str:
        """The statement that finds one old row."""
        return f"SELECT 1 FROM {self.table} WHERE {self.is_old} LIMIT 1"

    @property
    def sqlite(self) -> str:
        """The statement that erases at most `$2` old rows."""
        old = f"SELECT {self.key} FROM {self.table} WHERE {self.is_old} LIMIT $2"
        return f"DELETE FROM {self.table} WHERE ({self.key}) IN ({old}) RETURNING 1"

    @property
    def postgres(self) -> str:
        """The statement that erases at most `$2` old rows. It skips rows that another transaction has locked."""
        old = f"SELECT {self.key} FROM {self.table} WHERE {self.is_old} LIMIT $2 FOR UPDATE SKIP LOCKED"
        same = " AND ".join(f"t.{column} = o.{column}" for column in self.key.split(", "))
        return f"WITH old AS MATERIALIZED ({old}) DELETE FROM {self.table} t USING old o WHERE {same} RETURNING 1"


class PointRead(NamedTuple, Generic[Model]):
    """A read of one row by a unique key: by one key, or by an array of keys, where the key is the first column."""

    one: str
    many: str
    model: Callable[[Any], Model]


def point_read(
    model: Callable[[Any], Model], columns: str, source: str, key: str, key_type: str = "TEXT"
) -> PointRead[Model]:
    """Return the read of these columns by the column `key`, whose type is `key_type` on PostgreSQL."""
    one = f"SELECT {columns} FROM {source} WHERE {key} = $1"
    return PointRead(one, f"SELECT {key}, {columns} FROM {source} WHERE {key} = ANY ($1::{key_type}[])", model)


class Database(Protocol):
    """Runs single statements, each in its own transaction, and whole transactions.

    PostgreSQL cannot store a NUL in a text. With such a value, `read`, `find`, `look_up` and `change` find no rows on
    PostgreSQL.
    """

    async def read(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows that a statement finds."""

    async def find(self, read: PointRead[Model], key: str | bytes) -> Model | None:
        """Return the row with this key; None if there is none. PostgreSQL reads for concurrent calls at once."""

    async def look_up(self, statement: str, *values: Any) -> list[Any]:
        """Do the same as `read`, for statements whose cost grows with a developer's data."""

    async def change(self, statement: str, *values: Any, entry: AuditEntry | None = None) -> list[Any]:
        """Return the rows that a statement changed; if there are any, add `entry` to the audit log."""

    async def add(self, statement: str, *values: Any, entry: AuditEntry | None = None) -> list[Any]:
        """Do the same as `change`, for a statement that adds a row."""

    async def in_transaction(self, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        """Run `work` in one transaction, and return its result once the transaction is durable.

        `work` must await only the methods of the transaction. It may run more than once.
        """

    async def in_lookup(self, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        """Run `work`, which only reads, on one snapshot without blocking the event loop. See `in_transaction`."""

    async def purge(self, purge: Purge, before: int, limit: int) -> int:
        """Erase at most `limit` old rows; return their number."""


class Queries:
    """Methods of one part of a store, written once for both databases. A driver overrides the few that must differ."""

    def __init__(self, database: Database) -> None:
        self._database = database
