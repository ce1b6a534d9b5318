"""The statements that forget one user, for both stores. For the order of locks see `postgres/sql.py`."""

from typing import Final

# ---- which

FIND_SIGN_INS: Final = "SELECT day, token_hash FROM sessions WHERE messenger_id = $1 LIMIT $2"
FIND_SIGN_INS_OF_DEVELOPER: Final = """
SELECT day, token_hash FROM sessions
WHERE messenger_id = $1 AND project_id IN (SELECT id FROM projects WHERE developer_id = $2) LIMIT $3"""
LIST_OPENED_DAYS: Final = """
SELECT project_id, day FROM daily_counts
WHERE (project_id, day) > ($1, $2) AND day >= $3 AND opened > confirmed ORDER BY project_id, day LIMIT $4"""
LIST_OPENED_DAYS_OF_DEVELOPER: Final = """
SELECT c.project_id, c.day FROM projects p JOIN daily_counts c ON c.project_id = p.id
WHERE p.developer_id = $1 AND (c.project_id, c.day) > ($2, $3) AND c.day >= $4 AND c.opened > c.confirmed
ORDER BY c.project_id, c.day LIMIT $5"""
OLDEST_DAY: Final = "SELECT MIN(day) FROM sessions"
LIST_OPENED: Final = """
SELECT day, token_hash, created_at, id, opener_id FROM sessions
WHERE project_id = $1 AND status = $2 AND created_at >= $3 AND (created_at, id) < ($4, $5)
ORDER BY created_at DESC, id DESC LIMIT $6"""
# Whose project is there no more has no rows here either, but for a while.
FIND_PERSON: Final = """
SELECT x.developer_id FROM (SELECT developer_id FROM projects UNION SELECT developer_id FROM deleted_projects) x
WHERE EXISTS (SELECT 1 FROM user_days u WHERE u.developer_id = x.developer_id AND u.messenger_id = $1) LIMIT 1"""

# ---- what goes

ERASE_SESSION: Final = """
DELETE FROM sessions WHERE day = $1 AND token_hash = $2 AND (opener_id = $3 OR messenger_id = $3)
RETURNING project_id, id, confirmed_at, cancelled_at"""
ERASE_EVENTS_OF_SESSION: Final = """
DELETE FROM webhook_events
WHERE project_id = $1 AND state IN ('due', 'delivered', 'failed', 'ended')
  AND type IN ('auth.confirmed', 'auth.cancelled') AND session_id = $2 AND created_at IN ($3, $4)"""
ERASE_PHONE_REQUEST: Final = "DELETE FROM phone_requests WHERE day = $1 AND token_hash = $2"
RENAME_PERSON: Final = """
UPDATE user_days SET messenger_id = $1 WHERE developer_id = $2 AND messenger_id = $3 RETURNING day"""
ERASE_PHONE_REQUESTS_OF_USER: Final = "DELETE FROM phone_requests WHERE messenger_id = $1 RETURNING day"
ERASE_BLOCKS_OF_USER: Final = """
DELETE FROM blocks WHERE messenger_id = $1 AND project_id IN (
  SELECT project_id FROM blocks WHERE messenger_id = $1 LIMIT $2) RETURNING project_id"""

# ---- what PostgreSQL needs otherwise

POSTGRES_LIST_OPENED: Final = """
SELECT day, token_hash, created_at, id, opener_id FROM sessions
WHERE day = $1 AND project_id = $2 AND status = $3 AND (created_at, id) < ($4, $5)
ORDER BY created_at DESC, id DESC LIMIT $6"""
POSTGRES_HOLD_SESSIONS: Final = """
SELECT token_hash, project_id, id, confirmed_at, cancelled_at FROM sessions
WHERE day = $1 AND token_hash = ANY ($2::BYTEA[]) AND (opener_id = $3 OR messenger_id = $3)
ORDER BY token_hash FOR UPDATE"""
# A statement after the one that waited for the sessions, so that it sees their events.
POSTGRES_FIND_EVENTS: Final = """
SELECT e.id FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[])
  AS a (project_id, session_id, confirmed_at, cancelled_at)
CROSS JOIN unnest(ARRAY['due', 'delivered', 'failed', 'ended']) AS s (state)
CROSS JOIN unnest(ARRAY['auth.confirmed', 'auth.cancelled']) AS t (type)
CROSS JOIN LATERAL (
  SELECT x.id FROM webhook_events x
  WHERE x.project_id = a.project_id AND x.state = s.state AND x.type COLLATE "C" = t.type
    AND x.created_at IN (a.confirmed_at, a.cancelled_at) AND x.session_id = a.session_id
  ORDER BY x.id -- So that it stays a query of its own: one walk for each state and type.
) AS e"""
POSTGRES_ERASE_EVENTS: Final = """
WITH held AS MATERIALIZED (SELECT id FROM webhook_events WHERE id = ANY ($1::TEXT[]) ORDER BY id FOR UPDATE)
DELETE FROM webhook_events e USING held h WHERE e.id = h.id"""
POSTGRES_ERASE_PHONE_REQUESTS: Final = "DELETE FROM phone_requests WHERE day = $1 AND token_hash = ANY ($2::BYTEA[])"
POSTGRES_ERASE_SESSIONS: Final = "DELETE FROM sessions WHERE day = $1 AND token_hash = ANY ($2::BYTEA[])"
POSTGRES_LOCK_PERSON: Final = "SELECT lock_people(ARRAY[$1::TEXT], ARRAY[$2::TEXT])"
