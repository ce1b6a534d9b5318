"""Every statement, once, in the dialect that SQLite and PostgreSQL share.

Placeholders are `$1`, `$2`, …; each statement names them first in ascending order, since SQLite numbers them by first
appearance (held by `tests/storage/test_sql.py`). A driver overrides by name only what must differ.
"""

from typing import Final

READ_MARK: Final = "SELECT value FROM marks WHERE name = $1"
CLAIM_MARK: Final = "INSERT INTO marks (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING"

# ---- several processes on one store

HOLD_LEASE: Final = """
INSERT INTO leases (name, holder, held_until) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
  WHERE leases.holder = excluded.holder OR leases.held_until <= $4
RETURNING name"""
RELEASE_LEASE: Final = "DELETE FROM leases WHERE name = $1 AND holder = $2"

# ---- developers and access tokens

_DEVELOPER: Final = "d.id, d.email, d.plan, d.created_at, d.is_owner, d.messenger_id, d.messenger_name"
CREATE_DEVELOPER: Final = """
INSERT INTO developers (id, email, email_key, plan, created_at, is_owner, messenger_id, messenger_name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (email_key) DO NOTHING RETURNING id"""
READ_DEVELOPER: Final = f"SELECT {_DEVELOPER} FROM developers d WHERE d.email_key = $1"
READ_DEVELOPER_BY_MESSENGER_ID: Final = f"SELECT {_DEVELOPER} FROM developers d WHERE d.messenger_id = $1"
LIST_DEVELOPERS: Final = f"SELECT {_DEVELOPER} FROM developers d ORDER BY d.created_at, d.id"
BIND_IDENTITY: Final = "UPDATE developers SET messenger_id = $1, messenger_name = $2 WHERE id = $3"

CREATE_ACCESS_TOKEN: Final = """
INSERT INTO access_tokens (id, developer_id, name, preview, token_hash, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (
  SELECT COUNT(*) FROM access_tokens WHERE developer_id = $2 AND (expires_at IS NULL OR expires_at > $6)) < $8
RETURNING id"""
ERASE_EXPIRED_TOKENS: Final = """
DELETE FROM access_tokens WHERE developer_id = $1 AND expires_at <= $2 AND id NOT IN (
  SELECT id FROM access_tokens WHERE developer_id = $1 AND expires_at <= $2
  ORDER BY expires_at DESC, id DESC LIMIT $3)"""
READ_ACCESS_TOKEN: Final = f"""
SELECT t.id, t.developer_id, t.name, t.preview, t.created_at, t.last_used_at, t.expires_at, {_DEVELOPER}
FROM access_tokens t JOIN developers d ON d.id = t.developer_id WHERE t.token_hash = $1"""
TOUCH_ACCESS_TOKEN: Final = """
UPDATE access_tokens SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)"""
LIST_ACCESS_TOKENS: Final = """
SELECT id, developer_id, name, preview, created_at, last_used_at, expires_at
FROM access_tokens WHERE developer_id = $1 ORDER BY created_at DESC, id DESC"""
DELETE_ACCESS_TOKEN: Final = "DELETE FROM access_tokens WHERE developer_id = $1 AND id = $2 RETURNING id"

# ---- invitations

CREATE_INVITATION: Final = """
INSERT INTO invitations (id, code_hash, email, plan, is_owner, developer_id, invited_by, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id"""
_INVITATION: Final = """
SELECT id, email, plan, is_owner, developer_id, invited_by, created_at, expires_at FROM invitations"""
READ_INVITATION: Final = f"{_INVITATION} WHERE code_hash = $1 AND expires_at > $2"
LIST_INVITATIONS: Final = f"{_INVITATION} WHERE expires_at > $1 AND email <> '' ORDER BY created_at DESC, id DESC"
DELETE_INVITATION: Final = "DELETE FROM invitations WHERE id = $1 RETURNING id"
# Addresses are ASCII, so that any database's lower() does.
REPLACE_INVITATIONS: Final = """
DELETE FROM invitations
WHERE id <> $1 AND email <> '' AND (developer_id = $2 OR lower(email) = lower($3))"""
"""The others for the same developer or the same address."""
SETTLE_INVITATIONS: Final = """
DELETE FROM invitations WHERE id = $1 OR developer_id = $2 OR lower(email) = lower($3) OR email = ''"""
"""The one that was taken up, all others for that developer or that address, and those for a first developer."""
JUDGE_INVITATION: Final = """
SELECT i.id, i.developer_id, CASE
  WHEN i.email = '' AND EXISTS (SELECT 1 FROM developers) THEN 'not_first'
  WHEN i.developer_id IS NULL AND EXISTS (SELECT 1 FROM developers d WHERE d.email_key = $1) THEN 'email_taken'
  WHEN EXISTS (SELECT 1 FROM developers d WHERE d.messenger_id = $2 AND d.id <> COALESCE(i.developer_id, ''))
    THEN 'identity_taken'
  ELSE 'accepted' END,
  EXISTS (SELECT 1 FROM developers d WHERE d.id = i.developer_id AND d.messenger_id = $2)
FROM invitations i WHERE i.code_hash = $3 AND i.expires_at > $4"""
"""What becomes of taking up an invitation, and whether its developer has this messenger account already."""

