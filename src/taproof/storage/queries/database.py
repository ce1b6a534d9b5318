"""What the parts of a store run on: single statements and whole transactions, on either database."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from taproof.core.accounts import AuditEntry
from taproof.storage.queries.transaction import Transaction

T = TypeVar("T")


class Purge(NamedTuple):
    """The statements that erase old rows of a table in bounded steps.

    Args:
        table: its name.
        key: the columns of its primary key, with commas between them.
        is_old: the condition that a row is old, given the time or day `$1`.
    """

    table: str
    key: str
    is_old: str

    @property
    def find_any(self) -> str:
        """Find one old row."""
        return f"SELECT 1 FROM {self.table} WHERE {self.is_old} LIMIT 1"

    @property
    def sqlite(self) -> str:
        """Erase at most `$2` old rows."""
        old = f"SELECT {self.key} FROM {self.table} WHERE {self.is_old} LIMIT $2"
        return f"DELETE FROM {self.table} WHERE ({self.key}) IN ({old}) RETURNING 1"

    @property
    def postgres(self) -> str:
        """Erase at most `$2` old rows. Rows that another transaction has locked are passed over."""
        old = f"SELECT {self.key} FROM {self.table} WHERE {self.is_old} LIMIT $2 FOR UPDATE SKIP LOCKED"
        same = " AND ".join(f"t.{column} = o.{column}" for column in self.key.split(", "))
        return f"WITH old AS MATERIALIZED ({old}) DELETE FROM {self.table} t USING old o WHERE {same} RETURNING 1"


class Database(Protocol):
    """Runs single statements, each in a transaction of its own, and whole transactions.

    PostgreSQL stores no text with a NUL: with such a value `read`, `look_up` and `change` find nothing there.
    """

    async def read(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows that a statement finds."""

    async def look_up(self, statement: str, *values: Any) -> list[Any]:
        """Do as `read`, where the cost grows with what a developer has."""

    async def change(self, statement: str, *values: Any, entry: AuditEntry | None = None) -> list[Any]:
        """Return what a statement changed; if that is anything, `entry` goes into the audit log."""

    async def add(self, statement: str, *values: Any, entry: AuditEntry | None = None) -> list[Any]:
        """Do as `change` with a statement that adds a row."""

    async def in_transaction(self, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        """Run `work` in one transaction, and return what it returned once that is durable.

        It must await nothing but the methods of the transaction. It may run more than once.
        """

    async def purge(self, purge: Purge, before: int, limit: int) -> int:
        """Erase at most `limit` old rows; return how many."""


AnyDatabase = TypeVar("AnyDatabase", bound=Database)


class Queries(Generic[AnyDatabase]):
    """The methods of one part of a store that are the same on both databases."""

    def __init__(self, database: AnyDatabase) -> None:
        self._database = database
