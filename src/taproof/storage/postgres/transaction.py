"""Transactions on PostgreSQL."""

from typing import Any, Final

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.errors import BotTaken
from taproof.storage.rows import access_ended, entry_values

LOCK_DEVELOPERS: Final = "LOCK TABLE developers IN SHARE ROW EXCLUSIVE MODE"
_LOCK_USER: Final = "SELECT lock_people(ARRAY[$1::TEXT], ARRAY[$2::TEXT])"
NO_SORT: Final = "SET LOCAL enable_sort = off"
"""Makes the planner read rows in the order of an index, and only as many as needed. With statistics
from a quiet hour, reading and sorting all rows looks cheaper."""
# If the project has a webhook again, its new events must not end. The ORDER BY makes the planner use the index of due
# events. Otherwise, the limit makes reading the whole table look cheap.
END_DELIVERIES: Final = """
WITH found AS MATERIALIZED (
  SELECT id FROM webhook_events WHERE project_id = $2 AND state = 'due'
    AND NOT EXISTS (SELECT FROM projects p WHERE p.id = $2 AND p.webhook_url <> '')
  ORDER BY type COLLATE "C", created_at, id LIMIT $3
), due AS MATERIALIZED (
  SELECT a.id FROM (SELECT id FROM found ORDER BY id) AS a CROSS JOIN LATERAL (
    SELECT FROM webhook_events e WHERE e.id = a.id AND e.state || '' = 'due' LIMIT 1 FOR UPDATE
  ) AS e
), ended AS (
  UPDATE webhook_events e SET state = 'ended', finished_at = $1, leased_until = 0 FROM due WHERE e.id = due.id
)
SELECT COUNT(*) FROM found"""
# A row that is deleted while this statement waits for the lock is not found. So no change is made if its acting
# credential ends meanwhile.
_ADD_AUDIT_ENTRY: Final = """
WITH token AS MATERIALIZED (
  SELECT 1 FROM access_tokens t WHERE $6 = 'access_token' AND t.id = $7 AND t.developer_id = $2
    AND (t.expires_at IS NULL OR t.expires_at > $3) FOR KEY SHARE
), console AS MATERIALIZED (
  SELECT 1 FROM console_sessions s WHERE $6 = 'console' AND s.id = $7 AND s.developer_id = $2
    AND (s.expires_at IS NULL OR s.expires_at > $3) FOR KEY SHARE
)
INSERT INTO audit_entries (id, developer_id, created_at, action, actor, via, via_id, address, subject, details,
  project_id)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
WHERE $6 NOT IN ('access_token', 'console') OR EXISTS (SELECT 1 FROM token) OR EXISTS (SELECT 1 FROM console)
RETURNING id"""
"""Like `queries.rights.ADD_AUDIT_ENTRY`, but the acting credential cannot end before this transaction does."""


def has_nul(*values: Any) -> bool:
    """Return whether a text value contains a NUL. PostgreSQL cannot store a NUL, so no row can match."""
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
        await self._connection.execute(LOCK_DEVELOPERS)

    async def add(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        try:
            rows: list[asyncpg.Record] = await self._connection.fetch(statement, *values)
        except asyncpg.UniqueViolationError as error:
            # If two nodes assign one bot to two projects, the second one waits for the first and then fails here.
            if error.constraint_name == "projects_by_bot":
                raise BotTaken from None
            raise
        return rows

    async def lock_user(self, owner_id: str, messenger_id: str) -> None:
        await self.fetch(_LOCK_USER, owner_id, messenger_id)

    async def read_in_order(self) -> None:
        await self._connection.execute(NO_SORT)

    async def end_deliveries(self, project_id: str, now: int, limit: int) -> int:
        await self.read_in_order()
        ended: int = await self._connection.fetchval(END_DELIVERIES, now, project_id, limit)
        return ended

    async def add_entry(self, entry: AuditEntry | None) -> None:
        if entry is not None and not await self.add(_ADD_AUDIT_ENTRY, *entry_values(entry)):
            raise access_ended(entry)
