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
INSERT INTO access_tokens (id, developer_id, name, preview, token_hash, created_at, expires_at, scopes, parent_id,
  sign_in)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 WHERE (
  SELECT COUNT(*) FROM access_tokens WHERE developer_id = $2 AND (expires_at IS NULL OR expires_at > $6)) < $11
RETURNING id"""
ERASE_EXPIRED_TOKENS: Final = """
DELETE FROM access_tokens WHERE developer_id = $1 AND expires_at <= $2 AND id NOT IN (
  SELECT id FROM access_tokens WHERE developer_id = $1 AND expires_at <= $2
  ORDER BY expires_at DESC, id DESC LIMIT $3)"""
_TOKEN: Final = """t.id, t.developer_id, t.name, t.preview, t.created_at, t.last_used_at, t.expires_at, t.scopes,
  t.parent_id, t.sign_in"""
READ_ACCESS_TOKEN: Final = f"""
SELECT {_TOKEN}, {_DEVELOPER}
FROM access_tokens t JOIN developers d ON d.id = t.developer_id WHERE t.token_hash = $1"""
TOUCH_ACCESS_TOKEN: Final = """
UPDATE access_tokens SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)"""
LIST_ACCESS_TOKENS: Final = f"""
SELECT {_TOKEN} FROM access_tokens t WHERE t.developer_id = $1 ORDER BY t.created_at DESC, t.id DESC"""
READ_ENDED_TOKEN: Final = (
    "SELECT id, developer_id, name, preview FROM access_tokens WHERE developer_id = $1 AND id = $2"
)
DELETE_ACCESS_TOKEN: Final = "DELETE FROM access_tokens WHERE developer_id = $1 AND id = $2"
FIND_ACCESS_TOKENS_CREATED: Final = """
WITH RECURSIVE created (id) AS (
  SELECT t.id FROM access_tokens t WHERE t.developer_id = $1 AND t.parent_id = $2
  UNION SELECT t.id FROM created c JOIN access_tokens t ON t.parent_id = c.id AND t.developer_id = $1
)
SELECT id, developer_id, name, preview FROM access_tokens WHERE id IN (SELECT id FROM created)
ORDER BY created_at, id"""
"""Those that were created with a token, and with these in turn."""
ADOPT_ACCESS_TOKENS: Final = """
UPDATE access_tokens SET parent_id = (SELECT p.parent_id FROM access_tokens p WHERE p.id = $1)
WHERE parent_id = $1 AND developer_id = $2"""
"""The tokens that a token created become those of its own parent."""

# ---- invitations

CREATE_INVITATION: Final = """
INSERT INTO invitations (id, code_hash, email, plan, is_owner, developer_id, invited_by, created_at, expires_at,
  inviter_id, sign_in)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id"""
_INVITATION: Final = """
SELECT id, email, plan, is_owner, developer_id, invited_by, created_at, expires_at, inviter_id, sign_in
FROM invitations"""
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

LINK_DEVELOPER: Final = """
UPDATE developers SET bound_by = $1,
  inviter_id = (SELECT i.inviter_id FROM invitations i WHERE i.id = $2),
  sign_in = (SELECT i.sign_in FROM invitations i WHERE i.id = $2)
WHERE id = $3"""
"""Notes what a developer comes from, and the sign-in that bound the messenger account."""

# ---- the console's sessions

CREATE_CONSOLE_SESSION: Final = """
INSERT INTO console_sessions (id, token_hash, developer_id, created_at, last_seen_at, access_token_id, address,
  user_agent, messenger_id, scopes, expires_at, sign_in)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 WHERE
  CASE WHEN CAST($6 AS TEXT) IS NULL
    THEN EXISTS (SELECT 1 FROM developers d WHERE d.id = $3 AND d.messenger_id IS NOT DISTINCT FROM $9)
    ELSE EXISTS (SELECT 1 FROM access_tokens t WHERE t.id = $6 AND t.developer_id = $3
      AND (t.expires_at IS NULL OR t.expires_at > $4)) END
