"""The statements that PostgreSQL needs otherwise than `sql.py` has them, by the same names, and those of its own.

Those of the life of a session take arrays, one element for each session: the calls of one kind that come together are
one statement. The first array names their days, each once, so that it is planned for the partitions of these only. Rows
are locked in one order everywhere, so that no two nodes wait for each other in a circle: sessions by day and hash,
people, daily_counts by project and day, daily_users by developer and day, projects by id, webhook_events by id,
webhook_endpoints by project; and of the console the table developers, one developer, invitations, which nobody locks
without the table but whoever revokes a single one, console_sessions by id, access_tokens. A credential that acts is
locked last, by the statement that adds the audit entry; a sign-in, after its developer. Who changes what a plan allows
holds its developer before any project; removed_usage is written under its developer's rows of daily_users. Nobody waits
for the audit log: entries are added, and housekeeping alone erases them.
What housekeeping erases and what a worker claims is locked with SKIP LOCKED: neither ever waits. Whoever goes on with
an ending holds its row of ended_webhooks before any event, and deletes it last: this lock order cannot
deadlock.

Sessions are found by `CROSS JOIN LATERAL (… LIMIT 1)`, one walk down the primary key for each, and a status is compared
as `status || ''`: the planner must not take another way. A new day's partition has no statistics for its first minutes,
old ones say that few are pending, and either makes walking over all sessions of the day look cheap. So it is with
events: the statistics of a quiet hour say that none is due.
"""

from typing import Final

from taproof.storage.queries import sessions as session_queries

# ---- what the session endpoints read of projects, for all calls that come together

READ_WEBHOOK_SECRETS: Final = """
SELECT id, encrypted_webhook_secret, encrypted_next_webhook_secret, next_webhook_secret_at
FROM projects WHERE id = ANY ($1::TEXT[])"""
READ_SIGN_IN_PROJECTS: Final = """
SELECT p.developer_id, COALESCE(d.plan, 'free'), p.is_active, p.public_access, p.show_context, p.match_code,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at, p.id
FROM projects p LEFT JOIN developers d ON d.id = p.developer_id WHERE p.id = ANY ($1::TEXT[])"""
READ_PROJECTS_BY_SECRET_KEY: Final = session_queries.READ_PROJECT_BY_SECRET_KEY.replace(
    " FROM projects p WHERE p.secret_key_hash = $1",
    ", p.secret_key_hash FROM projects p WHERE p.secret_key_hash = ANY ($1::BYTEA[])",
)

READ_PROJECTS: Final = session_queries.READ_PROJECTS.replace(
    "IN (SELECT value FROM json_each($2))", "= ANY ($2::TEXT[])"
)

# ---- deleted projects

_SETTLED: Final = "deleted_at < clock_timestamp() - INTERVAL '60 seconds'"
"""No statement that began before the deletion can still be under way: each ends within seconds."""
ANY_DELETED_PROJECT: Final = f"SELECT 1 FROM deleted_projects WHERE is_erased = 0 OR {_SETTLED} LIMIT 1"
NEXT_DELETED_PROJECT: Final = f"""
SELECT id, developer_id, {_SETTLED} FROM deleted_projects WHERE is_erased = 0 OR {_SETTLED}
ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"""
MARK_ERASED_PROJECT: Final = "UPDATE deleted_projects SET is_erased = 1 WHERE id = $1"
DAY_OF_PROJECT: Final = "SELECT day FROM sessions WHERE project_id = $1 LIMIT 1"
ERASE_SESSIONS: Final = """
WITH old AS MATERIALIZED
  (SELECT token_hash FROM sessions WHERE day = $1 AND project_id = $2 LIMIT $3 FOR UPDATE SKIP LOCKED)
DELETE FROM sessions s USING old WHERE s.day = $1 AND s.token_hash = old.token_hash RETURNING s.day"""
ERASE_EVENTS: Final = """
WITH old AS MATERIALIZED (SELECT id FROM webhook_events WHERE project_id = $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM webhook_events e USING old WHERE e.id = old.id RETURNING e.id"""
ERASE_PEOPLE: Final = "SELECT erase_people($1, $2, $3)"

# ---- the life of a session

