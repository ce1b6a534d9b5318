"""The statements for sessions that differ on PostgreSQL: one for all concurrent calls of the same kind."""

from typing import Final

from taproof.storage.queries import sessions as queries
from taproof.storage.queries.deliveries import RECORD_EVENT as RECORD_UNLOCKED_EVENT


def _locked(condition: str) -> str:
    """Return the part of a statement that locks, in one order, the requested sessions that meet a condition."""
    return f"""locked AS MATERIALIZED (
  SELECT a.* FROM (SELECT * FROM asked ORDER BY day, token_hash) AS a CROSS JOIN LATERAL (
    SELECT FROM sessions s
    WHERE s.day = ANY ($1::INTEGER[]) AND s.day = a.day AND s.token_hash = a.token_hash AND {condition}
    LIMIT 1 FOR UPDATE
  ) AS s
)"""


_STATE: Final = "status, owner_id, expires_at, confirmed_at, ended_at, withdrawn"
_HELD: Final = """held AS MATERIALIZED (
  SELECT a.*, s.* FROM (SELECT * FROM asked ORDER BY day, token_hash) AS a CROSS JOIN LATERAL (
    SELECT s.status, s.opener_id AS owner_id, s.expires_at, s.confirmed_at, s.cancelled_at AS ended_at, s.withdrawn,
      s.project_id AS found_project
    FROM sessions s WHERE s.day = ANY ($1::INTEGER[]) AND s.day = a.day AND s.token_hash = a.token_hash
    LIMIT 1 FOR UPDATE
  ) AS s
)"""
"""The part of a statement that locks the requested sessions in one order, and then reads their states. The lock keeps
each state unchanged, so that a refusal returns the state that caused it.
"""
_OUTCOME: Final = f"""
SELECT h.day, h.token_hash, m.day IS NOT NULL, {", ".join(f"h.{each}" for each in _STATE.split(", "))}
FROM held h JOIN projects p ON p.id = h.found_project
LEFT JOIN moved m ON m.day = h.day AND m.token_hash = h.token_hash"""


def _counted(counter: str) -> str:
    """Return the part of a statement that counts the changed sessions in `moved`."""
    return f"""counted AS (
  INSERT INTO daily_counts AS c (project_id, day, {counter})
  SELECT m.project_id, m.day, COUNT(*) FROM moved m GROUP BY m.project_id, m.day ORDER BY m.project_id, m.day
  ON CONFLICT (project_id, day) DO UPDATE SET {counter} = c.{counter} + excluded.{counter} RETURNING c.project_id
)"""


