-- Lists across a developer's projects, and the audit log's retention.

DROP INDEX projects_by_developer;
CREATE INDEX projects_by_developer ON projects (developer_id, created_at, id, name);

-- What was erased of each developer's audit log: one row each, so that it does not grow with what it tells of.
CREATE TABLE audit_purges (
  developer_id TEXT COLLATE "C" PRIMARY KEY,
  before BIGINT NOT NULL, -- All entries made before this time are erased, or about to be.
  entries BIGINT NOT NULL, -- How many were erased, ever.
  purged_at BIGINT NOT NULL
);
CREATE INDEX audit_entries_by_age ON audit_entries (created_at);
-- An entry is erased only after its erasure was written down.
DROP TRIGGER audit_entries_are_append_only ON audit_entries;
CREATE TRIGGER audit_entries_are_append_only BEFORE UPDATE OR TRUNCATE ON audit_entries
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit_log();
CREATE FUNCTION refuse_to_erase_audit_entry() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM audit_purges p WHERE p.developer_id = OLD.developer_id AND p.before > OLD.created_at) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'The audit log is append-only.';
END $$;
CREATE TRIGGER audit_entries_are_not_erased BEFORE DELETE ON audit_entries
FOR EACH ROW EXECUTE FUNCTION refuse_to_erase_audit_entry();
