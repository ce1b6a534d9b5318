-- The schema of Taproof on SQLite. Times are milliseconds since the epoch, days are UTC days since 1970-01-01.
-- A released migration never changes: `migrate.py` holds each to its checksum.

CREATE TABLE marks (
  name TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE developers (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL,
  email_key TEXT NOT NULL UNIQUE, -- The address in lower case: two spellings of one address are one developer.
  plan TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE access_tokens (
  id TEXT PRIMARY KEY,
  developer_id TEXT NOT NULL,
  name TEXT NOT NULL,
  preview TEXT NOT NULL,
  token_hash BLOB NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX access_tokens_by_developer ON access_tokens (developer_id, created_at);

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  developer_id TEXT NOT NULL,
  name TEXT NOT NULL,
  secret_key_hash BLOB NOT NULL UNIQUE,
  secret_key_preview TEXT NOT NULL,
  encrypted_webhook_secret BLOB NOT NULL,
  webhook_url TEXT NOT NULL,
  is_active INTEGER NOT NULL,
  public_access INTEGER NOT NULL,
  collect_phone INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX projects_by_developer ON projects (developer_id, created_at, id);

-- A deleted project's row moves here, so that nothing finds it any more while housekeeping erases what it left.
CREATE TABLE deleted_projects (
  id TEXT PRIMARY KEY,
  developer_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  day INTEGER NOT NULL, -- The UTC day that the token carries.
  token_hash BLOB NOT NULL,
  id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  opened_at INTEGER,
  opener_id TEXT,
  confirmed_at INTEGER,
  cancelled_at INTEGER,
  used_at INTEGER,
  messenger_id TEXT,
  messenger_name TEXT,
  messenger_username TEXT,
  PRIMARY KEY (day, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_project ON sessions (project_id, status, created_at, id);
CREATE INDEX sessions_pending ON sessions (expires_at) WHERE status = 'pending';

-- What became of the sessions created on a day. `latest_users` are those whose last confirmed day this is.
CREATE TABLE daily_counts (
  project_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  requested INTEGER NOT NULL DEFAULT 0,
  opened INTEGER NOT NULL DEFAULT 0,
  confirmed INTEGER NOT NULL DEFAULT 0,
  used INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  unique_users INTEGER NOT NULL DEFAULT 0,
  latest_users INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (project_id, day)
) STRICT, WITHOUT ROWID;

-- The same two figures over all projects of a developer, where one person may use several.
CREATE TABLE daily_users (
  developer_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  unique_users INTEGER NOT NULL DEFAULT 0,
  latest_users INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (developer_id, day)
) STRICT, WITHOUT ROWID;

-- Who confirmed on which day, once each: what keeps the counts of distinct users exact.
CREATE TABLE user_days (
  developer_id TEXT NOT NULL,
  messenger_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  project_id TEXT NOT NULL,
  PRIMARY KEY (developer_id, messenger_id, day, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX user_days_by_project ON user_days (project_id);

CREATE TABLE webhook_events (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  type TEXT NOT NULL,
  encrypted_body BLOB NOT NULL, -- The exact bytes to send, encrypted: they hold the session token.
  created_at INTEGER NOT NULL,
  state TEXT NOT NULL, -- due, delivered, failed, or ended because its webhook was removed.
  due_at INTEGER NOT NULL,
  leased_until INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  finished_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_events_due ON webhook_events (due_at) WHERE state = 'due';
CREATE INDEX webhook_events_by_project ON webhook_events (project_id, state);

CREATE TABLE bot_updates (
  bot_id INTEGER NOT NULL,
  update_id INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  done INTEGER NOT NULL,
  PRIMARY KEY (bot_id, update_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX bot_updates_by_age ON bot_updates (claimed_at);