# ---- the console's sessions

CREATE_CONSOLE_SESSION: Final = """
INSERT INTO console_sessions (id, token_hash, developer_id, created_at, last_seen_at, access_token_id, address,
  user_agent, messenger_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id"""
_CONSOLE_SESSION: Final = (
    "s.id, s.developer_id, s.created_at, s.last_seen_at, s.access_token_id, s.address, s.user_agent, s.messenger_id"
)
_LIVES: Final = """s.last_seen_at > $2
  AND (s.access_token_id IS NOT NULL OR s.messenger_id IS NOT DISTINCT FROM d.messenger_id)
  AND (s.access_token_id IS NULL OR EXISTS (
    SELECT 1 FROM access_tokens t WHERE t.id = s.access_token_id AND t.developer_id = s.developer_id
      AND (t.expires_at IS NULL OR t.expires_at > $3)))"""
READ_CONSOLE_SESSION: Final = f"""
SELECT {_CONSOLE_SESSION}, {_DEVELOPER} FROM console_sessions s JOIN developers d ON d.id = s.developer_id
WHERE s.token_hash = $1 AND {_LIVES}"""
TOUCH_CONSOLE_SESSION: Final = """
UPDATE console_sessions SET last_seen_at = $1 WHERE id = $2 AND last_seen_at < $1"""
LIST_CONSOLE_SESSIONS: Final = f"""
SELECT {_CONSOLE_SESSION} FROM console_sessions s JOIN developers d ON d.id = s.developer_id
WHERE s.developer_id = $1 AND {_LIVES}
ORDER BY s.created_at DESC, s.id DESC"""
TRIM_CONSOLE_SESSIONS: Final = """
DELETE FROM console_sessions WHERE developer_id = $1 AND id <> $2 AND id NOT IN (
  SELECT id FROM console_sessions WHERE developer_id = $1 AND id <> $2
  ORDER BY last_seen_at DESC, id DESC LIMIT $3)"""
DELETE_CONSOLE_SESSION: Final = "DELETE FROM console_sessions WHERE developer_id = $1 AND id = $2 RETURNING id"
DELETE_CONSOLE_SESSIONS: Final = "DELETE FROM console_sessions WHERE developer_id = $1 RETURNING id"

# ---- the audit log, which is only added to

ADD_AUDIT_ENTRY: Final = """
INSERT INTO audit_entries (id, developer_id, created_at, action, actor, via, via_id, address, subject, details)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"""
LIST_AUDIT_ENTRIES: Final = """
SELECT id, developer_id, created_at, action, actor, via, via_id, address, subject, details FROM audit_entries
WHERE developer_id = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"""

# ---- projects

CREATE_PROJECT: Final = """
INSERT INTO projects (id, developer_id, name, secret_key_hash, secret_key_preview, sealed_webhook_secret,
  webhook_url, is_active, public_access, collect_phone, created_at, phone_required, show_context, match_code,
  allowed_origins)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15
WHERE (SELECT COUNT(*) FROM projects WHERE developer_id = $2) < $16
  AND ($10 = 0 OR EXISTS (SELECT 1 FROM developers d WHERE d.id = $2 AND d.plan <> 'free')) RETURNING id"""
_PROJECT: Final = """
SELECT p.id, p.developer_id, p.name, p.secret_key_preview, p.sealed_webhook_secret, p.webhook_url, p.is_active,
  p.public_access, p.collect_phone, p.created_at"""