CREATE_SESSIONS: Final = """
WITH made AS (
  INSERT INTO sessions (day, token_hash, id, status, created_at, expires_at, code_challenge, bot_id, context,
    match_code, match_choices, project_id)
  SELECT a.day, a.token_hash, a.id, 'pending', a.created_at, a.expires_at, a.code_challenge, a.bot_id, a.context,
    a.match_code, a.match_choices, p.id
  FROM unnest($1::INTEGER[], $2::BYTEA[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BYTEA[], $7::BIGINT[],
    $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::TEXT[], $12::INTEGER[])
    AS a (day, token_hash, id, created_at, expires_at, code_challenge, bot_id, context, match_code, match_choices,
      project_id, is_public)
  JOIN projects p ON p.id = a.project_id
  WHERE p.is_active = 1 AND (p.public_access = 1 OR a.is_public = 0)
  RETURNING day, token_hash, project_id
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, requested)
  SELECT m.project_id, m.day, COUNT(*) FROM made m GROUP BY m.project_id, m.day ORDER BY m.project_id, m.day
  ON CONFLICT (project_id, day) DO UPDATE SET requested = c.requested + excluded.requested
)
SELECT day, token_hash FROM made"""
POLL_SESSIONS: Final = """
SELECT s.day, s.token_hash, s.project_id, p.public_access, s.status, s.expires_at, s.code_challenge, s.encrypted_phone
FROM unnest($2::INTEGER[], $3::BYTEA[]) AS a (day, token_hash)
CROSS JOIN LATERAL (
  SELECT * FROM sessions x
  WHERE x.day = ANY ($1::INTEGER[]) AND x.day = a.day AND x.token_hash = a.token_hash LIMIT 1
) AS s JOIN projects p ON p.id = s.project_id"""
OPEN_SESSIONS: Final = """
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[])
    AS a (day, token_hash, opener_id, opened_at, deadline)
), locked AS MATERIALIZED (
  SELECT a.* FROM (SELECT * FROM asked ORDER BY day, token_hash) AS a CROSS JOIN LATERAL (
    SELECT FROM sessions s
    WHERE s.day = ANY ($1::INTEGER[]) AND s.day = a.day AND s.token_hash = a.token_hash
      AND s.status || '' = 'pending' AND s.opener_id IS NULL AND s.expires_at > a.deadline
    LIMIT 1 FOR UPDATE
  ) AS s
), moved AS (
  UPDATE sessions s SET opened_at = l.opened_at, opener_id = l.opener_id FROM locked l
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash
  RETURNING s.day, s.token_hash, s.project_id
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, opened)
  SELECT m.project_id, m.day, COUNT(*) FROM moved m GROUP BY m.project_id, m.day ORDER BY m.project_id, m.day
  ON CONFLICT (project_id, day) DO UPDATE SET opened = c.opened + excluded.opened
)
SELECT day, token_hash FROM moved"""
CONFIRM_SESSIONS: Final = """
SELECT * FROM confirm_sessions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"""
CANCEL_SESSIONS: Final = """
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[], $8::TEXT[],
    $9::BYTEA[], $10::BIGINT[], $11::TEXT[])
    AS a (day, token_hash, opener_id, cancelled_at, deadline, event_id, type, encrypted_body, created_at, project_id)
), locked AS MATERIALIZED (
  SELECT a.* FROM (SELECT * FROM asked ORDER BY day, token_hash) AS a CROSS JOIN LATERAL (
    SELECT FROM sessions s
    WHERE s.day = ANY ($1::INTEGER[]) AND s.day = a.day AND s.token_hash = a.token_hash
      AND s.status || '' = 'pending' AND s.opener_id = a.opener_id AND s.expires_at > a.deadline
    LIMIT 1 FOR UPDATE
  ) AS s
), moved AS (
  UPDATE sessions s SET status = 'cancelled', cancelled_at = l.cancelled_at, context = NULL
  FROM locked l, projects p
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash AND p.id = s.project_id
  RETURNING s.day, s.token_hash, s.id, s.project_id
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, cancelled)
  SELECT m.project_id, m.day, COUNT(*) FROM moved m GROUP BY m.project_id, m.day ORDER BY m.project_id, m.day
  ON CONFLICT (project_id, day) DO UPDATE SET cancelled = c.cancelled + excluded.cancelled
), hooked AS MATERIALIZED (
  SELECT p.id FROM projects p WHERE p.id IN (SELECT m.project_id FROM moved m) AND p.webhook_url <> ''
  ORDER BY p.id FOR SHARE
), recorded AS (
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
    session_id)
  SELECT a.event_id, a.type, a.encrypted_body, a.created_at, 'due', a.created_at, 0, 0, h.id, m.id
  FROM asked a JOIN moved m ON m.day = a.day AND m.token_hash = a.token_hash JOIN hooked h ON h.id = a.project_id
)
SELECT day, token_hash FROM moved"""
CONSUME_SESSIONS: Final = """
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[]) AS a (day, token_hash, used_at)
), locked AS MATERIALIZED (
  SELECT a.* FROM (SELECT * FROM asked ORDER BY day, token_hash) AS a CROSS JOIN LATERAL (
    SELECT FROM sessions s
    WHERE s.day = ANY ($1::INTEGER[]) AND s.day = a.day AND s.token_hash = a.token_hash
      AND s.status || '' = 'confirmed'
    LIMIT 1 FOR UPDATE
  ) AS s
), moved AS (
  UPDATE sessions s SET status = 'used', used_at = l.used_at, secrets_version = p.secrets_version
  FROM locked l, projects p
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash AND p.id = s.project_id
  RETURNING s.day, s.token_hash, s.project_id, s.messenger_id, s.messenger_name, s.messenger_username,
    s.confirmed_at, p.encrypted_webhook_secret, p.encrypted_next_webhook_secret, p.next_webhook_secret_at,
    s.used_at, s.id, s.encrypted_phone
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, used)
  SELECT m.project_id, m.day, COUNT(*) FROM moved m GROUP BY m.project_id, m.day ORDER BY m.project_id, m.day
  ON CONFLICT (project_id, day) DO UPDATE SET used = c.used + excluded.used
)
SELECT * FROM moved"""