CREATE_SESSIONS: Final = f"""
WITH asked AS MATERIALIZED (
  SELECT a.*, {queries.RETURN_URL.format(url="a.url")} AS return_url,
    CASE p.same_device WHEN 'require' THEN 1 ELSE 0 END AS return_required,
    {queries.CREATION_REFUSAL.format(public="a.is_public", url="a.url", challenge="a.code_challenge")} AS refusal
  FROM unnest($1::INTEGER[], $2::BYTEA[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BYTEA[], $7::BIGINT[],
    $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::INTEGER[])
    AS a (day, token_hash, id, created_at, expires_at, code_challenge, bot_id, context, match_code, match_choices, url,
      project_id, is_public)
  LEFT JOIN projects p ON p.id = a.project_id
), moved AS (
  INSERT INTO sessions (day, token_hash, id, status, created_at, expires_at, code_challenge, bot_id, context,
    match_code, match_choices, return_url, return_required, project_id)
  SELECT a.day, a.token_hash, a.id, 'pending', a.created_at, a.expires_at, a.code_challenge, a.bot_id, a.context,
    a.match_code, a.match_choices, a.return_url, a.return_required, a.project_id
  FROM asked a WHERE a.refusal IS NULL
  RETURNING day, token_hash, project_id
), {_counted("requested")}
SELECT day, token_hash, refusal, return_required, return_url IS NOT NULL FROM asked"""
_FOUND: Final = """CROSS JOIN LATERAL (
  SELECT * FROM sessions x
  WHERE x.day = ANY ($1::INTEGER[]) AND x.day = a.day AND x.token_hash = a.token_hash LIMIT 1
) AS s JOIN projects p ON p.id = s.project_id"""
POLL_SESSIONS: Final = f"""
SELECT s.day, s.token_hash, {queries.POLL_COLUMNS}
FROM unnest($2::INTEGER[], $3::BYTEA[]) AS a (day, token_hash)
{_FOUND}"""
READ_SESSIONS: Final = f"""
SELECT {queries.SESSION_COLUMNS}, {queries.PROMPT_COLUMNS.format(viewer="a.viewer")}, a.viewer
FROM unnest($2::INTEGER[], $3::BYTEA[], $4::TEXT[]) AS a (day, token_hash, viewer)
{_FOUND} LEFT JOIN developers d ON d.id = p.developer_id"""
OPEN_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::TEXT[])
    AS a (day, token_hash, opened_at, deadline, opener_id, hint)
), {_HELD}, moved AS (
  UPDATE sessions s SET opened_at = h.opened_at, opener_id = h.opener_id, hint = h.hint
  FROM held h JOIN projects p ON p.id = h.found_project
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = h.day AND s.token_hash = h.token_hash
    AND h.status = 'pending' AND h.owner_id IS NULL AND h.expires_at > h.deadline
  RETURNING s.day, s.token_hash, s.project_id
), {_counted("opened")} {_OUTCOME}"""
CONFIRM_SESSIONS: Final = """
SELECT * FROM confirm_sessions($1, $2, $3, $4, $6, $7, $8, $5, $9, $10, $11, $12, $13, $14, $15, $16)"""


def _change_held(day: str, token_hash: str, change: str) -> str:
    """Return a statement that changes one session. The state is read first and kept by its lock, as in `_HELD`."""
    return f"""
