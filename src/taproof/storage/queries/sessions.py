"""Every statement, once, in the dialect that SQLite and PostgreSQL share.

Placeholders are `$1`, `$2`, …; each statement names them first in ascending order, since SQLite numbers them by first
appearance (held by `tests/storage/queries/test_queries.py`). A driver overrides by name only what must differ.
"""

from typing import Final

from taproof.core.model import PROJECT_FLAGS

READ_MARK: Final = "SELECT value FROM metadata WHERE name = $1"
CLAIM_MARK: Final = "INSERT INTO metadata (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING"

# ---- several processes on one store

HOLD_LEASE: Final = """
INSERT INTO leases (name, holder, held_until) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
  WHERE leases.holder = excluded.holder OR leases.held_until <= $4
RETURNING name"""
RELEASE_LEASE: Final = "DELETE FROM leases WHERE name = $1 AND holder = $2"

# ---- projects

_COLUMNS: Final = (
    *("id", "developer_id", "name", "secret_key_hash", "secret_key_preview", "encrypted_webhook_secret", "webhook_url"),
    *("created_at", "allowed_origins", *PROJECT_FLAGS),
)
_COLLECT: Final = f"${_COLUMNS.index('collect_phone') + 1}"
CREATE_PROJECT: Final = f"""
INSERT INTO projects ({", ".join(_COLUMNS)})
SELECT {", ".join(f"${place}" for place in range(1, len(_COLUMNS) + 1))}
WHERE (SELECT COUNT(*) FROM projects WHERE developer_id = $2) < ${len(_COLUMNS) + 1}
  AND ({_COLLECT} = 0 OR EXISTS (SELECT 1 FROM developers d WHERE d.id = $2 AND d.plan <> 'free')) RETURNING id"""
_PROJECT: Final = f"""
SELECT p.id, p.developer_id, p.name, p.secret_key_preview, p.encrypted_webhook_secret, p.webhook_url, p.created_at,
  {", ".join(f"p.{flag}" for flag in PROJECT_FLAGS)}"""
_COUNTED_PROJECT: Final = f"""{_PROJECT},
  (SELECT COALESCE(SUM(c.requested), 0) FROM daily_counts c WHERE c.project_id = p.id),
  (SELECT COALESCE(SUM(c.confirmed), 0) FROM daily_counts c WHERE c.project_id = p.id),
  p.encrypted_next_webhook_secret, p.next_webhook_secret_at, w.failing_since, w.off_at, w.off_reason, w.off_url,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at
FROM projects p LEFT JOIN webhook_endpoints w ON w.project_id = p.id"""
READ_WEBHOOK_SECRETS: Final = """
SELECT encrypted_webhook_secret, encrypted_next_webhook_secret, next_webhook_secret_at FROM projects WHERE id = $1"""
READ_PROJECT: Final = f"{_COUNTED_PROJECT} WHERE p.id = $1"
LIST_PROJECTS: Final = f"{_COUNTED_PROJECT} WHERE p.developer_id = $1 ORDER BY p.created_at, p.id"
COUNT_PROJECTS: Final = "SELECT COUNT(*) FROM projects WHERE developer_id = $1"
NAME_PROJECTS: Final = "SELECT id, name FROM projects WHERE developer_id = $1 ORDER BY created_at, id"
READ_PROJECTS: Final = f"""{_COUNTED_PROJECT}
WHERE p.developer_id || '' = $1 AND p.id IN (SELECT value FROM json_each($2)) ORDER BY p.created_at, p.id"""
READ_PROJECT_BY_SECRET_KEY: Final = f"{_PROJECT} FROM projects p WHERE p.secret_key_hash = $1"
_CHANGED: Final = ("name", "webhook_url", "allowed_origins", *PROJECT_FLAGS)
_COLLECTS: Final = f"${_CHANGED.index('collect_phone') + 1}"
_OWNER: Final = f"${len(_CHANGED) + 1}"
UPDATE_PROJECT: Final = f"""
UPDATE projects SET {", ".join(f"{name} = COALESCE(${place}, {name})" for place, name in enumerate(_CHANGED, 1))}
WHERE developer_id = {_OWNER} AND id = ${len(_CHANGED) + 2}
  AND (COALESCE({_COLLECTS}, 0) = 0 OR EXISTS (SELECT 1 FROM developers d WHERE d.id = {_OWNER} AND d.plan <> 'free'))
RETURNING id"""
REPLACE_PROJECT_SECRETS: Final = """
UPDATE projects SET secret_key_hash = $1, secret_key_preview = $2, encrypted_webhook_secret = $3,
  encrypted_next_webhook_secret = NULL, next_webhook_secret_at = NULL, secrets_version = secrets_version + 1
WHERE developer_id = $4 AND id = $5 RETURNING id"""
ROTATE_WEBHOOK_SECRET: Final = """
UPDATE projects SET encrypted_webhook_secret = COALESCE(encrypted_next_webhook_secret, encrypted_webhook_secret),
  secrets_version = secrets_version + CASE WHEN encrypted_next_webhook_secret IS NULL THEN 0 ELSE 1 END,
  encrypted_next_webhook_secret = $1, next_webhook_secret_at = $2
WHERE developer_id = $3 AND id = $4 AND (next_webhook_secret_at IS NULL OR next_webhook_secret_at <= $5)
RETURNING id"""
PROMOTE_WEBHOOK_SECRET: Final = """
UPDATE projects SET encrypted_webhook_secret = encrypted_next_webhook_secret, encrypted_next_webhook_secret = NULL,
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
SELECT s.project_id, p.public_access, s.status, s.expires_at, s.code_challenge, s.encrypted_phone
FROM sessions s JOIN projects p ON p.id = s.project_id WHERE s.day = $1 AND s.token_hash = $2"""
_SESSION: Final = """
SELECT s.day, s.token_hash, s.id, s.project_id, p.name, s.status, s.created_at, s.expires_at, s.opened_at,
  s.opener_id, s.confirmed_at, s.cancelled_at, s.used_at, s.messenger_id, s.messenger_name, s.messenger_username,
  s.encrypted_phone, s.reported_at"""
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
  messenger_username = $4, encrypted_phone = $5, context = NULL
