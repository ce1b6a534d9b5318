-- What projects ask and tell, own bots, and what users block.

ALTER TABLE projects
  ADD COLUMN phone_required INTEGER NOT NULL DEFAULT 1,
  ADD COLUMN show_context INTEGER NOT NULL DEFAULT 1,
  ADD COLUMN match_code INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN allowed_origins TEXT NOT NULL DEFAULT '', -- With a space between them; "" is any.
  -- A bot of the project's own; null without one.
  ADD COLUMN bot_id BIGINT,
  ADD COLUMN bot_username TEXT,
  ADD COLUMN encrypted_bot_token BYTEA,
  ADD COLUMN bot_broken_at BIGINT;
CREATE UNIQUE INDEX projects_by_bot ON projects (bot_id) WHERE bot_id IS NOT NULL;

-- Who tapped Confirm and is asked for their contact: the message that brings it does not say for which session.
CREATE TABLE phone_requests (
  day INTEGER NOT NULL,
  token_hash BYTEA NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  messenger_id TEXT COLLATE "C" NOT NULL,
  bot_id BIGINT NOT NULL,
  encrypted_token BYTEA NOT NULL,
  asked_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (day, token_hash)
);
CREATE INDEX phone_requests_by_messenger ON phone_requests (messenger_id, bot_id, asked_at);
CREATE INDEX phone_requests_by_age ON phone_requests (expires_at);

-- Which projects a messenger account wants to hear nothing of.
CREATE TABLE blocks (
  messenger_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (messenger_id, project_id)
);
CREATE INDEX blocks_by_project ON blocks (project_id);

-- What projects that are deleted by now had confirmed: it counts towards the month of their developer all the same.
CREATE TABLE removed_usage (
  developer_id TEXT COLLATE "C" NOT NULL,
  day INTEGER NOT NULL,
  confirmed INTEGER NOT NULL,
  PRIMARY KEY (developer_id, day)
);
CREATE INDEX removed_usage_by_age ON removed_usage (day);