_COUNTED_PROJECT: Final = f"""{_PROJECT},
  (SELECT COALESCE(SUM(c.requested), 0) FROM daily_counts c WHERE c.project_id = p.id),
  (SELECT COALESCE(SUM(c.confirmed), 0) FROM daily_counts c WHERE c.project_id = p.id),
  p.sealed_next_webhook_secret, p.next_webhook_secret_at, w.failing_since, w.off_at, w.off_reason, w.off_url,
  p.phone_required, p.show_context, p.match_code, p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at
FROM projects p LEFT JOIN webhook_endpoints w ON w.project_id = p.id"""
READ_WEBHOOK_SECRETS: Final = """
SELECT sealed_webhook_secret, sealed_next_webhook_secret, next_webhook_secret_at FROM projects WHERE id = $1"""
READ_PROJECT: Final = f"{_COUNTED_PROJECT} WHERE p.id = $1"
LIST_PROJECTS: Final = f"{_COUNTED_PROJECT} WHERE p.developer_id = $1 ORDER BY p.created_at, p.id"
READ_PROJECT_BY_SECRET_KEY: Final = f"{_PROJECT} FROM projects p WHERE p.secret_key_hash = $1"
UPDATE_PROJECT: Final = """
UPDATE projects SET name = COALESCE($1, name), webhook_url = COALESCE($2, webhook_url),
  is_active = COALESCE($3, is_active), public_access = COALESCE($4, public_access),
  collect_phone = COALESCE($5, collect_phone), phone_required = COALESCE($6, phone_required),
  show_context = COALESCE($7, show_context), match_code = COALESCE($8, match_code),
  allowed_origins = COALESCE($9, allowed_origins)
WHERE developer_id = $10 AND id = $11
  AND (COALESCE($5, 0) = 0 OR EXISTS (SELECT 1 FROM developers d WHERE d.id = $10 AND d.plan <> 'free'))
RETURNING id"""
REPLACE_PROJECT_SECRETS: Final = """
UPDATE projects SET secret_key_hash = $1, secret_key_preview = $2, sealed_webhook_secret = $3,
  sealed_next_webhook_secret = NULL, next_webhook_secret_at = NULL, secrets_version = secrets_version + 1
WHERE developer_id = $4 AND id = $5 RETURNING id"""
ROTATE_WEBHOOK_SECRET: Final = """
UPDATE projects SET sealed_webhook_secret = COALESCE(sealed_next_webhook_secret, sealed_webhook_secret),
  secrets_version = secrets_version + CASE WHEN sealed_next_webhook_secret IS NULL THEN 0 ELSE 1 END,
  sealed_next_webhook_secret = $1, next_webhook_secret_at = $2
WHERE developer_id = $3 AND id = $4 AND (next_webhook_secret_at IS NULL OR next_webhook_secret_at <= $5)
RETURNING id"""
PROMOTE_WEBHOOK_SECRET: Final = """
UPDATE projects SET sealed_webhook_secret = sealed_next_webhook_secret, sealed_next_webhook_secret = NULL,
  next_webhook_secret_at = NULL, secrets_version = secrets_version + 1
WHERE developer_id = $1 AND id = $2 AND next_webhook_secret_at > $3 RETURNING id"""
DELETE_PROJECT: Final = "DELETE FROM projects WHERE developer_id = $1 AND id = $2 RETURNING id"
REMEMBER_DELETED_PROJECT: Final = "INSERT INTO deleted_projects (id, developer_id) VALUES ($1, $2)"
NEXT_DELETED_PROJECT: Final = "SELECT id, developer_id FROM deleted_projects ORDER BY id LIMIT 1"
FORGET_DELETED_PROJECT: Final = "DELETE FROM deleted_projects WHERE id = $1"
ERASE_SESSIONS: Final = """
DELETE FROM sessions WHERE (day, token_hash) IN
  (SELECT day, token_hash FROM sessions WHERE project_id = $1 LIMIT $2) RETURNING day"""
ERASE_EVENTS: Final = """
DELETE FROM webhook_events WHERE id IN (SELECT id FROM webhook_events WHERE project_id = $1 LIMIT $2) RETURNING id"""
NEXT_USER_DAYS: Final = "SELECT messenger_id, day FROM user_days WHERE project_id = $1 LIMIT $2"
ERASE_USER_DAY: Final = """
DELETE FROM user_days WHERE developer_id = $1 AND messenger_id = $2 AND day = $3 AND project_id = $4"""
ERASE_DAILY_COUNTS: Final = "DELETE FROM daily_counts WHERE project_id = $1"

# ---- the life of a session

