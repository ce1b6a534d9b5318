"""The statements about what users say of projects and sessions, for both stores. See `sql.py`."""

from typing import Final

# Later than whatever else the user was asked for in this bot, also where the clocks of two nodes are not the same.
ASK_FOR_PHONE: Final = """
INSERT INTO phone_requests (day, token_hash, session_id, messenger_id, bot_id, encrypted_token, asked_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, (
  SELECT CASE WHEN MAX(o.asked_at) >= $7 THEN MAX(o.asked_at) + 1 ELSE $7 END FROM phone_requests o
  WHERE o.messenger_id = $4 AND o.bot_id = $5 AND NOT (o.day = $1 AND o.token_hash = $2)), $8
WHERE $1 = $1 ON CONFLICT (day, token_hash) DO UPDATE SET asked_at = excluded.asked_at
WHERE phone_requests.asked_at < excluded.asked_at"""
_PHONE_REQUEST: Final = """
SELECT r.day, r.token_hash, r.session_id, r.messenger_id, r.bot_id, r.encrypted_token, r.asked_at, r.expires_at
FROM phone_requests r"""
READ_PHONE_REQUEST: Final = f"{_PHONE_REQUEST} WHERE r.day = $1 AND r.token_hash = $2"
# Whatever became of it: a contact that comes once more, or too late, must not go to another one that still waits.
FIND_PHONE_REQUEST: Final = f"""{_PHONE_REQUEST}
WHERE r.messenger_id = $1 AND r.bot_id = $2 ORDER BY r.asked_at DESC, r.session_id DESC LIMIT 1"""
# From one project to the next by the index, however often the account signed in to each.
LIST_PROJECTS_OF_USER: Final = """
WITH RECURSIVE found (id) AS (
  SELECT (SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 ORDER BY s.project_id LIMIT 1)
  UNION ALL
  SELECT (SELECT s.project_id FROM sessions s WHERE s.messenger_id = $1 AND s.project_id > f.id
    ORDER BY s.project_id LIMIT 1)
  FROM found f WHERE f.id IS NOT NULL
)
SELECT f.id FROM found f WHERE f.id IS NOT NULL LIMIT $2"""
BLOCK_PROJECT: Final = """
INSERT INTO blocks (messenger_id, project_id, created_at) SELECT $1, $2, $3
WHERE EXISTS (SELECT 1 FROM projects WHERE id = $2) ON CONFLICT (messenger_id, project_id) DO NOTHING
RETURNING project_id"""
UNBLOCK_PROJECT: Final = "DELETE FROM blocks WHERE messenger_id = $1 AND project_id = $2 RETURNING project_id"
IS_BLOCKED: Final = "SELECT 1 FROM blocks WHERE messenger_id = $1 AND project_id = $2"
LIST_BLOCKS: Final = """
SELECT b.project_id, p.name FROM blocks b JOIN projects p ON p.id = b.project_id
WHERE b.messenger_id = $1 AND (CAST($2 AS TEXT) IS NULL OR b.project_id = $2)
ORDER BY b.created_at DESC, b.project_id LIMIT $3"""
ERASE_BLOCKS: Final = "DELETE FROM blocks WHERE project_id = $1"
ANY_OLD_PHONE_REQUEST: Final = "SELECT 1 FROM phone_requests WHERE expires_at <= $1 LIMIT 1"
PURGE_PHONE_REQUESTS: Final = """
DELETE FROM phone_requests WHERE (day, token_hash) IN
  (SELECT day, token_hash FROM phone_requests WHERE expires_at <= $1 LIMIT $2) RETURNING day"""