RETURNING id"""
_CONSOLE_SESSION: Final = (
    "s.id, s.developer_id, s.created_at, s.last_seen_at, s.access_token_id, s.address, s.user_agent, s.messenger_id, "
    "s.scopes, s.expires_at, s.sign_in"
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
FIND_CONSOLE_SESSION: Final = "SELECT 1 FROM console_sessions WHERE developer_id = $1 AND id = $2"
ANY_CONSOLE_SESSION: Final = "SELECT 1 FROM console_sessions WHERE developer_id = $1 LIMIT 1"
DELETE_CONSOLE_SESSIONS_OF_TOKEN: Final = (
    "DELETE FROM console_sessions WHERE developer_id = $1 AND access_token_id = $2"
)
DELETE_CONSOLE_SESSION: Final = "DELETE FROM console_sessions WHERE developer_id = $1 AND id = $2 RETURNING id"
DELETE_CONSOLE_SESSIONS: Final = "DELETE FROM console_sessions WHERE developer_id = $1 RETURNING id"

# ---- what the report of a sign-in ends

SIGN_IN_STANDS: Final = "SELECT 1 FROM sessions WHERE day = $1 AND token_hash = $2 AND reported_at IS NULL"
"""Finds a sign-in that nobody has reported."""
SIGN_IN_IS_OF_DEVELOPER: Final = """
SELECT 1 FROM sessions s JOIN developers d ON d.messenger_id = s.messenger_id
WHERE s.day = $1 AND s.token_hash = $2 AND d.id = $3"""
"""Tells whether the account that confirmed a sign-in signs this developer in, still."""
FIND_DEVELOPER_OF_SIGN_IN: Final = f"""
SELECT {_DEVELOPER} FROM developers d WHERE d.id IN (
  SELECT t.developer_id FROM access_tokens t WHERE t.sign_in = $1
  UNION SELECT s.developer_id FROM console_sessions s WHERE s.sign_in = $1
  UNION SELECT i.inviter_id FROM invitations i WHERE i.sign_in = $1
  UNION SELECT n.inviter_id FROM developers n WHERE n.sign_in = $1
  UNION SELECT b.id FROM developers b WHERE b.bound_by = $1
  UNION SELECT m.id FROM developers m WHERE m.messenger_id = $2)
ORDER BY CASE WHEN d.messenger_id = $2 THEN 1 ELSE 0 END LIMIT 1"""
"""The developer who has something that came of a sign-in, whatever account signs them in now; without one, the
developer whom the account signs in."""
FIND_INVITED_DEVELOPERS: Final = """
WITH RECURSIVE invited (id) AS (
  SELECT d.id FROM developers d WHERE d.inviter_id = $1 AND (d.sign_in = $2 OR (d.sign_in >= substr($2, 1, 12)
    AND EXISTS (SELECT 1 FROM developers b WHERE b.id = $1 AND b.bound_by = $2))) AND d.id <> $1
  UNION SELECT d.id FROM invited i JOIN developers d ON d.inviter_id = i.id AND d.id <> $1
)
SELECT id FROM invited ORDER BY id"""
"""The developers who came by an invitation of this sign-in, and by invitations of theirs in turn; of any later sign-in
too, if this one bound the account that signs in."""
UNBIND_SIGN_IN: Final = """
UPDATE developers SET messenger_id = NULL, messenger_name = '', bound_by = NULL WHERE id = $1 AND bound_by = $2
RETURNING id"""
SHUT_OUT_DEVELOPER: Final = """
UPDATE developers SET messenger_id = NULL, messenger_name = '', bound_by = NULL, is_owner = 0 WHERE id = $1"""
DELETE_ACCESS_TOKENS_OF_SIGN_IN: Final = """
DELETE FROM access_tokens WHERE developer_id = $1 AND sign_in >= substr($2, 1, 12)
RETURNING id, developer_id, name, preview"""
"""Also of later sign-ins: the first 12 characters of a session's id are its prefix and the time of its creation."""
DELETE_ACCESS_TOKENS: Final = """
DELETE FROM access_tokens WHERE developer_id = $1 RETURNING id, developer_id, name, preview"""
DELETE_INVITATIONS_OF_SIGN_IN: Final = """
DELETE FROM invitations WHERE inviter_id = $1 AND (sign_in = $2 OR (sign_in >= substr($2, 1, 12)
  AND EXISTS (SELECT 1 FROM developers b WHERE b.id = $1 AND b.bound_by = $2))) RETURNING id"""
DELETE_INVITATIONS_OF: Final = "DELETE FROM invitations WHERE inviter_id = $1 RETURNING id"

# ---- the audit log: entries are added, and erased when they are old

ADD_AUDIT_ENTRY: Final = """
INSERT INTO audit_entries (id, developer_id, created_at, action, actor, via, via_id, address, subject, details)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 WHERE CASE $6
  WHEN 'access_token' THEN EXISTS (SELECT 1 FROM access_tokens t
    WHERE t.id = $7 AND t.developer_id = $2 AND (t.expires_at IS NULL OR t.expires_at > $3))
  WHEN 'console' THEN EXISTS (SELECT 1 FROM console_sessions s
    WHERE s.id = $7 AND s.developer_id = $2 AND (s.expires_at IS NULL OR s.expires_at > $3))
  ELSE TRUE END
RETURNING id"""
"""Adds an entry if the credential that acts still exists: without it nothing that the entry tells of is done."""
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
