"""Transactional checks that the acting credential and the sign-in behind a change are still valid."""

from typing import Any, Final

from taproof.contract.member import Role
from taproof.core.accounts import AuditEntry
from taproof.core.errors import AccessDenied
from taproof.core.roles import ProjectAction, require_action
from taproof.core.sessions import DeveloperSignIn
from taproof.storage.queries.database import Database
from taproof.storage.queries.transaction import Transaction

FIND_DEVELOPER: Final = "SELECT 1 FROM developers WHERE id = $1"
"""Locks a developer, so that limits are enforced: if two calls add an object to one developer, the second call counts
after the first commits."""

FIND_ROLE: Final = "SELECT role FROM project_members WHERE project_id = $1 AND developer_id = $2"
"""Finds a member's role. Its lock keeps the membership unchanged until the transaction ends."""

LOCK_MEMBERS: Final = "SELECT developer_id, role FROM project_members WHERE project_id = $1 ORDER BY developer_id"
ADD_MEMBER: Final = """
INSERT INTO project_members (project_id, developer_id, role, created_at, invited_by)
VALUES ($1, $2, $3, $4, $5) ON CONFLICT (project_id, developer_id) DO NOTHING RETURNING project_id"""
SET_OWNER: Final = """
INSERT INTO project_members (project_id, developer_id, role, created_at, invited_by) VALUES ($1, $2, 'owner', $3, '')
ON CONFLICT (project_id, developer_id) DO UPDATE SET role = 'owner'"""
DELETE_MEMBER: Final = "DELETE FROM project_members WHERE project_id = $1 AND developer_id = $2"
DELETE_ORIGINS: Final = "DELETE FROM member_origins WHERE project_id = $1 AND developer_id = $2"
DELETE_MEMBERS: Final = "DELETE FROM project_members WHERE project_id = $1"
DELETE_ALL_ORIGINS: Final = "DELETE FROM member_origins WHERE project_id = $1"
DELETE_MEMBER_INVITATIONS: Final = "DELETE FROM member_invitations WHERE project_id = $1"
DELETE_MEMBER_INVITATIONS_OF: Final = "DELETE FROM member_invitations WHERE project_id = $1 AND inviter_id = $2"

SIGN_IN_STANDS: Final = "SELECT 1 FROM sessions WHERE day = $1 AND token_hash = $2 AND reported_at IS NULL"
"""Finds a sign-in that was not reported."""
SIGN_IN_IS_OF_DEVELOPER: Final = """
SELECT 1 FROM sessions s JOIN developers d ON d.messenger_id = s.messenger_id
WHERE s.day = $1 AND s.token_hash = $2 AND d.id = $3"""
"""Checks that the account that confirmed a sign-in is still linked to this developer."""
ADD_AUDIT_ENTRY: Final = """
INSERT INTO audit_entries (id, developer_id, created_at, action, actor, via, via_id, address, subject, details,
  project_id)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 WHERE CASE $6
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
        AccessDenied: it was reported or no longer exists, or its account is no longer linked to the developer.
    """
    if sign_in is None:
        return
    if not await transaction.lock(SIGN_IN_STANDS, *sign_in.key, mode="FOR SHARE"):
        raise AccessDenied
    if developer_id is not None and not await transaction.fetch(SIGN_IN_IS_OF_DEVELOPER, *sign_in.key, developer_id):
        raise AccessDenied


async def require_role(transaction: Transaction, developer_id: str, project_id: str, action: ProjectAction) -> bool:
    """Check a developer's role in a project until the transaction ends; return whether they are a member.

    A change or removal of this member waits. The lock is exclusive: PostgreSQL lets shared locks overtake a waiting
    removal, so a member who makes one change after another could prevent it.

    Raises:
        InsufficientRole: the member's role does not permit the action.
    """
    found = await transaction.lock(FIND_ROLE, project_id, developer_id)
    for (role,) in found:
        require_action(role, action)
    return bool(found)


async def lock_members(transaction: Transaction, project_id: str) -> dict[str, Role]:
    """Lock all members of a project, so that no other change of its members runs; return their roles by id."""
    await transaction.lock(LOCK_MEMBERS, project_id)
    # Again, because a statement does not find the members who joined while it waited.
    return {row[0]: row[1] for row in await transaction.lock(LOCK_MEMBERS, project_id)}


async def end_membership(transaction: Transaction, project_id: str, member_id: str) -> None:
    """Remove a member of a project whose members are locked, and end the member's invitations."""
    for statement in (DELETE_MEMBER, DELETE_ORIGINS, DELETE_MEMBER_INVITATIONS_OF):
        await transaction.fetch(statement, project_id, member_id)


async def change_as_member(
    database: Database,
    member: tuple[str, str],
    action: ProjectAction,
    statement: str,
    *values: Any,
    entry: AuditEntry | None,
) -> list[Any]:
    """Return the rows that a statement changed for a member, the ids of a developer and a project. See `require_role`.

    If there are any, add `entry` to the audit log. A developer who is no member changes nothing.
    """

    async def change(transaction: Transaction) -> list[Any]:
        if not await require_role(transaction, *member, action):
            return []
        changed = await transaction.fetch(statement, *values)
        if changed:
            await transaction.add_entry(entry)
        return changed

    return await database.in_transaction(change)
