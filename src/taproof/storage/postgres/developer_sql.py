"""What PostgreSQL needs otherwise than `queries/developers.py` has it. See `postgres/sql.py`."""

from typing import Final

from taproof.storage.queries import developers as developer_queries

HOLD_DEVELOPERS: Final = "LOCK TABLE developers IN SHARE ROW EXCLUSIVE MODE"
"""Until the end of the transaction nobody else adds a developer or changes one; whoever reads them is not held up."""
HOLD_DEVELOPER: Final = "SELECT FROM developers WHERE id = $1 FOR UPDATE"
"""Of those who add something to one developer, of which there may be so many, the second counts after the first."""
HOLD_INVITATION: Final = f"{developer_queries.READ_INVITATION} FOR UPDATE"
FIND_OLD_ENTRIES: Final = f"{developer_queries.FIND_OLD_ENTRIES} FOR UPDATE SKIP LOCKED"
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
HOLD_SIGN_IN: Final = f"{developer_queries.SIGN_IN_STANDS} FOR SHARE"
"""A report of this sign-in waits until what is created with it is committed, and then finds it."""
HOLD_INVITED: Final = "SELECT FROM developers WHERE id = ANY ($1::TEXT[]) ORDER BY id FOR UPDATE"
# A locked row that is deleted meanwhile is not found, so whoever acts while their credential ends changes nothing.
ADD_AUDIT_ENTRY: Final = """
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
"""As `account_sql.ADD_AUDIT_ENTRY`; the acting credential cannot end before this transaction does."""
