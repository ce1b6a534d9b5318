-- What credentials may do, and what they come from.

ALTER TABLE access_tokens
  ADD COLUMN scopes TEXT NOT NULL DEFAULT 'read,write,tokens',
  ADD COLUMN parent_id TEXT COLLATE "C", -- The access token that it was created with.
  -- The session of the messenger sign-in that it comes from.
  ADD COLUMN sign_in TEXT COLLATE "C";
ALTER TABLE console_sessions
  ADD COLUMN scopes TEXT NOT NULL DEFAULT 'read,write,tokens',
  ADD COLUMN expires_at BIGINT,
  ADD COLUMN sign_in TEXT COLLATE "C";
ALTER TABLE invitations
  ADD COLUMN inviter_id TEXT COLLATE "C", -- None when the operator made it.
  ADD COLUMN sign_in TEXT COLLATE "C";
-- Those of the invitation that a developer came by.
ALTER TABLE developers
  ADD COLUMN inviter_id TEXT COLLATE "C",
  ADD COLUMN sign_in TEXT COLLATE "C",
  ADD COLUMN bound_by TEXT COLLATE "C"; -- The sign-in that bound the messenger account.
CREATE INDEX developers_by_inviter ON developers (inviter_id) WHERE inviter_id IS NOT NULL;
CREATE INDEX developers_by_binding ON developers (bound_by) WHERE bound_by IS NOT NULL;
CREATE INDEX invitations_by_inviter ON invitations (inviter_id) WHERE inviter_id IS NOT NULL;
CREATE INDEX invitations_by_sign_in ON invitations (sign_in) WHERE sign_in IS NOT NULL;
CREATE INDEX developers_by_sign_in ON developers (sign_in) WHERE sign_in IS NOT NULL;
CREATE INDEX access_tokens_by_sign_in ON access_tokens (sign_in) WHERE sign_in IS NOT NULL;
CREATE INDEX console_sessions_by_sign_in ON console_sessions (sign_in) WHERE sign_in IS NOT NULL;
