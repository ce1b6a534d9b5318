"""Transactions on SQLite, which run as writes of the group commit."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import apsw

from taproof.core.accounts import AuditEntry
from taproof.storage.queries.deliveries import END_DELIVERIES
from taproof.storage.queries.rights import ADD_AUDIT_ENTRY
from taproof.storage.rows import access_ended, entry_values
from taproof.storage.sqlite.group_commit import rows

T = TypeVar("T")


class SqliteTransaction:
    """Implements `storage.queries.transaction.Transaction`. None of its methods waits."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def fetch(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return rows(self._connection, statement, values)

    add = fetch

    async def lock(self, statement: str, *values: Any, mode: str = "FOR UPDATE") -> list[tuple[Any, ...]]:  # noqa: ARG002
        return rows(self._connection, statement, values)

    async def lock_developers(self) -> None:
        """Do nothing: no other transaction writes at the same time."""

    async def lock_user(self, developer_id: str, messenger_id: str) -> None:
        """Do nothing, as for `lock_developers`."""

    async def read_in_order(self) -> None:
        """Do nothing: SQLite always reads in the order of an index if there is one."""

    async def end_deliveries(self, project_id: str, now: int, limit: int) -> int:
        return len(rows(self._connection, END_DELIVERIES, (now, project_id, limit)))

    async def add_entry(self, entry: AuditEntry | None) -> None:
        if entry is not None and not rows(self._connection, ADD_AUDIT_ENTRY, entry_values(entry)):
            raise access_ended(entry)


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits for anything outside the transaction, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("A transaction must wait only for its own statements.")
