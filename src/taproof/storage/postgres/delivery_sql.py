"""What PostgreSQL needs otherwise than `queries/deliveries.py` has it. See `postgres/sql.py`."""

from typing import Final

from taproof.storage.queries import deliveries as delivery_queries

CLAIM_DELIVERIES: Final = """
WITH due AS MATERIALIZED (
  SELECT e.id, e.due_at, p.developer_id, p.webhook_url, p.encrypted_webhook_secret, p.encrypted_next_webhook_secret,
    p.next_webhook_secret_at,
    (SELECT w.failing_since FROM webhook_endpoints w WHERE w.project_id = e.project_id) AS failing_since
  FROM webhook_events e JOIN projects p ON p.id = e.project_id
  WHERE e.state = 'due' AND e.due_at <= $2 AND e.leased_until <= $2 AND e.project_id <> ALL ($4::TEXT[])
    AND p.webhook_url <> ''
    AND e.project_id NOT IN (
      SELECT o.id FROM projects o WHERE o.developer_id = ANY ($5::TEXT[]) AND o.id <> ALL ($6::TEXT[]))
  ORDER BY e.due_at LIMIT $3 FOR UPDATE OF e SKIP LOCKED
), claimed AS (
  UPDATE webhook_events e SET interrupted = e.interrupted + CASE WHEN e.leased_until > 0 THEN 1 ELSE 0 END,
    due_at = $1, leased_until = $1
  FROM due WHERE e.id = due.id
  RETURNING e.id, e.type, e.project_id, e.encrypted_body, e.created_at, e.attempts, e.schedule_start
)
SELECT c.*, due.developer_id, due.webhook_url, due.encrypted_webhook_secret, due.encrypted_next_webhook_secret,
  due.next_webhook_secret_at, due.failing_since
FROM claimed c JOIN due ON due.id = c.id ORDER BY due.due_at"""
_HELD: Final = """
  SELECT a.* FROM (SELECT * FROM asked ORDER BY id COLLATE "C") AS a CROSS JOIN LATERAL (
    SELECT FROM webhook_events e
    WHERE e.id = a.id AND e.state || '' = 'due' AND e.leased_until = a.leased_until
      AND EXISTS (SELECT FROM projects p WHERE p.id = e.project_id AND p.webhook_url <> '')
    LIMIT 1 FOR UPDATE
  ) AS e"""
"""Those asked for of which the asker still has the lease, and whose webhook was not removed, locked."""
RELEASE_DELIVERIES: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($1::TEXT[], $2::BIGINT[]) AS a (id, leased_until)
), held AS MATERIALIZED ({_HELD}
)
UPDATE webhook_events e SET due_at = $3, leased_until = 0 FROM held h WHERE e.id = h.id"""
FINISH_ATTEMPTS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::INTEGER[], $7::BIGINT[],
    $8::BIGINT[], $9::INTEGER[], $10::TEXT[], $11::BYTEA[], $12::BOOLEAN[])
    AS a (state, due_at, finished_at, id, leased_until, number, started_at, duration, status, error, encrypted_answer,
      reached)
), held AS MATERIALIZED ({_HELD}
), finished AS (
  UPDATE webhook_events e SET state = h.state, due_at = h.due_at, finished_at = h.finished_at, leased_until = 0,
    attempts = e.attempts + 1
  FROM held h WHERE e.id = h.id RETURNING e.id, e.project_id, h.state, h.started_at, h.reached
), added AS (
  INSERT INTO webhook_attempts (event_id, number, started_at, duration, status, error, encrypted_answer)
  SELECT h.id, h.number, h.started_at, h.duration, h.status, h.error, h.encrypted_answer FROM held h
), endpoints AS MATERIALIZED (
  SELECT f.project_id, bool_or(f.state = 'delivered') AS works, MIN(f.started_at) FILTER (WHERE f.reached) AS failed_at
  FROM finished f GROUP BY f.project_id
), mended AS MATERIALIZED (
  SELECT w.project_id FROM webhook_endpoints w JOIN endpoints n ON n.project_id = w.project_id
  WHERE n.works AND w.off_at IS NULL ORDER BY w.project_id FOR UPDATE OF w
), forgotten AS (
  DELETE FROM webhook_endpoints w USING mended m WHERE w.project_id = m.project_id
), failing AS (
  INSERT INTO webhook_endpoints (project_id, failing_since)
  SELECT n.project_id, n.failed_at FROM endpoints n
  WHERE NOT n.works AND n.failed_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM webhook_endpoints w WHERE w.project_id = n.project_id)
  ORDER BY n.project_id ON CONFLICT (project_id) DO NOTHING
)
SELECT id FROM finished"""
# A URL that is there was set by a node of the older release, which waits for no ending: new events are left alone. The
# due ones are found in the order of their index, so that the limit does not make reading the whole table look cheap.
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
NEXT_ENDED_WEBHOOK: Final = f"{delivery_queries.NEXT_ENDED_WEBHOOK} FOR UPDATE SKIP LOCKED"
FIND_ENDED_WEBHOOK: Final = f"{delivery_queries.FIND_ENDED_WEBHOOK} FOR UPDATE OF e"
IS_FAILING: Final = "SELECT 1 FROM webhook_endpoints WHERE project_id = $1 AND failing_since <= $2 FOR UPDATE"
_DELIVERY: Final = """
  SELECT x.id, x.project_id, x.type, x.created_at, x.state, x.due_at, x.leased_until, x.finished_at, x.interrupted,
    x.session_id
  FROM webhook_events x"""
LIST_DELIVERIES: Final = f"""
SELECT e.* FROM projects p CROSS JOIN unnest($2::TEXT[]) AS s (state) CROSS JOIN unnest($3::TEXT[]) AS t (type)
CROSS JOIN LATERAL ({_DELIVERY}
  WHERE x.project_id = p.id AND x.state = s.state AND x.type COLLATE "C" = t.type AND (x.created_at, x.id) < ($4, $5)
  ORDER BY x.created_at DESC, x.id DESC LIMIT $6
) AS e
WHERE p.id = $1 ORDER BY e.created_at DESC, e.id DESC LIMIT $6"""
FIND_DELIVERIES: Final = f"""
SELECT e.* FROM projects p CROSS JOIN unnest($2::TEXT[]) AS s (state) CROSS JOIN unnest($3::TEXT[]) AS t (type)
CROSS JOIN LATERAL ({_DELIVERY}
  WHERE x.project_id = p.id AND x.state = s.state AND x.type COLLATE "C" = t.type AND x.created_at = $4
    AND x.session_id = $5
  ORDER BY x.id -- So that it stays a query of its own: one walk for each state and type.
) AS e
WHERE p.id = $1 ORDER BY e.id"""
READ_ATTEMPTS: Final = """
SELECT a.* FROM unnest($1::TEXT[]) AS e (id) CROSS JOIN LATERAL (
  SELECT x.event_id, x.number, x.started_at, x.duration, x.status, x.error, x.encrypted_answer FROM webhook_attempts x
  WHERE x.event_id = e.id ORDER BY x.number DESC LIMIT $2
) AS a ORDER BY a.event_id, a.number DESC"""
FIND_RESENDABLE: Final = f"{delivery_queries.FIND_RESENDABLE} FOR SHARE OF p"
"""The lock keeps the webhook from being removed in between: its due events are ended after this commit."""
