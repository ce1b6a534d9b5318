-- Webhooks that are sent again: every attempt, what is known of an endpoint, and the rotation of webhook secrets.

-- During a rotation: the webhook secret that takes the place of the current one, and when.
ALTER TABLE projects ADD COLUMN encrypted_next_webhook_secret BLOB;
ALTER TABLE projects ADD COLUMN next_webhook_secret_at INTEGER;

-- `attempts` when the schedule of retries last began; attempts whose outcome nobody wrote down.
ALTER TABLE webhook_events ADD COLUMN schedule_start INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook_events ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;

-- What is due is found by time, and passed over by project and lease without a look at the event itself.
DROP INDEX webhook_events_due;
CREATE INDEX webhook_events_due ON webhook_events (due_at, project_id, leased_until) WHERE state = 'due';
DROP INDEX webhook_events_by_project;
CREATE INDEX webhook_events_by_project ON webhook_events (project_id, state, type, created_at, id);

CREATE TABLE webhook_attempts (
  event_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  duration INTEGER NOT NULL, -- Milliseconds.
  status INTEGER,
  error TEXT,
  encrypted_answer BLOB, -- Encrypted, since a receiver may send back the session token that it was sent.
  PRIMARY KEY (event_id, number)
) STRICT, WITHOUT ROWID;

-- An event takes its attempts along, whoever erases it: a process of the older release does not know of them.
CREATE TRIGGER webhook_attempts_are_erased AFTER DELETE ON webhook_events
BEGIN
  DELETE FROM webhook_attempts WHERE event_id = OLD.id;
END;

-- What is known of a project's endpoint: there is a row only while something is wrong with it.
CREATE TABLE webhook_endpoints (
  project_id TEXT PRIMARY KEY,
  failing_since INTEGER,
  off_at INTEGER,
  off_reason TEXT,
  off_url TEXT
) STRICT, WITHOUT ROWID;

-- Projects whose webhook was removed when more deliveries were due than end at once, and when that was: no webhook is set
-- until the others have ended too.
CREATE TABLE ended_webhooks (
  project_id TEXT PRIMARY KEY,
  ended_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
