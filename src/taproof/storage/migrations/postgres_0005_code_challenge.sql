-- A session may be bound to the client that made it (RFC 7636), which may then read its answer again for a minute.
-- Nodes of the older release go on working: they name no new column. They do not ask for a verifier, so a session is
-- bound for certain once the last of them has ended.

-- Sessions before projects, as every writer takes them.
ALTER TABLE sessions
  -- The SHA-256 of the verifier; null when the session is not bound.
  ADD COLUMN code_challenge BYTEA,
  -- What the project's `secrets_version` was when the session was used: as long as it still is, the proof that is made
  -- again is the same one.
  ADD COLUMN secrets_version INTEGER;
-- Counts the changes of the webhook secret that proofs are signed with.
ALTER TABLE projects ADD COLUMN secrets_version INTEGER NOT NULL DEFAULT 0;
