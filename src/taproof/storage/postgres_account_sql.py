"""What PostgreSQL needs otherwise than `account_sql.py` has it. See `postgres_sql.py`."""

from typing import Final

from taproof.storage import account_sql

HOLD_DEVELOPERS: Final = "LOCK TABLE developers IN SHARE ROW EXCLUSIVE MODE"
"""Until the end of the transaction nobody else adds a developer or changes one; whoever reads them is not held up."""
HOLD_DEVELOPER: Final = "SELECT FROM developers WHERE id = $1 FOR UPDATE"
"""Of those who add something to one developer, of which there may be so many, the second counts after the first."""
HOLD_INVITATION: Final = f"{account_sql.READ_INVITATION} FOR UPDATE"
FIND_OLD_ENTRIES: Final = f"{account_sql.FIND_OLD_ENTRIES} FOR UPDATE SKIP LOCKED"
TRIM_CONSOLE_SESSIONS: Final = """
WITH kept AS MATERIALIZED (
  SELECT id FROM console_sessions WHERE developer_id = $1 AND id <> $2 ORDER BY last_seen_at DESC, id DESC LIMIT $3
), old AS MATERIALIZED (
  SELECT id FROM console_sessions WHERE developer_id = $1 AND id <> $2 AND id NOT IN (SELECT id FROM kept)
  ORDER BY id FOR UPDATE
)
DELETE FROM console_sessions s USING old WHERE s.id = old.id"""
DELETE_CONSOLE_SESSIONS: Final = """
WITH ended AS MATERIALIZED (SELECT id FROM console_sessions WHERE developer_id = $1 ORDER BY id FOR UPDATE)
DELETE FROM console_sessions s USING ended e WHERE s.id = e.id RETURNING s.id"""