READ_SIGN_IN_PROJECT: Final = """
SELECT p.developer_id, COALESCE(d.plan, 'free'), p.is_active, p.public_access, p.show_context, p.match_code,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at
FROM projects p LEFT JOIN developers d ON d.id = p.developer_id WHERE p.id = $1"""
CREATE_SESSION: Final = """
INSERT INTO sessions (day, token_hash, id, status, created_at, expires_at, code_challenge, bot_id, context, match_code,
  match_choices, project_id)
SELECT $1, $2, $3, 'pending', $4, $5, $6, $7, $8, $9, $10, p.id FROM projects p
WHERE p.id = $11 AND p.is_active = 1 AND (p.public_access = 1 OR $12 = 0) RETURNING id"""
POLL_SESSION: Final = """
SELECT s.project_id, p.public_access, s.status, s.expires_at, s.code_challenge, s.sealed_phone
FROM sessions s JOIN projects p ON p.id = s.project_id WHERE s.day = $1 AND s.token_hash = $2"""
_SESSION: Final = """
SELECT s.day, s.token_hash, s.id, s.project_id, p.name, s.status, s.created_at, s.expires_at, s.opened_at,
  s.opener_id, s.confirmed_at, s.cancelled_at, s.used_at, s.messenger_id, s.messenger_name, s.messenger_username,
  s.sealed_phone, s.reported_at"""
_OF_SESSIONS: Final = "FROM sessions s JOIN projects p ON p.id = s.project_id"
READ_SESSION: Final = f"""{_SESSION}, s.bot_id, s.context, s.match_code, s.match_choices,
  CASE WHEN d.plan <> 'free' THEN p.collect_phone ELSE 0 END, p.phone_required
{_OF_SESSIONS} LEFT JOIN developers d ON d.id = p.developer_id WHERE s.day = $1 AND s.token_hash = $2"""
OPEN_SESSION: Final = """
UPDATE sessions SET opened_at = $1, opener_id = $2
WHERE day = $3 AND token_hash = $4 AND status = 'pending' AND opener_id IS NULL AND expires_at > $5
RETURNING project_id"""
CONFIRM_SESSION: Final = """
UPDATE sessions SET status = 'confirmed', confirmed_at = $1, messenger_id = $2, messenger_name = $3,
  messenger_username = $4, sealed_phone = $5, context = NULL
WHERE day = $6 AND token_hash = $7 AND status = 'pending' AND opener_id = $2 AND expires_at > $8
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id, (SELECT p.developer_id FROM projects p WHERE p.id = sessions.project_id), id"""
CANCEL_SESSION: Final = """
UPDATE sessions SET status = 'cancelled', cancelled_at = $1, context = NULL
WHERE day = $2 AND token_hash = $3 AND status = 'pending' AND opener_id = $4 AND expires_at > $5
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id, id"""
CONSUME_SESSION: Final = """
UPDATE sessions SET status = 'used', used_at = $1,
  secrets_version = (SELECT p.secrets_version FROM projects p WHERE p.id = sessions.project_id)
WHERE day = $2 AND token_hash = $3 AND status = 'confirmed'
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id, messenger_id, messenger_name, messenger_username, confirmed_at,
  (SELECT p.sealed_webhook_secret FROM projects p WHERE p.id = sessions.project_id),
  (SELECT p.sealed_next_webhook_secret FROM projects p WHERE p.id = sessions.project_id),
  (SELECT p.next_webhook_secret_at FROM projects p WHERE p.id = sessions.project_id), used_at, id, sealed_phone"""
# By `used_at`, which only a used session has: so its key is the one way to it, whatever a planner thinks of a status.
REREAD_SESSION: Final = """
SELECT s.project_id, s.messenger_id, s.messenger_name, s.messenger_username, s.confirmed_at,
  p.sealed_webhook_secret, p.sealed_next_webhook_secret, p.next_webhook_secret_at, s.used_at, s.id, s.sealed_phone
FROM sessions s JOIN projects p ON p.id = s.project_id
WHERE s.day = $1 AND s.token_hash = $2 AND s.code_challenge IS NOT NULL AND s.used_at > $3
  AND s.secrets_version = p.secrets_version AND s.reported_at IS NULL"""
