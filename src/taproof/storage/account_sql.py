"""The statements about developers, what signs them in, and their audit log, for both stores. See `sql.py`."""

from typing import Final

_DEVELOPER: Final = "d.id, d.email, d.plan, d.created_at, d.is_owner, d.messenger_id, d.messenger_name"
CREATE_DEVELOPER: Final = """
INSERT INTO developers (id, email, email_key, plan, created_at, is_owner, messenger_id, messenger_name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (email_key) DO NOTHING RETURNING id"""
READ_DEVELOPER: Final = f"SELECT {_DEVELOPER} FROM developers d WHERE d.email_key = $1"
READ_DEVELOPER_BY_MESSENGER_ID: Final = f"SELECT {_DEVELOPER} FROM developers d WHERE d.messenger_id = $1"
LIST_DEVELOPERS: Final = f"SELECT {_DEVELOPER} FROM developers d ORDER BY d.created_at, d.id"
BIND_IDENTITY: Final = "UPDATE developers SET messenger_id = $1, messenger_name = $2 WHERE id = $3"

CREATE_ACCESS_TOKEN: Final = """
INSERT INTO access_tokens (id, developer_id, name, preview, token_hash, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (
  SELECT COUNT(*) FROM access_tokens WHERE developer_id = $2 AND (expires_at IS NULL OR expires_at > $6)) < $8
RETURNING id"""
ERASE_EXPIRED_TOKENS: Final = """
DELETE FROM access_tokens WHERE developer_id = $1 AND expires_at <= $2 AND id NOT IN (
  SELECT id FROM access_tokens WHERE developer_id = $1 AND expires_at <= $2
  ORDER BY expires_at DESC, id DESC LIMIT $3)"""
READ_ACCESS_TOKEN: Final = f"""
SELECT t.id, t.developer_id, t.name, t.preview, t.created_at, t.last_used_at, t.expires_at, {_DEVELOPER}
FROM access_tokens t JOIN developers d ON d.id = t.developer_id WHERE t.token_hash = $1"""
TOUCH_ACCESS_TOKEN: Final = """
UPDATE access_tokens SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)"""
LIST_ACCESS_TOKENS: Final = """
SELECT id, developer_id, name, preview, created_at, last_used_at, expires_at
FROM access_tokens WHERE developer_id = $1 ORDER BY created_at DESC, id DESC"""
DELETE_ACCESS_TOKEN: Final = "DELETE FROM access_tokens WHERE developer_id = $1 AND id = $2 RETURNING id"

# ---- invitations

CREATE_INVITATION: Final = """
INSERT INTO invitations (id, code_hash, email, plan, is_owner, developer_id, invited_by, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id"""
_INVITATION: Final = """
SELECT id, email, plan, is_owner, developer_id, invited_by, created_at, expires_at FROM invitations"""
READ_INVITATION: Final = f"{_INVITATION} WHERE code_hash = $1 AND expires_at > $2"
LIST_INVITATIONS: Final = f"{_INVITATION} WHERE expires_at > $1 AND email <> '' ORDER BY created_at DESC, id DESC"
DELETE_INVITATION: Final = "DELETE FROM invitations WHERE id = $1 RETURNING id"
# Addresses are ASCII, so that any database's lower() does.
REPLACE_INVITATIONS: Final = """
DELETE FROM invitations
WHERE id <> $1 AND email <> '' AND (developer_id = $2 OR lower(email) = lower($3))"""
"""The others for the same developer or the same address."""
SETTLE_INVITATIONS: Final = """
DELETE FROM invitations WHERE id = $1 OR developer_id = $2 OR lower(email) = lower($3) OR email = ''"""
"""The one that was taken up, all others for that developer or that address, and those for a first developer."""
JUDGE_INVITATION: Final = """
SELECT i.id, i.developer_id, CASE
  WHEN i.email = '' AND EXISTS (SELECT 1 FROM developers) THEN 'not_first'
  WHEN i.developer_id IS NULL AND EXISTS (SELECT 1 FROM developers d WHERE d.email_key = $1) THEN 'email_taken'
  WHEN EXISTS (SELECT 1 FROM developers d WHERE d.messenger_id = $2 AND d.id <> COALESCE(i.developer_id, ''))
    THEN 'identity_taken'
  ELSE 'accepted' END,
  EXISTS (SELECT 1 FROM developers d WHERE d.id = i.developer_id AND d.messenger_id = $2)
FROM invitations i WHERE i.code_hash = $3 AND i.expires_at > $4"""
"""What becomes of taking up an invitation, and whether its developer has this messenger account already."""

