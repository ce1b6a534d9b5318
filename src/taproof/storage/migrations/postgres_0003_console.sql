-- The console: owners, the messenger accounts that sign in, invitations, browsers that are signed in, and the audit log.
-- Nodes of the older release go on working: they name no new column, and each of these is filled by itself.

ALTER TABLE developers
  ADD COLUMN is_owner INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN messenger_id TEXT COLLATE "C",
  ADD COLUMN messenger_name TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX developers_by_messenger_id ON developers (messenger_id);
-- An installation has an owner; where nobody was asked it is who came first.
UPDATE developers SET is_owner = 1 WHERE id = (SELECT id FROM developers ORDER BY created_at, id LIMIT 1);

CREATE TABLE invitations (
  id TEXT COLLATE "C" PRIMARY KEY,
  code_hash BYTEA NOT NULL UNIQUE,
  email TEXT NOT NULL, -- Empty for the first developer, who says theirs.
  plan TEXT NOT NULL,
  is_owner INTEGER NOT NULL,
  developer_id TEXT COLLATE "C", -- Who gets another messenger account; none to make a new developer.
  invited_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX invitations_by_expiry ON invitations (expires_at);

CREATE TABLE console_sessions (
  id TEXT COLLATE "C" PRIMARY KEY,
  token_hash BYTEA NOT NULL UNIQUE,
  developer_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  access_token_id TEXT COLLATE "C", -- It ends with this access token.
  address TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  messenger_id TEXT COLLATE "C" -- Who signed in, as long as the developer has that account. None with a token.
);
CREATE INDEX console_sessions_by_developer ON console_sessions (developer_id, created_at, id);
CREATE INDEX console_sessions_by_age ON console_sessions (last_seen_at);

-- Keyed so that a page of one developer's log, newest first, is one walk.
CREATE TABLE audit_entries (
  id TEXT COLLATE "C" NOT NULL,
  developer_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  action TEXT NOT NULL,
  actor TEXT NOT NULL,
  via TEXT NOT NULL,
  via_id TEXT NOT NULL,
  address TEXT NOT NULL,
  subject TEXT NOT NULL,
  details TEXT NOT NULL, -- A JSON object.
  PRIMARY KEY (developer_id, created_at, id)
);
CREATE FUNCTION refuse_to_change_audit_log() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'The audit log is append-only.';
END $$;
CREATE TRIGGER audit_entries_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit_log();