WHERE day = $6 AND token_hash = $7 AND status = 'pending' AND opener_id = $2 AND expires_at > $8
  AND EXISTS (SELECT 1 FROM projects p LEFT JOIN developers d ON d.id = p.developer_id WHERE p.id = sessions.project_id
    AND ($5 IS NULL OR (p.collect_phone = 1 AND d.plan <> 'free')))
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
  (SELECT p.encrypted_webhook_secret FROM projects p WHERE p.id = sessions.project_id),
  (SELECT p.encrypted_next_webhook_secret FROM projects p WHERE p.id = sessions.project_id),
  (SELECT p.next_webhook_secret_at FROM projects p WHERE p.id = sessions.project_id), used_at, id, encrypted_phone"""
# By `used_at`, which only a used session has: so its key is the one way to it, whatever a planner thinks of a status.
REREAD_SESSION: Final = """
SELECT s.project_id, s.messenger_id, s.messenger_name, s.messenger_username, s.confirmed_at,
  p.encrypted_webhook_secret, p.encrypted_next_webhook_secret, p.next_webhook_secret_at, s.used_at, s.id,
  s.encrypted_phone
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
# No application is told any more that somebody is signed in who says that it was not them, also not when the event is
# asked for again. An attempt that is under way may still arrive.
END_CONFIRMED_EVENT: Final = """
UPDATE webhook_events SET state = CASE state WHEN 'delivered' THEN state ELSE 'ended' END, encrypted_body = $1,
  finished_at = COALESCE(finished_at, $2), leased_until = 0,
  interrupted = interrupted + CASE WHEN state = 'due' AND leased_until > 0 THEN 1 ELSE 0 END
WHERE project_id = $3 AND state IN ('due', 'delivered', 'failed', 'ended') AND type = 'auth.confirmed'
  AND created_at = $4 AND session_id = $5 RETURNING id"""
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
# Which projects have the newest sessions of a walk: a page of so many sessions needs no more projects than that. The
# place is one text that sorts as time and id do.
_NEWEST: Final = """
WITH projects_asked (id) AS (SELECT value FROM json_each($1))
SELECT p.id, (
  SELECT printf('%015d', s.created_at) || s.id FROM sessions s
  WHERE {0}
  ORDER BY s.created_at DESC, s.id DESC LIMIT 1
) AS newest FROM projects_asked p ORDER BY newest DESC LIMIT {1}"""
_OF_WALK: Final = "s.project_id = p.id AND s.status = $2 AND (s.created_at, s.id) < ($3, $4) AND s.created_at >= $5"
FIND_NEWEST: Final = _NEWEST.format(_OF_WALK, "$6")  # The index alone answers it.
FIND_NEWEST_BY_EXPIRY: Final = _NEWEST.format(f"{_OF_WALK} AND s.expires_at > $6 AND s.expires_at <= $7", "$8")
FIND_NEWEST_OF_USER: Final = _NEWEST.format(
    """s.messenger_id = $2 AND s.project_id = p.id AND s.status = $3 AND (s.created_at, s.id) < ($4, $5)
    AND s.created_at >= $6""",
    "$7",
)
FIND_SESSION: Final = f"""{_SESSION} {_OF_SESSIONS}
WHERE s.project_id IN (SELECT value FROM json_each($1))
  AND s.status IN ('pending', 'confirmed', 'cancelled', 'expired', 'used') AND s.created_at = $2 AND s.id = $3"""

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
READ_DAILY_TOTALS: Final = """
SELECT c.day, SUM(c.requested), SUM(c.opened), SUM(c.confirmed), SUM(c.used), SUM(c.cancelled), SUM(c.expired), 0, 0,
  SUM(c.reported)
FROM projects p JOIN daily_counts c ON c.project_id = p.id WHERE p.developer_id = $1 AND c.day >= $2
GROUP BY c.day ORDER BY c.day"""
READ_DAILY_USERS: Final = """
SELECT day, unique_users, latest_users FROM daily_users WHERE developer_id = $1 AND day >= $2 ORDER BY day"""

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