# ---- the console's sessions

CREATE_CONSOLE_SESSION: Final = """
INSERT INTO console_sessions (id, token_hash, developer_id, created_at, last_seen_at, access_token_id, address,
  user_agent, messenger_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id"""
_CONSOLE_SESSION: Final = (
    "s.id, s.developer_id, s.created_at, s.last_seen_at, s.access_token_id, s.address, s.user_agent, s.messenger_id"
)
_LIVES: Final = """s.last_seen_at > $2
  AND (s.access_token_id IS NOT NULL OR s.messenger_id IS NOT DISTINCT FROM d.messenger_id)
  AND (s.access_token_id IS NULL OR EXISTS (
    SELECT 1 FROM access_tokens t WHERE t.id = s.access_token_id AND t.developer_id = s.developer_id
      AND (t.expires_at IS NULL OR t.expires_at > $3)))"""
READ_CONSOLE_SESSION: Final = f"""
SELECT {_CONSOLE_SESSION}, {_DEVELOPER} FROM console_sessions s JOIN developers d ON d.id = s.developer_id
WHERE s.token_hash = $1 AND {_LIVES}"""
TOUCH_CONSOLE_SESSION: Final = """
UPDATE console_sessions SET last_seen_at = $1 WHERE id = $2 AND last_seen_at < $1"""
LIST_CONSOLE_SESSIONS: Final = f"""
SELECT {_CONSOLE_SESSION} FROM console_sessions s JOIN developers d ON d.id = s.developer_id
WHERE s.developer_id = $1 AND {_LIVES}
ORDER BY s.created_at DESC, s.id DESC"""
TRIM_CONSOLE_SESSIONS: Final = """
DELETE FROM console_sessions WHERE developer_id = $1 AND id <> $2 AND id NOT IN (
  SELECT id FROM console_sessions WHERE developer_id = $1 AND id <> $2
  ORDER BY last_seen_at DESC, id DESC LIMIT $3)"""
DELETE_CONSOLE_SESSION: Final = "DELETE FROM console_sessions WHERE developer_id = $1 AND id = $2 RETURNING id"
DELETE_CONSOLE_SESSIONS: Final = "DELETE FROM console_sessions WHERE developer_id = $1 RETURNING id"

# ---- the audit log: entries are added, and erased when they are old

ADD_AUDIT_ENTRY: Final = """
INSERT INTO audit_entries (id, developer_id, created_at, action, actor, via, via_id, address, subject, details)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"""
# What is about to be erased is not shown any more: the log ends where the note of its erasure says.
LIST_AUDIT_ENTRIES: Final = """
SELECT id, developer_id, created_at, action, actor, via, via_id, address, subject, details FROM audit_entries
WHERE developer_id = $1 AND (created_at, id) < ($2, $3)
  AND created_at >= COALESCE((SELECT p.before FROM audit_purges p WHERE p.developer_id = $1), 0)
ORDER BY created_at DESC, id DESC LIMIT $4"""
READ_AUDIT_PURGE: Final = "SELECT before, entries, purged_at FROM audit_purges WHERE developer_id = $1"
FIND_OLD_ENTRIES: Final = """
SELECT developer_id, created_at, id FROM audit_entries WHERE created_at < $1 ORDER BY created_at LIMIT $2"""
# Only ever further: a shorter time that is set for a while takes nothing back.
RECORD_AUDIT_PURGE: Final = """
INSERT INTO audit_purges (developer_id, before, entries, purged_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (developer_id) DO UPDATE SET entries = audit_purges.entries + excluded.entries,
  purged_at = excluded.purged_at,
  before = CASE WHEN excluded.before > audit_purges.before THEN excluded.before ELSE audit_purges.before END"""
ERASE_AUDIT_ENTRY: Final = "DELETE FROM audit_entries WHERE developer_id = $1 AND created_at = $2 AND id = $3"