# ---- what users say of sessions

# From one project to the next by the index, as SQLite does it; ordered so that no other index will do.
LIST_PROJECTS_OF_USER: Final = """
WITH RECURSIVE found (id) AS (
  (SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 AND s.day >= $2
   ORDER BY s.messenger_id, s.project_id LIMIT 1)
  UNION ALL
  SELECT n.project_id FROM found f CROSS JOIN LATERAL (
    SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 AND s.project_id > f.id AND s.day >= $2
    ORDER BY s.messenger_id, s.project_id LIMIT 1
  ) AS n
)
SELECT f.id FROM found f LIMIT $3"""
# `used_at` stays as it is: it is when somebody got the proof.
REPORT_SESSION: Final = """
WITH held AS MATERIALIZED (
  SELECT s.day, s.token_hash, s.status FROM sessions s
  WHERE s.day = $2 AND s.token_hash = $3 AND s.opener_id = $4 AND s.reported_at IS NULL
    AND (s.status || '' IN ('confirmed', 'used') OR (s.status || '' = 'pending' AND s.expires_at > $5))
  FOR UPDATE
), moved AS (
  UPDATE sessions s SET reported_at = $1, context = NULL,
    status = CASE h.status WHEN 'pending' THEN 'cancelled' ELSE 'used' END,
    cancelled_at = CASE h.status WHEN 'pending' THEN $1 ELSE s.cancelled_at END
  FROM held h, projects p
  WHERE s.day = $2 AND s.token_hash = $3 AND p.id = s.project_id
  RETURNING s.id, s.day, s.project_id, s.status, s.confirmed_at
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, reported, cancelled)
  SELECT m.project_id, m.day, 1, CASE m.status WHEN 'cancelled' THEN 1 ELSE 0 END FROM moved m
  ON CONFLICT (project_id, day) DO UPDATE SET reported = c.reported + excluded.reported,
    cancelled = c.cancelled + excluded.cancelled
), hooked AS MATERIALIZED (
  SELECT p.id FROM projects p WHERE p.id IN (SELECT m.project_id FROM moved m WHERE m.status = 'cancelled')
    AND p.webhook_url <> '' ORDER BY p.id FOR SHARE
), recorded AS (
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
    session_id)
  SELECT $6, $7, $8, $9, 'due', $9, 0, 0, h.id, m.id FROM hooked h JOIN moved m ON m.project_id = h.id
), confirmed AS MATERIALIZED ( -- By id after it was waited for, as whoever sends it again moves it between states.
  SELECT x.id FROM moved m CROSS JOIN unnest(ARRAY['due', 'delivered', 'failed', 'ended']) AS s (state)
  CROSS JOIN LATERAL (
    SELECT e.id FROM webhook_events e
    WHERE e.project_id = m.project_id AND e.state = s.state AND e.type COLLATE "C" = 'auth.confirmed'
      AND e.created_at = m.confirmed_at AND e.session_id = m.id
    ORDER BY e.id
  ) AS x WHERE m.status = 'used'
), ended AS (
  UPDATE webhook_events e SET state = CASE e.state WHEN 'delivered' THEN e.state ELSE 'ended' END, encrypted_body = '',
    finished_at = COALESCE(e.finished_at, $1), leased_until = 0,
    interrupted = e.interrupted + CASE WHEN e.state = 'due' AND e.leased_until > 0 THEN 1 ELSE 0 END
  FROM confirmed c WHERE e.id = c.id
)
SELECT status FROM moved"""
PURGE_PHONE_REQUESTS: Final = """
WITH old AS MATERIALIZED (
  SELECT day, token_hash FROM phone_requests WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM phone_requests r USING old o WHERE r.day = o.day AND r.token_hash = o.token_hash RETURNING r.day"""

