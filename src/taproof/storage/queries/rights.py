"""Transactional checks that the acting credential and the sign-in behind a change are still valid."""

from typing import Final

from taproof.core.errors import AccessDenied
from taproof.core.model import DeveloperSignIn
from taproof.storage.queries.transaction import Transaction

FIND_DEVELOPER: Final = "SELECT 1 FROM developers WHERE id = $1"
"""Locks a developer, so that limits are enforced: if two calls add an object to one developer, the second call counts
after the first commits."""

SIGN_IN_STANDS: Final = "SELECT 1 FROM sessions WHERE day = $1 AND token_hash = $2 AND reported_at IS NULL"
"""Finds a sign-in that was not reported."""
SIGN_IN_IS_OF_DEVELOPER: Final = """
SELECT 1 FROM sessions s JOIN developers d ON d.messenger_id = s.messenger_id
WHERE s.day = $1 AND s.token_hash = $2 AND d.id = $3"""
"""Checks that the account that confirmed a sign-in is still linked to this developer."""
ADD_AUDIT_ENTRY: Final = """
INSERT INTO audit_entries (id, developer_id, created_at, action, actor, via, via_id, address, subject, details)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 WHERE CASE $6
  WHEN 'access_token' THEN EXISTS (SELECT 1 FROM access_tokens t
    WHERE t.id = $7 AND t.developer_id = $2 AND (t.expires_at IS NULL OR t.expires_at > $3))
  WHEN 'console' THEN EXISTS (SELECT 1 FROM console_sessions s
    WHERE s.id = $7 AND s.developer_id = $2 AND (s.expires_at IS NULL OR s.expires_at > $3))
  ELSE TRUE END
RETURNING id"""
"""Adds an entry if the acting credential still exists. Otherwise the change that the entry records must not happen."""


async def require_sign_in(
    transaction: Transaction, sign_in: DeveloperSignIn | None, developer_id: str | None = None
) -> None:
    """Refuse a change based on a sign-in that was reported or that does not sign in the given developer.

    A report of this sign-in waits until the change commits, and then sees its results.

    Raises:
        AccessDenied: the sign-in was reported or no longer exists, or its account is no longer linked to the developer.
    """
    if sign_in is None:
        return
    if not await transaction.lock(SIGN_IN_STANDS, *sign_in.key, mode="FOR SHARE"):
        raise AccessDenied
    if developer_id is not None and not await transaction.fetch(SIGN_IN_IS_OF_DEVELOPER, *sign_in.key, developer_id):
        raise AccessDenied
