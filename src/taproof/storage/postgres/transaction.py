"""Transactions on PostgreSQL."""

from typing import Any, Final

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.storage.rows import access_ended, entry_values

_LOCK_DEVELOPERS: Final = "LOCK TABLE developers IN SHARE ROW EXCLUSIVE MODE"
# A row that is deleted while this waits for its lock is not found. So a change whose acting credential ends meanwhile
# does not happen.
_ADD_AUDIT_ENTRY: Final = """
WITH token AS MATERIALIZED (
  SELECT 1 FROM access_tokens t WHERE $6 = 'access_token' AND t.id = $7 AND t.developer_id = $2
    AND (t.expires_at IS NULL OR t.expires_at > $3) FOR KEY SHARE
), console AS MATERIALIZED (
  SELECT 1 FROM console_sessions s WHERE $6 = 'console' AND s.id = $7 AND s.developer_id = $2
    AND (s.expires_at IS NULL OR s.expires_at > $3) FOR KEY SHARE
)
INSERT INTO audit_entries (id, developer_id, created_at, action, actor, via, via_id, address, subject, details)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
WHERE $6 NOT IN ('access_token', 'console') OR EXISTS (SELECT 1 FROM token) OR EXISTS (SELECT 1 FROM console)
RETURNING id"""
"""Like `queries.rights.ADD_AUDIT_ENTRY`, but the acting credential cannot end before this transaction does."""


async def add_entry(connection: asyncpg.Connection, entry: AuditEntry | None) -> None:
    """Add an entry to the audit log, in the transaction of the change that it records.

    Raises:
        InvalidAccessToken, SignedOut: the acting credential has ended, so the transaction must not be committed.
    """
    if entry is not None and not await connection.fetch(_ADD_AUDIT_ENTRY, *entry_values(entry)):
        raise access_ended(entry)


def has_nul(*values: Any) -> bool:
    """Return whether a text value has a NUL. PostgreSQL accepts no NUL, so no row can match."""
    return any(isinstance(value, str) and "\0" in value for value in values)


class PostgresTransaction:
    """Implements `storage.queries.transaction.Transaction`."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def fetch(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        return [] if has_nul(*values) else await self.add(statement, *values)

    async def lock(self, statement: str, *values: Any, mode: str = "FOR UPDATE") -> list[asyncpg.Record]:
        return await self.fetch(f"{statement} {mode}", *values)

    async def lock_developers(self) -> None:
        await self._connection.execute(_LOCK_DEVELOPERS)

    async def add(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await self._connection.fetch(statement, *values)
        return rows

    async def add_entry(self, entry: AuditEntry | None) -> None:
        await add_entry(self._connection, entry)