# ---- expiry

EXPIRE_SESSIONS: Final = """
WITH due AS MATERIALIZED (
  SELECT token_hash FROM sessions WHERE day = $1 AND status = 'pending' AND expires_at <= $2
  ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED
), moved AS (
  UPDATE sessions s SET status = 'expired', context = NULL FROM due d
  WHERE s.day = $1 AND s.token_hash = d.token_hash RETURNING s.project_id
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, expired)
  SELECT m.project_id, $1, COUNT(*) FROM moved m GROUP BY m.project_id ORDER BY m.project_id
  ON CONFLICT (project_id, day) DO UPDATE SET expired = c.expired + excluded.expired
)
SELECT COUNT(*) FROM moved"""

# ---- the list of sessions

_SESSION: Final = """
SELECT s.day, s.token_hash, s.id, s.project_id, p.name, s.status, s.created_at, s.expires_at, s.opened_at,
  s.opener_id, s.confirmed_at, s.cancelled_at, s.used_at, s.messenger_id, s.messenger_name, s.messenger_username,
  s.encrypted_phone, s.reported_at
FROM projects p"""
# The newest session of each walk says which walks the page can need: no more of them than it holds sessions. A project
# that counted nothing in these days has no partition searched.
_SESSIONS: Final = f"""
WITH walks AS MATERIALIZED (
  SELECT p.id AS project_id, w.*
  FROM projects p
  CROSS JOIN unnest($2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    AS w (status, created_at, id, since, expires_after, expires_until)
  CROSS JOIN LATERAL (
    SELECT x.created_at, x.id FROM sessions x
    WHERE x.day BETWEEN $8 AND $9 AND x.expires_at > w.expires_after AND x.expires_at <= w.expires_until AND {{0}}
    LIMIT 1
  ) AS n
  WHERE p.id = ANY ($1::TEXT[])
    AND EXISTS (SELECT FROM daily_counts c WHERE c.project_id = p.id AND c.day BETWEEN $8 AND $9)
  ORDER BY n.created_at DESC, n.id DESC LIMIT $10
)
{_SESSION} JOIN walks w ON w.project_id = p.id
CROSS JOIN LATERAL (
  SELECT * FROM sessions x
  WHERE x.day BETWEEN $8 AND $9 AND x.expires_at > w.expires_after AND x.expires_at <= w.expires_until AND {{0}}
  LIMIT $10
) AS s
ORDER BY s.created_at DESC, s.id DESC LIMIT $10"""
LIST_SESSIONS: Final = _SESSIONS.format("""x.project_id = p.id AND x.status = w.status
    AND (x.created_at, x.id) < (w.created_at, w.id) AND x.created_at >= w.since
  ORDER BY x.created_at DESC, x.id DESC""")
# Written so that only the index that begins with the account has this order: by the statistics it may look as cheap to
# walk over all confirmed sessions of a project and pass over those of others.
LIST_SESSIONS_OF_USER: Final = _SESSIONS.format("""x.messenger_id IS NOT NULL
    AND (x.messenger_id, x.project_id, x.status, x.created_at, x.id) < ($11, p.id, w.status, w.created_at, w.id)
    AND (x.messenger_id, x.project_id, x.status, x.created_at, x.id) >= ($11, p.id, w.status, w.since, '')
  ORDER BY x.messenger_id DESC, x.project_id DESC, x.status DESC, x.created_at DESC, x.id DESC""")
FIND_SESSION: Final = f"""{_SESSION}
CROSS JOIN unnest($2::TEXT[]) AS w (status)
CROSS JOIN LATERAL (
  SELECT * FROM sessions x
  WHERE x.day = $3 AND x.project_id = p.id AND x.status = w.status AND x.created_at = $4 AND x.id = $5 LIMIT 1
) AS s
WHERE p.id = ANY ($1::TEXT[])"""

# ---- the partitions of sessions, one a day