# Of the assignments each sees the row as it was. `used_at` stays as it is: it is when somebody got the proof.
REPORT_SESSION: Final = """
UPDATE sessions SET reported_at = $1, context = NULL,
  status = CASE status WHEN 'pending' THEN 'cancelled' ELSE 'used' END,
  cancelled_at = CASE status WHEN 'pending' THEN $1 ELSE cancelled_at END
WHERE day = $2 AND token_hash = $3 AND opener_id = $4 AND reported_at IS NULL
  AND (status IN ('confirmed', 'used') OR (status = 'pending' AND expires_at > $5))
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id, id, status, confirmed_at"""
# No application is told any more that somebody is signed in who says that it was not them.
END_CONFIRMED_EVENT: Final = """
UPDATE webhook_events SET state = 'ended', finished_at = $1, leased_until = 0
WHERE project_id = $2 AND state = 'due' AND type = 'auth.confirmed' AND created_at = $3 AND session_id = $4
RETURNING id"""
COUNT_REPORTED: Final = """
INSERT INTO daily_counts (project_id, day, reported, cancelled) VALUES ($1, $2, 1, $3)
ON CONFLICT (project_id, day) DO UPDATE SET reported = daily_counts.reported + excluded.reported,
  cancelled = daily_counts.cancelled + excluded.cancelled"""
EXPIRE_SESSIONS: Final = """
UPDATE sessions SET status = 'expired', context = NULL
WHERE status = 'pending' AND (day, token_hash) IN
  (SELECT day, token_hash FROM sessions WHERE status = 'pending' AND expires_at <= $1 ORDER BY expires_at LIMIT $2)
RETURNING project_id, day"""
ANY_OVERDUE_SESSION: Final = "SELECT 1 FROM sessions WHERE status = 'pending' AND expires_at <= $1 LIMIT 1"
LIST_SESSIONS: Final = f"""{_SESSION} {_OF_SESSIONS}
WHERE s.project_id = $1 AND s.status = $2 AND (s.created_at, s.id) < ($3, $4) AND s.created_at >= $5
  AND s.expires_at > $6 AND s.expires_at <= $7
ORDER BY s.created_at DESC, s.id DESC LIMIT $8"""
LIST_SESSIONS_OF_USER: Final = f"""{_SESSION} {_OF_SESSIONS}
WHERE s.messenger_id = $1 AND s.project_id = $2 AND s.status = $3 AND (s.created_at, s.id) < ($4, $5)
  AND s.created_at >= $6
ORDER BY s.created_at DESC, s.id DESC LIMIT $7"""
FIND_SESSION: Final = f"""{_SESSION} {_OF_SESSIONS}
WHERE s.project_id IN (SELECT value FROM json_each($1))
  AND s.status IN ('pending', 'confirmed', 'cancelled', 'expired', 'used') AND s.created_at = $2 AND s.id = $3"""

# ---- what users say of projects and sessions

# The newest first; a second sign-in of one user may wait for the same contact.
ASK_FOR_PHONE: Final = """
INSERT INTO phone_requests (day, token_hash, session_id, messenger_id, bot_id, sealed_token, asked_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (day, token_hash) DO UPDATE SET asked_at = excluded.asked_at
WHERE phone_requests.asked_at < excluded.asked_at"""
_PHONE_REQUEST: Final = """
SELECT r.day, r.token_hash, r.session_id, r.messenger_id, r.bot_id, r.sealed_token, r.asked_at, r.expires_at
FROM phone_requests r JOIN sessions s ON s.day = r.day AND s.token_hash = r.token_hash"""
READ_PHONE_REQUEST: Final = f"{_PHONE_REQUEST} WHERE r.day = $1 AND r.token_hash = $2"
FIND_PHONE_REQUEST: Final = f"""{_PHONE_REQUEST}
WHERE r.messenger_id = $1 AND r.bot_id = $2 AND r.expires_at > $3
ORDER BY s.status = 'pending' DESC, r.asked_at DESC, r.session_id DESC LIMIT 1"""
# From one project to the next by the index, however often the account signed in to each.
LIST_PROJECTS_OF_USER: Final = """
WITH RECURSIVE found (id) AS (
  SELECT (SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 ORDER BY s.project_id LIMIT 1)
  UNION ALL
  SELECT (SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 AND s.project_id > f.id
    ORDER BY s.project_id LIMIT 1)
  FROM found f WHERE f.id IS NOT NULL
)
SELECT f.id FROM found f WHERE f.id IS NOT NULL LIMIT $2"""
BLOCK_PROJECT: Final = """
INSERT INTO blocks (messenger_id, project_id, created_at) SELECT $1, $2, $3
WHERE EXISTS (SELECT 1 FROM projects WHERE id = $2) ON CONFLICT (messenger_id, project_id) DO NOTHING
RETURNING project_id"""
UNBLOCK_PROJECT: Final = "DELETE FROM blocks WHERE messenger_id = $1 AND project_id = $2 RETURNING project_id"
IS_BLOCKED: Final = "SELECT 1 FROM blocks WHERE messenger_id = $1 AND project_id = $2"
LIST_BLOCKS: Final = """
SELECT b.project_id, p.name FROM blocks b JOIN projects p ON p.id = b.project_id
WHERE b.messenger_id = $1 AND (CAST($2 AS TEXT) IS NULL OR b.project_id = $2)
ORDER BY b.created_at DESC, b.project_id LIMIT $3"""
ERASE_BLOCKS: Final = "DELETE FROM blocks WHERE project_id = $1"
ANY_OLD_PHONE_REQUEST: Final = "SELECT 1 FROM phone_requests WHERE expires_at <= $1 LIMIT 1"
PURGE_PHONE_REQUESTS: Final = """
DELETE FROM phone_requests WHERE (day, token_hash) IN
  (SELECT day, token_hash FROM phone_requests WHERE expires_at <= $1 LIMIT $2) RETURNING day"""

