"""Checks in a transaction that the credential and the sign-in that it depends on still stand, and holds them."""

from typing import Final

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.errors import AccessDenied
from taproof.core.model import DeveloperSignIn
from taproof.storage.queries import rights as queries
from taproof.storage.rows import access_ended, entry_values

HOLD_DEVELOPER: Final = "SELECT FROM developers WHERE id = $1 FOR UPDATE"
"""Of those who add something to one developer, of which there may be so many, the second counts after the first."""
HOLD_SIGN_IN: Final = f"{queries.SIGN_IN_STANDS} FOR SHARE"
"""A report of this sign-in waits until what is created with it is committed, and then finds it."""
# A locked row that is deleted meanwhile is not found, so whoever acts while their credential ends changes nothing.
ADD_AUDIT_ENTRY: Final = """
WITH token AS MATERIALIZED (
  SELECT 1 FROM access_tokens t WHERE $6 = 'access_token' AND t.id = $7 AND t.developer_id = $2
    AND (t.expires_at IS NULL OR t.expires_at > $3) FOR KEY SHARE
), console AS MATERIALIZED (
  SELECT 1 FROM console_sessions s WHERE $6 = 'console' AND s.id = $7 AND s.developer_id = $2
    AND (s.expires_at IS NULL OR s.expires_at > $3) FOR KEY SHARE
)
INSERT INTO audit_entries (id, developer_id, created_at, action, actor, via, via_id, address, subject, details)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
WHERE $6 NOT IN ('access_token', 'console') OR EXISTS (SELECT 1 FROM token) OR EXISTS (SELECT 1 FROM console)
RETURNING id"""
"""As `queries.rights.ADD_AUDIT_ENTRY`; the acting credential cannot end before this transaction does."""


async def add_entry(connection: asyncpg.Connection, entry: AuditEntry | None) -> None:
    """Add an entry to the audit log, in the transaction of the change that it tells of.

    Raises:
        InvalidAccessToken, SignedOut: the credential that acts has ended, so the transaction must not be committed.
    """
    if entry is not None and not await connection.fetch(ADD_AUDIT_ENTRY, *entry_values(entry)):
        raise access_ended(entry)


async def require_sign_in(
    connection: asyncpg.Connection, sign_in: DeveloperSignIn | None, developer_id: str | None = None
) -> None:
    """Refuse what comes of a sign-in that was reported, or that does not sign in the developer who is named.

    Raises:
        AccessDenied: it was reported, is not there any more, or its account signs that developer in no more.
    """
    if sign_in is None:
        return
    if not await connection.fetch(HOLD_SIGN_IN, *sign_in.key):
        raise AccessDenied
    if developer_id is not None and not await connection.fetch(
        queries.SIGN_IN_IS_OF_DEVELOPER, *sign_in.key, developer_id
    ):
        raise AccessDenied
