-- Phone numbers, own bots, what a prompt tells, match codes, and what users block and report.

ALTER TABLE projects ADD COLUMN phone_required INTEGER NOT NULL DEFAULT 1;
ALTER TABLE projects ADD COLUMN show_context INTEGER NOT NULL DEFAULT 1;
ALTER TABLE projects ADD COLUMN match_code INTEGER NOT NULL DEFAULT 0;
-- Origins with a space between them; "" is any.
ALTER TABLE projects ADD COLUMN allowed_origins TEXT NOT NULL DEFAULT '';
-- A bot of the project's own; null without one.
ALTER TABLE projects ADD COLUMN bot_id INTEGER;
ALTER TABLE projects ADD COLUMN bot_username TEXT;
ALTER TABLE projects ADD COLUMN encrypted_bot_token BLOB;
ALTER TABLE projects ADD COLUMN bot_broken_at INTEGER;
CREATE UNIQUE INDEX projects_by_bot ON projects (bot_id) WHERE bot_id IS NOT NULL;

-- The bot whose link the session was given out with; 0 is the service's own.
ALTER TABLE sessions ADD COLUMN bot_id INTEGER NOT NULL DEFAULT 0;
-- JSON: where the request came from. It is erased when the session leaves pending.
ALTER TABLE sessions ADD COLUMN context TEXT;
ALTER TABLE sessions ADD COLUMN match_code TEXT;
ALTER TABLE sessions ADD COLUMN match_choices TEXT; -- Three codes with a space between them, in the order shown.
ALTER TABLE sessions ADD COLUMN encrypted_phone BLOB;
ALTER TABLE sessions ADD COLUMN reported_at INTEGER; -- When its user said "This wasn't me".
ALTER TABLE daily_counts ADD COLUMN reported INTEGER NOT NULL DEFAULT 0;

-- Who tapped Confirm and is asked for their contact: the message that brings it does not say for which session.
CREATE TABLE phone_requests (
  day INTEGER NOT NULL,
  token_hash BLOB NOT NULL,
  session_id TEXT NOT NULL,
  messenger_id TEXT NOT NULL,
  bot_id INTEGER NOT NULL,
  encrypted_token BLOB NOT NULL,
  asked_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (day, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX phone_requests_by_messenger ON phone_requests (messenger_id, bot_id, asked_at);
CREATE INDEX phone_requests_by_age ON phone_requests (expires_at);

-- Which projects a messenger account wants to hear nothing of.
CREATE TABLE blocks (
  messenger_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (messenger_id, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX blocks_by_project ON blocks (project_id);

-- What projects that are deleted by now had confirmed: it counts towards the month of their developer all the same.
CREATE TABLE removed_usage (
  developer_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  confirmed INTEGER NOT NULL,
  PRIMARY KEY (developer_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX removed_usage_by_age ON removed_usage (day);