# ---- retention

PURGE_SESSIONS: Final = """
DELETE FROM sessions WHERE (day, token_hash) IN
  (SELECT day, token_hash FROM sessions WHERE day < $1 ORDER BY day LIMIT $2) RETURNING day"""
ANY_SESSION_BEFORE: Final = "SELECT 1 FROM sessions WHERE day < $1 LIMIT 1"
ANY_EVENT_BEFORE: Final = "SELECT 1 FROM webhook_events WHERE state <> 'due' AND finished_at < $1 LIMIT 1"
ANY_USER_DAY_BEFORE: Final = "SELECT 1 FROM user_days WHERE day < $1 LIMIT 1"
PURGE_EVENTS: Final = """
DELETE FROM webhook_events WHERE id IN
  (SELECT id FROM webhook_events WHERE state <> 'due' AND finished_at < $1 LIMIT $2) RETURNING id"""
PURGE_USER_DAYS: Final = """
DELETE FROM user_days WHERE (developer_id, messenger_id, day, project_id) IN
  (SELECT developer_id, messenger_id, day, project_id FROM user_days WHERE day < $1 LIMIT $2) RETURNING day"""
ANY_IDLE_CONSOLE_SESSION: Final = "SELECT 1 FROM console_sessions WHERE last_seen_at <= $1 LIMIT 1"
ANY_OUTDATED_INVITATION: Final = "SELECT 1 FROM invitations WHERE expires_at <= $1 LIMIT 1"
PURGE_CONSOLE_SESSIONS: Final = """
DELETE FROM console_sessions WHERE id IN
  (SELECT id FROM console_sessions WHERE last_seen_at <= $1 LIMIT $2) RETURNING id"""
PURGE_INVITATIONS: Final = """
DELETE FROM invitations WHERE id IN (SELECT id FROM invitations WHERE expires_at <= $1 LIMIT $2) RETURNING id"""

# ---- counts

COUNT: Final = """
INSERT INTO daily_counts (project_id, day, requested, opened, confirmed, used, cancelled)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (project_id, day) DO UPDATE SET requested = daily_counts.requested + excluded.requested,
  opened = daily_counts.opened + excluded.opened, confirmed = daily_counts.confirmed + excluded.confirmed,
  used = daily_counts.used + excluded.used, cancelled = daily_counts.cancelled + excluded.cancelled"""
COUNT_EXPIRED: Final = "UPDATE daily_counts SET expired = expired + $1 WHERE project_id = $2 AND day = $3"
COUNT_PROJECT_USERS: Final = """
UPDATE daily_counts SET unique_users = unique_users + $1, latest_users = latest_users + $2
WHERE project_id = $3 AND day = $4"""
COUNT_DEVELOPER_USERS: Final = """
INSERT INTO daily_users (developer_id, day, unique_users, latest_users) VALUES ($1, $2, $3, $4)
ON CONFLICT (developer_id, day) DO UPDATE SET unique_users = daily_users.unique_users + excluded.unique_users,
  latest_users = daily_users.latest_users + excluded.latest_users"""
READ_USER_DAYS: Final = """
SELECT MAX(CASE WHEN project_id = $1 THEN day END), MAX(day),
  MAX(CASE WHEN project_id = $1 AND day = $2 THEN 1 ELSE 0 END), MAX(CASE WHEN day = $2 THEN 1 ELSE 0 END)
FROM user_days WHERE developer_id = $3 AND messenger_id = $4"""
ADD_USER_DAY: Final = "INSERT INTO user_days (developer_id, messenger_id, day, project_id) VALUES ($1, $2, $3, $4)"
READ_DAILY_COUNTS: Final = """
SELECT project_id, day, requested, opened, confirmed, used, cancelled, expired, unique_users, latest_users, reported
FROM daily_counts WHERE project_id = $1 AND day >= $2 ORDER BY day"""
READ_DAILY_USERS: Final = """
SELECT day, unique_users, latest_users FROM daily_users WHERE developer_id = $1 AND day >= $2 ORDER BY day"""

