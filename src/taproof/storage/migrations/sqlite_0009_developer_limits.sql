-- Lists across a developer's projects, and the audit log's retention.

-- Names are read by the index alone: a row of this table holds up to 8 KB of origins and addresses.
DROP INDEX projects_by_developer;
CREATE INDEX projects_by_developer ON projects (developer_id, created_at, id, name);

-- What was erased of each developer's audit log: one row each, so that it does not grow with what it tells of.
CREATE TABLE audit_purges (
  developer_id TEXT PRIMARY KEY,
  before INTEGER NOT NULL, -- All entries made before this time are erased, or about to be.
  entries INTEGER NOT NULL, -- How many were erased, ever.
  purged_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_entries_by_age ON audit_entries (created_at);
-- An entry is erased only after its erasure was written down.
DROP TRIGGER audit_entries_are_not_erased;
CREATE TRIGGER audit_entries_are_not_erased BEFORE DELETE ON audit_entries
WHEN NOT EXISTS (SELECT 1 FROM audit_purges p WHERE p.developer_id = OLD.developer_id AND p.before > OLD.created_at)
BEGIN
  SELECT RAISE(ABORT, 'The audit log is append-only.');
END;
