"""Developers and invitations."""

from typing import Final

from taproof.core.accounts import AuditEntry, Developer, Invitation
from taproof.storage.queries.executor import AnyExecutor, Queries
from taproof.storage.rows import developer_from, developer_values, invitation_from

DEVELOPER_COLUMNS: Final = "d.id, d.email, d.plan, d.created_at, d.is_owner, d.messenger_id, d.messenger_name"
CREATE_DEVELOPER: Final = """
INSERT INTO developers (id, email, email_key, plan, created_at, is_owner, messenger_id, messenger_name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (email_key) DO NOTHING RETURNING id"""
READ_DEVELOPER: Final = f"SELECT {DEVELOPER_COLUMNS} FROM developers d WHERE d.email_key = $1"
READ_DEVELOPER_BY_MESSENGER_ID: Final = f"SELECT {DEVELOPER_COLUMNS} FROM developers d WHERE d.messenger_id = $1"
LIST_DEVELOPERS: Final = f"SELECT {DEVELOPER_COLUMNS} FROM developers d ORDER BY d.created_at, d.id"
BIND_IDENTITY: Final = "UPDATE developers SET messenger_id = $1, messenger_name = $2 WHERE id = $3"

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

# ---- the report of a sign-in

FIND_DEVELOPER_OF_SIGN_IN: Final = f"""
SELECT {DEVELOPER_COLUMNS} FROM developers d WHERE d.id IN (
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
DELETE_INVITATIONS_OF_SIGN_IN: Final = """
DELETE FROM invitations WHERE inviter_id = $1 AND (sign_in = $2 OR (sign_in >= substr($2, 1, 12)
  AND EXISTS (SELECT 1 FROM developers b WHERE b.id = $1 AND b.bound_by = $2))) RETURNING id"""
DELETE_INVITATIONS_OF: Final = "DELETE FROM invitations WHERE inviter_id = $1 RETURNING id"


class DeveloperQueries(Queries[AnyExecutor]):
    """See `storage.protocol.DeveloperStorage`."""

    async def create_developer(self, developer: Developer, *, entry: AuditEntry | None = None) -> bool:
        return bool(await self._database.add(CREATE_DEVELOPER, *developer_values(developer), entry=entry))

    async def read_developer(self, email: str) -> Developer | None:
        return await self._find(READ_DEVELOPER, email.lower())

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        return await self._find(READ_DEVELOPER_BY_MESSENGER_ID, messenger_id)

    async def read_developer_of_sign_in(self, messenger_id: str, sign_in: str) -> Developer | None:
        return await self._find(FIND_DEVELOPER_OF_SIGN_IN, sign_in, messenger_id)

    async def _find(self, statement: str, *values: str) -> Developer | None:
        found = await self._database.read(statement, *values)
        return developer_from(found[0]) if found else None

    async def list_developers(self) -> list[Developer]:
        return [developer_from(row) for row in await self._database.read(LIST_DEVELOPERS)]

    async def read_invitation(self, code_hash: bytes, now: int) -> Invitation | None:
        found = await self._database.read(READ_INVITATION, code_hash, now)
        return invitation_from(found[0]) if found else None

    async def list_invitations(self, now: int) -> list[Invitation]:
        return [invitation_from(row) for row in await self._database.read(LIST_INVITATIONS, now)]

    async def delete_invitation(self, invitation_id: str, *, entry: AuditEntry | None = None) -> bool:
        return bool(await self._database.change(DELETE_INVITATION, invitation_id, entry=entry))