# ---- webhook events

RECORD_EVENT: Final = """
INSERT INTO webhook_events (session_id, id, type, sealed_body, created_at, state, due_at, leased_until, attempts,
  project_id)
SELECT $1, $2, $3, $4, $5, 'due', $5, 0, 0, p.id FROM projects p WHERE p.id = $6 AND p.webhook_url <> ''"""
FIND_DUE: Final = """
SELECT e.id FROM webhook_events e JOIN projects p ON p.id = e.project_id
WHERE e.state = 'due' AND e.due_at <= $1 AND e.leased_until <= $1
  AND e.project_id NOT IN (SELECT value FROM json_each($2)) AND p.webhook_url <> ''
  AND e.project_id NOT IN (
    SELECT o.id FROM projects o WHERE o.developer_id IN (SELECT value FROM json_each($3))
      AND o.id NOT IN (SELECT value FROM json_each($4)))
ORDER BY e.due_at LIMIT $5"""
# A lease also puts off when the event is due: what is leased need not be walked over to find what is not.
CLAIM_DELIVERY: Final = """
UPDATE webhook_events SET interrupted = interrupted + CASE WHEN leased_until > 0 THEN 1 ELSE 0 END,
  due_at = $1, leased_until = $1
WHERE id = $2 AND state = 'due' AND due_at <= $3 AND leased_until <= $3
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = webhook_events.project_id AND p.webhook_url <> '')
RETURNING id, type, project_id, sealed_body, created_at, attempts, schedule_start,
  (SELECT p.developer_id FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT p.webhook_url FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT p.sealed_webhook_secret FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT p.sealed_next_webhook_secret FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT p.next_webhook_secret_at FROM projects p WHERE p.id = webhook_events.project_id),
  (SELECT w.failing_since FROM webhook_endpoints w WHERE w.project_id = webhook_events.project_id)"""
READ_OLDEST_DUE: Final = """
SELECT due_at FROM webhook_events WHERE state = 'due' AND due_at <= $1 AND leased_until <= $1 ORDER BY due_at LIMIT 1"""
RELEASE_DELIVERY: Final = """
UPDATE webhook_events SET due_at = $1, leased_until = 0 WHERE id = $2 AND state = 'due' AND leased_until = $3"""
FINISH_ATTEMPT: Final = """
UPDATE webhook_events SET state = $1, due_at = $2, finished_at = $3, leased_until = 0, attempts = attempts + 1
WHERE id = $4 AND state = 'due' AND leased_until = $5
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = webhook_events.project_id AND p.webhook_url <> '')
RETURNING project_id"""
ADD_ATTEMPT: Final = """
INSERT INTO webhook_attempts (event_id, number, started_at, duration, status, error, sealed_answer)
VALUES ($1, $2, $3, $4, $5, $6, $7)"""
ERASE_ATTEMPTS: Final = "DELETE FROM webhook_attempts WHERE event_id = $1 AND number <= $2"
ENDPOINT_WORKS: Final = "DELETE FROM webhook_endpoints WHERE project_id = $1 AND off_at IS NULL"
ENDPOINT_FAILS: Final = """
INSERT INTO webhook_endpoints (project_id, failing_since) VALUES ($1, $2) ON CONFLICT (project_id) DO NOTHING"""
FORGET_ENDPOINT: Final = "DELETE FROM webhook_endpoints WHERE project_id = $1"
EMPTY_WEBHOOK_URL: Final = """
UPDATE projects SET webhook_url = '' WHERE id = $1 AND webhook_url = $2 AND webhook_url <> ''
  AND (CAST($3 AS BIGINT) IS NULL
    OR EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.project_id = $1 AND w.failing_since <= $3))
RETURNING id"""
TURN_OFF_ENDPOINT: Final = """
INSERT INTO webhook_endpoints (project_id, off_at, off_reason, off_url) VALUES ($1, $2, $3, $4)
ON CONFLICT (project_id) DO UPDATE SET off_at = excluded.off_at, off_reason = excluded.off_reason,
  off_url = excluded.off_url"""
