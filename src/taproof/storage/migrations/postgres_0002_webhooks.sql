-- Webhooks that are sent again: every attempt, what is known of an endpoint, and the rotation of webhook secrets.
-- Nodes of the older release go on working: they name no new column, and each of these is filled by itself.

-- During a rotation: the webhook secret that takes the place of the current one, and when.
ALTER TABLE projects ADD COLUMN encrypted_next_webhook_secret BYTEA, ADD COLUMN next_webhook_secret_at BIGINT;

-- `attempts` when the schedule of retries last began; attempts whose outcome nobody wrote down.
ALTER TABLE webhook_events
  ADD COLUMN schedule_start INTEGER NOT NULL DEFAULT 0, ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;

-- For a page of deliveries, newest first; its beginning is what the index before it was for.
DROP INDEX webhook_events_by_project;
CREATE INDEX webhook_events_by_project ON webhook_events (project_id, state, type COLLATE "C", created_at, id);

CREATE TABLE webhook_attempts (
  event_id TEXT COLLATE "C" NOT NULL,
  number INTEGER NOT NULL,
  started_at BIGINT NOT NULL,
  duration BIGINT NOT NULL, -- Milliseconds.
  status INTEGER,
  error TEXT,
  encrypted_answer BYTEA, -- Encrypted, since a receiver may send back the session token that it was sent.
  PRIMARY KEY (event_id, number)
);

-- What is known of a project's endpoint: there is a row only while something is wrong with it.
CREATE TABLE webhook_endpoints (
  project_id TEXT COLLATE "C" PRIMARY KEY,
  failing_since BIGINT,
  off_at BIGINT,
  off_reason TEXT,
  off_url TEXT
);

-- Projects whose webhook was removed when more deliveries were due than end at once, and when that was: no webhook is set
-- until the others have ended too.
CREATE TABLE ended_webhooks (
  project_id TEXT COLLATE "C" PRIMARY KEY,
  ended_at BIGINT NOT NULL
);

-- An event takes its attempts along, whoever erases it: a node of the older release does not know of them, and a
-- statement that deletes both would not see an attempt that was written down while it waited for the event.
CREATE FUNCTION erase_webhook_attempts() RETURNS TRIGGER LANGUAGE plpgsql
SET enable_seqscan = off -- By the primary key, however small the table was when this was planned.
AS $$
BEGIN
  DELETE FROM webhook_attempts a USING erased e WHERE a.event_id = e.id;
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_attempts_are_erased AFTER DELETE ON webhook_events
REFERENCING OLD TABLE AS erased FOR EACH STATEMENT EXECUTE FUNCTION erase_webhook_attempts();
