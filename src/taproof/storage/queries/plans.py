"""The statements about plans and what is used of them, for both stores."""

from typing import Final

UPDATE_PLAN: Final = "UPDATE developers SET plan = $1 WHERE id = $2 AND plan <> $1 RETURNING id"
STOP_COLLECTING: Final = "UPDATE projects SET collect_phone = 0 WHERE developer_id = $1 AND collect_phone = 1"
# A user counts once a day, so the sum has a row for each day of the month, however many users there are. Erasing a
# deleted project moves its users from `daily_users` to `removed_usage`, so the sum stays the same.
READ_USED: Final = """
SELECT (SELECT COUNT(*) FROM projects p WHERE p.developer_id = $1),
  (SELECT COALESCE(SUM(u.unique_users), 0) FROM daily_users u WHERE u.developer_id = $1 AND u.day >= $2)
  + (SELECT COALESCE(SUM(r.confirmed), 0) FROM removed_usage r WHERE r.developer_id = $1 AND r.day >= $2)"""
REMEMBER_USAGE: Final = """
INSERT INTO removed_usage (developer_id, day, confirmed) VALUES ($1, $2, 1)
ON CONFLICT (developer_id, day) DO UPDATE SET confirmed = removed_usage.confirmed + excluded.confirmed"""
ANY_REMOVED_USAGE_BEFORE: Final = "SELECT 1 FROM removed_usage WHERE day < $1 LIMIT 1"
PURGE_REMOVED_USAGE: Final = """
DELETE FROM removed_usage WHERE (developer_id, day) IN
  (SELECT developer_id, day FROM removed_usage WHERE day < $1 LIMIT $2) RETURNING day"""

# ---- what PostgreSQL needs otherwise

POSTGRES_STOP_COLLECTING: Final = """
WITH held AS MATERIALIZED (
  SELECT id FROM projects WHERE developer_id = $1 AND collect_phone = 1 ORDER BY id FOR UPDATE
)
UPDATE projects p SET collect_phone = 0 FROM held h WHERE p.id = h.id"""
POSTGRES_PURGE_REMOVED_USAGE: Final = """
WITH old AS MATERIALIZED (
  SELECT developer_id, day FROM removed_usage WHERE day < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM removed_usage r USING old WHERE r.developer_id = old.developer_id AND r.day = old.day RETURNING r.day"""
