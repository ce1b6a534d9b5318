-- The console: owners, the messenger accounts that sign in, invitations, browsers that are signed in, and the audit log.

ALTER TABLE developers ADD COLUMN is_owner INTEGER NOT NULL DEFAULT 0;
ALTER TABLE developers ADD COLUMN messenger_id TEXT;
ALTER TABLE developers ADD COLUMN messenger_name TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX developers_by_messenger_id ON developers (messenger_id);
-- An installation has an owner; where nobody was asked it is who came first.
UPDATE developers SET is_owner = 1 WHERE id = (SELECT id FROM developers ORDER BY created_at, id LIMIT 1);

CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  code_hash BLOB NOT NULL UNIQUE,
  email TEXT NOT NULL, -- Empty for the first developer, who says theirs.
  plan TEXT NOT NULL,
  is_owner INTEGER NOT NULL,
  developer_id TEXT, -- Who gets another messenger account; none to make a new developer.
  invited_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX invitations_by_expiry ON invitations (expires_at);

CREATE TABLE console_sessions (
  id TEXT PRIMARY KEY,
  token_hash BLOB NOT NULL UNIQUE,
  developer_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  access_token_id TEXT, -- It ends with this access token.
  address TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  messenger_id TEXT -- Who signed in, as long as the developer has that account. None with a token.
) STRICT, WITHOUT ROWID;
CREATE INDEX console_sessions_by_developer ON console_sessions (developer_id, created_at, id);
CREATE INDEX console_sessions_by_age ON console_sessions (last_seen_at);

-- Keyed so that a page of one developer's log, newest first, is one walk.
CREATE TABLE audit_entries (
  id TEXT NOT NULL,
  developer_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor TEXT NOT NULL,
  via TEXT NOT NULL,
  via_id TEXT NOT NULL,
  address TEXT NOT NULL,
  subject TEXT NOT NULL,
  details TEXT NOT NULL, -- A JSON object.
  PRIMARY KEY (developer_id, created_at, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_entries_are_not_changed BEFORE UPDATE ON audit_entries
BEGIN
  SELECT RAISE(ABORT, 'The audit log is append-only.');
END;
CREATE TRIGGER audit_entries_are_not_erased BEFORE DELETE ON audit_entries
BEGIN
  SELECT RAISE(ABORT, 'The audit log is append-only.');
END;
-- INSERT OR REPLACE erases without asking the trigger above.
CREATE TRIGGER audit_entries_are_not_replaced BEFORE INSERT ON audit_entries
WHEN EXISTS (
  SELECT 1 FROM audit_entries WHERE developer_id = NEW.developer_id AND created_at = NEW.created_at AND id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'The audit log is append-only.');
END;
