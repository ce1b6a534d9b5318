"""The statements about the bots of projects, for both stores."""

from typing import Final

_BOT: Final = "SELECT id, bot_id, bot_username, encrypted_bot_token, bot_broken_at FROM projects"
FIND_BOT_ELSEWHERE: Final = "SELECT id, bot_broken_at FROM projects WHERE bot_id = $1 AND id <> $2"
SET_PROJECT_BOT: Final = """
UPDATE projects SET bot_id = $1, bot_username = $2, encrypted_bot_token = $3, bot_broken_at = $4
WHERE developer_id = $5 AND id = $6 RETURNING id"""
REMOVE_PROJECT_BOT: Final = """
UPDATE projects SET bot_id = NULL, bot_username = NULL, encrypted_bot_token = NULL, bot_broken_at = NULL
WHERE developer_id = $1 AND id = $2 AND bot_username IS NOT NULL RETURNING id"""
# `bot_username` and `bot_broken_at` stay, so that no other bot takes its place before the developer says so.
LOSE_PROJECT_BOT: Final = """
UPDATE projects SET bot_id = NULL, encrypted_bot_token = NULL
WHERE id = $1 AND bot_id = $2 AND bot_broken_at IS NOT NULL RETURNING id"""
POSTGRES_HOLD_PROJECTS: Final = "SELECT FROM projects WHERE id IN ($1, $2) ORDER BY id FOR UPDATE"
"""On PostgreSQL, before either is changed: see `postgres/sql.py` for the order."""
LIST_PROJECT_BOTS: Final = f"{_BOT} WHERE bot_id IS NOT NULL ORDER BY bot_id"
READ_PROJECT_BOT: Final = f"{_BOT} WHERE bot_id = $1"
MARK_BOT_BROKEN: Final = """
UPDATE projects SET bot_broken_at = $1 WHERE id = $2 AND encrypted_bot_token = $3 AND bot_broken_at IS NULL
RETURNING id"""
RENAME_BOT: Final = "UPDATE projects SET bot_username = $1 WHERE bot_id = $2 AND bot_username <> $1 RETURNING id"
