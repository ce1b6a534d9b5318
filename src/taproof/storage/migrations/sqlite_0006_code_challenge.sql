-- A session may be bound to the client that made it (RFC 7636), which may then read its answer again for a minute.

-- The SHA-256 of the verifier; null when the session is not bound.
ALTER TABLE sessions ADD COLUMN code_challenge BLOB;
-- What the project's `secrets_version` was when the session was used: as long as it still is, the proof that is made
-- again is the same one.
ALTER TABLE sessions ADD COLUMN secrets_version INTEGER;
-- Counts the changes of the webhook secret that proofs are signed with.
ALTER TABLE projects ADD COLUMN secrets_version INTEGER NOT NULL DEFAULT 0;