# A URL that is there was set by a node of the older release, which waits for no ending: new events are left alone.
END_DELIVERIES: Final = """
UPDATE webhook_events SET state = 'ended', finished_at = $1, leased_until = 0 WHERE id IN
  (SELECT id FROM webhook_events WHERE project_id = $2 AND state = 'due'
    AND NOT EXISTS (SELECT 1 FROM projects p WHERE p.id = $2 AND p.webhook_url <> '') LIMIT $3)
RETURNING id"""
REMEMBER_ENDED_WEBHOOK: Final = """
INSERT INTO ended_webhooks (project_id, ended_at) VALUES ($1, $2) ON CONFLICT (project_id) DO NOTHING"""
NEXT_ENDED_WEBHOOK: Final = "SELECT project_id, ended_at FROM ended_webhooks ORDER BY project_id LIMIT 1"
FIND_ENDED_WEBHOOK: Final = """
SELECT e.project_id, e.ended_at FROM ended_webhooks e JOIN projects p ON p.id = e.project_id
WHERE p.developer_id = $1 AND p.id = $2"""
FORGET_ENDED_WEBHOOK: Final = "DELETE FROM ended_webhooks WHERE project_id = $1"
RECORD_DELIVERY: Final = """
INSERT INTO webhook_events (id, type, sealed_body, created_at, state, due_at, leased_until, attempts, finished_at,
  project_id)
SELECT $1, $2, $3, $4, $5, $4, 0, 1, $6, p.id FROM projects p WHERE p.id = $7 RETURNING id"""
_DELIVERY: Final = """
SELECT e.id, e.project_id, e.type, e.created_at, e.state, e.due_at, e.leased_until, e.finished_at, e.interrupted,
  e.session_id
FROM webhook_events e"""
LIST_DELIVERIES: Final = f"""{_DELIVERY}
WHERE e.project_id = $1 AND e.state = $2 AND e.type = $3 AND (e.created_at, e.id) < ($4, $5)
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = $1)
ORDER BY e.created_at DESC, e.id DESC LIMIT $6"""
READ_DELIVERY: Final = f"""{_DELIVERY}
JOIN projects p ON p.id = e.project_id WHERE p.developer_id = $1 AND e.id = $2"""
FIND_DELIVERIES: Final = f"""{_DELIVERY}
WHERE e.project_id = $1 AND e.state = $2 AND e.type = $3 AND e.created_at = $4 AND e.session_id = $5
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = $1)
ORDER BY e.id"""
READ_ATTEMPTS: Final = """
SELECT number, started_at, duration, status, error, sealed_answer FROM webhook_attempts
WHERE event_id = $1 ORDER BY number DESC LIMIT $2"""
FIND_RESENDABLE: Final = """
SELECT e.id FROM webhook_events e JOIN projects p ON p.id = e.project_id
WHERE p.developer_id = $1 AND e.id = $2 AND p.webhook_url <> ''"""
RESEND_DELIVERY: Final = """
UPDATE webhook_events SET state = 'due', due_at = $1, leased_until = 0, finished_at = NULL, schedule_start = attempts,
  interrupted = interrupted + CASE WHEN state = 'due' AND leased_until > 0 THEN 1 ELSE 0 END
WHERE id = $2 AND (state <> 'due' OR leased_until <= $1) RETURNING id"""

# ---- bot updates

CLAIM_UPDATE: Final = """
INSERT INTO bot_updates (bot_id, update_id, claimed_at, done) VALUES ($1, $2, $3, 0)
ON CONFLICT (bot_id, update_id) DO UPDATE SET claimed_at = excluded.claimed_at
  WHERE bot_updates.done = 0 AND bot_updates.claimed_at <= $4
RETURNING update_id"""
READ_UPDATE: Final = "SELECT done FROM bot_updates WHERE bot_id = $1 AND update_id = $2"
FINISH_UPDATE: Final = "UPDATE bot_updates SET done = 1 WHERE bot_id = $1 AND update_id = $2"
RELEASE_UPDATE: Final = "UPDATE bot_updates SET claimed_at = 0 WHERE bot_id = $1 AND update_id = $2 AND done = 0"
ANY_OLD_UPDATE: Final = "SELECT 1 FROM bot_updates WHERE claimed_at < $1 LIMIT 1"
PURGE_UPDATES: Final = """
DELETE FROM bot_updates WHERE (bot_id, update_id) IN
  (SELECT bot_id, update_id FROM bot_updates WHERE claimed_at < $1 LIMIT $2) RETURNING update_id"""