WITH held AS MATERIALIZED ({queries.find_state(day, token_hash)} FOR UPDATE OF s), moved AS ({change})
SELECT EXISTS (SELECT FROM moved), h.* FROM held h"""


_IS_HELD: Final = "EXISTS (SELECT FROM held)"
AWAIT_RETURN: Final = _change_held("$8", "$9", queries.await_return("$7::BYTEA", _IS_HELD))
RENEW_RETURN: Final = _change_held("$3", "$4", queries.renew_return(_IS_HELD))
CANCEL_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::TEXT[], $8::TEXT[],
    $9::BYTEA[], $10::BIGINT[], $11::TEXT[])
    AS a (day, token_hash, cancelled_at, deadline, opener_id, event_id, type, encrypted_body, created_at, project_id)
), {_HELD}, moved AS (
  UPDATE sessions s SET status = 'cancelled', cancelled_at = h.cancelled_at, context = NULL, {queries.FORGET_RETURN}
  FROM held h, projects p
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = h.day AND s.token_hash = h.token_hash AND p.id = s.project_id
    AND h.status = 'pending' AND h.owner_id = h.opener_id AND h.expires_at > h.deadline
  RETURNING s.day, s.token_hash, s.id, s.project_id
), {_counted("cancelled")}, hooked AS MATERIALIZED (
  SELECT p.id, p.webhook_events FROM projects p
  WHERE p.id IN (SELECT n.project_id FROM counted n) AND p.webhook_url <> ''
  ORDER BY p.id FOR SHARE
), recorded AS (
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
    session_id)
  SELECT a.event_id, a.type, a.encrypted_body, a.created_at, 'due', a.created_at, 0, 0, h.id, m.id
  FROM asked a JOIN moved m ON m.day = a.day AND m.token_hash = a.token_hash
  JOIN hooked h ON h.id = a.project_id AND h.webhook_events LIKE '%' || a.type || '%'
) {_OUTCOME}"""
WITHDRAW_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[])
    AS a (day, token_hash, cancelled_at, deadline)
), {_HELD}, moved AS (
  UPDATE sessions s SET status = 'cancelled', cancelled_at = h.cancelled_at, withdrawn = 1, context = NULL,
    {queries.FORGET_RETURN}
  FROM held h, projects p
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = h.day AND s.token_hash = h.token_hash AND p.id = s.project_id
    AND h.status = 'pending' AND h.expires_at > h.deadline
  RETURNING s.day, s.token_hash, s.project_id
), {_counted("cancelled")} {_OUTCOME}"""
CONSUME_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[]) AS a (day, token_hash, used_at)
), {_locked("s.status || '' = 'confirmed'")}, moved AS (
  UPDATE sessions s SET status = 'used', used_at = l.used_at, secrets_version = p.secrets_version
  FROM locked l, projects p
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash AND p.id = s.project_id
  RETURNING s.day, s.token_hash, {queries.CONSUMED_COLUMNS}
), {_counted("used")}
SELECT * FROM moved"""
# `used_at` does not change: it is the time at which an application received the proof.
REPORT_SESSION: Final = f"""
WITH held AS MATERIALIZED (
  SELECT s.day, s.token_hash, s.status FROM sessions s
  WHERE s.day = $2 AND s.token_hash = $3 AND COALESCE(s.opener_id, '') = $4 AND s.reported_at IS NULL
    AND (s.status || '' IN ('confirmed', 'used') OR (s.status || '' = 'pending' AND s.expires_at > $5))
  FOR UPDATE
), moved AS (
  UPDATE sessions s SET reported_at = $1, context = NULL,
    status = CASE h.status WHEN 'pending' THEN 'cancelled' ELSE 'used' END,
    cancelled_at = CASE h.status WHEN 'pending' THEN $1 ELSE s.cancelled_at END,
    {queries.FORGET_RETURN_IF_PENDING}
  FROM held h, projects p
  WHERE s.day = $2 AND s.token_hash = $3 AND p.id = s.project_id
  RETURNING s.id, s.day, s.project_id, s.status, s.confirmed_at, h.status AS before
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, reported, cancelled)
  SELECT m.project_id, m.day, 1, CASE m.status WHEN 'cancelled' THEN 1 ELSE 0 END FROM moved m
  ON CONFLICT (project_id, day) DO UPDATE SET reported = c.reported + excluded.reported,
    cancelled = c.cancelled + excluded.cancelled
  RETURNING c.project_id
), hooked AS MATERIALIZED (
  SELECT p.id, p.webhook_events FROM counted n JOIN projects p ON p.id = n.project_id WHERE p.webhook_url <> ''
  ORDER BY p.id FOR SHARE OF p
), recorded AS (
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
    session_id)
  SELECT a.id, a.type, a.encrypted_body, a.created_at, 'due', a.created_at, 0, 0, h.id, m.id
  FROM unnest($6::TEXT[], $7::TEXT[], $8::TEXT[], $9::BYTEA[], $10::BIGINT[])
    AS a (status, id, type, encrypted_body, created_at)
  JOIN hooked h ON h.webhook_events LIKE '%' || a.type || '%'
  JOIN moved m ON m.project_id = h.id AND m.before = a.status
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
_EXPIRE: Final = f"UPDATE sessions s SET status = 'expired', context = NULL, {queries.FORGET_RETURN}"
_EXPIRED: Final = f"""
  RETURNING s.day, s.token_hash, s.id, s.project_id, s.created_at, s.expires_at
), {_counted("expired")}
SELECT m.day, m.token_hash, m.id, m.project_id, m.created_at, m.expires_at, p.id IS NOT NULL
FROM moved m
LEFT JOIN projects p ON p.id = m.project_id AND p.webhook_url <> '' AND p.webhook_events LIKE '%auth.expired%'
ORDER BY m.project_id"""
EXPIRE_SESSIONS: Final = f"""
WITH due AS MATERIALIZED (
  SELECT token_hash FROM sessions WHERE day = $1 AND status = 'pending' AND expires_at <= $2
  ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED
), moved AS (
  {_EXPIRE} FROM due d WHERE s.day = $1 AND s.token_hash = d.token_hash {_EXPIRED}"""
EXPIRE_ASKED_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[]) AS a (day, token_hash, instant)
), {_locked("s.status || '' = 'pending' AND s.expires_at <= a.instant")}, moved AS (
  {_EXPIRE} FROM locked l
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash {_EXPIRED}"""
# The lock keeps the webhook from being removed in between: its due events end after this commit, or none are made.
RECORD_EVENT: Final = f"{RECORD_UNLOCKED_EVENT} FOR SHARE"
