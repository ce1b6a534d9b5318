-- What a session's page shows: which webhook event told of it; and the sessions that one messenger account confirmed.

-- Null for a test, and for what a process of the older release records, which does not name this column.
ALTER TABLE webhook_events ADD COLUMN session_id TEXT;

-- By account first: nearly all entries differ there, so an entry is found with one short comparison at each step. The
-- status lets a page of one account and one status be walked like any other, however often that account signs in.
CREATE INDEX sessions_by_messenger ON sessions (messenger_id, project_id, status, created_at, id)
  WHERE messenger_id IS NOT NULL;