SESSION_TABLES: Final = """
SELECT substring(c.relname FROM 10)::INTEGER AS day, i.inhdetachpending
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'sessions'::REGCLASS
WHERE c.relnamespace = (SELECT p.relnamespace FROM pg_class p WHERE p.oid = 'sessions'::REGCLASS)
  AND c.relkind = 'r' AND c.relname ~ '^sessions_[0-9]{1,9}$'
ORDER BY i.inhdetachpending DESC NULLS LAST, day"""
TABLE_SIZE: Final = "SELECT reltuples FROM pg_class WHERE oid = to_regclass($1)"
LOCK_SESSIONS: Final = "LOCK TABLE ONLY sessions IN SHARE UPDATE EXCLUSIVE MODE"

# ---- retention

PURGE_EVENTS: Final = """
WITH old AS MATERIALIZED (
  SELECT id FROM webhook_events WHERE state <> 'due' AND finished_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM webhook_events e USING old WHERE e.id = old.id RETURNING e.id"""
PURGE_CONSOLE_ACCESS: Final = """
WITH idle AS MATERIALIZED (
  SELECT id FROM console_sessions WHERE last_seen_at <= $1 LIMIT $3 FOR UPDATE SKIP LOCKED
), outdated AS MATERIALIZED (
  SELECT id FROM invitations WHERE expires_at <= $2 LIMIT $3 FOR UPDATE SKIP LOCKED
), ended AS (
  DELETE FROM console_sessions s USING idle WHERE s.id = idle.id RETURNING s.id
), lapsed AS (
  DELETE FROM invitations i USING outdated o WHERE i.id = o.id RETURNING i.id
)
SELECT (SELECT COUNT(*) FROM ended) + (SELECT COUNT(*) FROM lapsed)"""
PURGE_USER_DAYS: Final = """
WITH old AS MATERIALIZED (
  SELECT developer_id, messenger_id, day, project_id FROM user_days WHERE day < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM user_days u USING old WHERE u.developer_id = old.developer_id AND u.messenger_id = old.messenger_id
  AND u.day = old.day AND u.project_id = old.project_id RETURNING u.day"""

# ---- analytics

READ_DAILY_COUNTS: Final = """
SELECT project_id, day, requested, opened, confirmed, used, cancelled, expired, unique_users, latest_users, reported
FROM daily_counts WHERE project_id = ANY ($1::TEXT[]) AND day >= $2 ORDER BY project_id, day"""

# ---- bot updates

CLAIM_UPDATES: Final = """
INSERT INTO bot_updates AS u (bot_id, update_id, claimed_at, done)
SELECT a.bot_id, a.update_id, a.claimed_at, 0
FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[]) AS a (bot_id, update_id, claimed_at)
ORDER BY a.bot_id, a.update_id
ON CONFLICT (bot_id, update_id) DO UPDATE SET claimed_at = excluded.claimed_at
  WHERE u.done = 0 AND u.claimed_at <= (
    SELECT MIN(s.stale_before) FROM unnest($1::BIGINT[], $2::BIGINT[], $4::BIGINT[])
      AS s (bot_id, update_id, stale_before) WHERE s.bot_id = excluded.bot_id AND s.update_id = excluded.update_id)
RETURNING u.bot_id, u.update_id"""
DONE_UPDATES: Final = """
SELECT u.bot_id, u.update_id FROM bot_updates u JOIN unnest($1::BIGINT[], $2::BIGINT[]) AS a (bot_id, update_id)
  ON a.bot_id = u.bot_id AND a.update_id = u.update_id WHERE u.done = 1"""
FINISH_UPDATES: Final = """
WITH claimed AS MATERIALIZED (
  SELECT u.bot_id, u.update_id
  FROM bot_updates u JOIN unnest($1::BIGINT[], $2::BIGINT[]) AS a (bot_id, update_id)
    ON a.bot_id = u.bot_id AND a.update_id = u.update_id
  ORDER BY u.bot_id, u.update_id FOR UPDATE OF u
)
UPDATE bot_updates u SET done = 1 FROM claimed c WHERE u.bot_id = c.bot_id AND u.update_id = c.update_id"""
PURGE_UPDATES: Final = """
WITH old AS MATERIALIZED (
  SELECT bot_id, update_id FROM bot_updates WHERE claimed_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM bot_updates u USING old WHERE u.bot_id = old.bot_id AND u.update_id = old.update_id
RETURNING u.update_id"""

# ---- decisions

TELL_DECISIONS: Final = "SELECT pg_notify('taproof_decisions', $1)"
