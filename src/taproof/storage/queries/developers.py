"""Developers and invitations."""

from collections.abc import Callable, Sequence
from typing import Final

from taproof.contract.member import Role
from taproof.core.accounts import (
    AuditEntry,
    Developer,
    EndedRights,
    EndedToken,
    Invitation,
    InvitationOutcome,
    ProjectItem,
    RemovedDeveloper,
)
from taproof.core.errors import ProjectsNeedOwner
from taproof.core.sessions import DeveloperSignIn
from taproof.storage.queries.credentials import (
    DELETE_ACCESS_TOKENS,
    DELETE_ACCESS_TOKENS_OF_SIGN_IN,
    DEVELOPER_COLUMNS,
    end_console_sessions,
)
from taproof.storage.queries.database import Queries
from taproof.storage.queries.members import settle_plans
from taproof.storage.queries.projects import NAME_PROJECTS, erase_project
from taproof.storage.queries.rights import FIND_DEVELOPER, SET_OWNER, end_membership, lock_members, require_sign_in
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import developer_from, developer_values, invitation_from, invitation_values

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
# Addresses are ASCII, so lower() works on both databases.
REPLACE_INVITATIONS: Final = """
DELETE FROM invitations
WHERE id <> $1 AND email <> '' AND (developer_id = $2 OR lower(email) = lower($3))"""
"""Deletes the other invitations for the same developer or the same address."""
SETTLE_INVITATIONS: Final = """
DELETE FROM invitations WHERE id = $1 OR developer_id = $2 OR lower(email) = lower($3) OR email = ''"""
"""Deletes the accepted invitation, all others for that developer or address, and those for the first developer."""
JUDGE_INVITATION: Final = """
SELECT i.id, i.developer_id, CASE
  WHEN i.email = '' AND EXISTS (SELECT 1 FROM developers) THEN 'not_first'
  WHEN i.developer_id IS NULL AND EXISTS (SELECT 1 FROM developers d WHERE d.email_key = $1) THEN 'email_taken'
  WHEN EXISTS (SELECT 1 FROM developers d WHERE d.messenger_id = $2 AND d.id <> COALESCE(i.developer_id, ''))
    THEN 'identity_taken'
  ELSE 'accepted' END,
  EXISTS (SELECT 1 FROM developers d WHERE d.id = i.developer_id AND d.messenger_id = $2)
FROM invitations i WHERE i.code_hash = $3 AND i.expires_at > $4"""
"""Finds the outcome of accepting an invitation, and whether its developer already has this messenger account."""
LINK_DEVELOPER: Final = """
UPDATE developers SET bound_by = $1,
  inviter_id = (SELECT i.inviter_id FROM invitations i WHERE i.id = $2),
  sign_in = (SELECT i.sign_in FROM invitations i WHERE i.id = $2)
WHERE id = $3"""
"""Records the inviter and sign-in of a developer's invitation, and the sign-in that linked the messenger account."""

# ---- the report of a sign-in

FIND_DEVELOPER_OF_SIGN_IN: Final = f"""
SELECT {DEVELOPER_COLUMNS} FROM developers d WHERE d.id IN (
  SELECT t.developer_id FROM access_tokens t WHERE t.sign_in = $1
  UNION SELECT s.developer_id FROM console_sessions s WHERE s.sign_in = $1
  UNION SELECT i.inviter_id FROM invitations i WHERE i.sign_in = $1
  UNION SELECT n.inviter_id FROM developers n WHERE n.sign_in = $1
  UNION SELECT j.inviter_id FROM member_invitations j WHERE j.sign_in = $1
  UNION SELECT o.inviter_id FROM member_origins o WHERE o.sign_in = $1
  UNION SELECT b.id FROM developers b WHERE b.bound_by = $1
  UNION SELECT m.id FROM developers m WHERE m.messenger_id = $2)
ORDER BY CASE WHEN d.messenger_id = $2 THEN 1 ELSE 0 END LIMIT 1"""
"""Finds the developer with credentials or rights that derive from a sign-in, even if they now have another account. If
there is none, finds the developer to whom the account is linked."""
FIND_INVITED_DEVELOPERS: Final = """
WITH RECURSIVE invited (id) AS (
  SELECT d.id FROM developers d WHERE d.inviter_id = $1 AND (d.sign_in = $2 OR (d.sign_in >= substr($2, 1, 12)
    AND EXISTS (SELECT 1 FROM developers b WHERE b.id = $1 AND b.bound_by = $2))) AND d.id <> $1
  UNION SELECT d.id FROM invited i JOIN developers d ON d.inviter_id = i.id AND d.id <> $1
)
SELECT id FROM invited ORDER BY id"""
"""Finds the developers invited with this sign-in, and those whom they invited in turn. If this sign-in linked the
developer's account, also finds those invited with any later sign-in."""
UNBIND_SIGN_IN: Final = """
UPDATE developers SET messenger_id = NULL, messenger_name = '', bound_by = NULL WHERE id = $1 AND bound_by = $2
RETURNING id"""
SHUT_OUT_DEVELOPER: Final = """
UPDATE developers SET messenger_id = NULL, messenger_name = '', bound_by = NULL, is_owner = 0 WHERE id = $1"""
DELETE_INVITATIONS_OF: Final = "DELETE FROM invitations WHERE inviter_id = $1 RETURNING id"
_OF_SIGN_IN: Final = """inviter_id = $1 AND (sign_in = $2 OR (sign_in >= substr($2, 1, 12)
  AND EXISTS (SELECT 1 FROM developers b WHERE b.id = $1 AND b.bound_by = $2)))"""
DELETE_INVITATIONS_OF_SIGN_IN: Final = f"DELETE FROM invitations WHERE {_OF_SIGN_IN} RETURNING id"
DELETE_MEMBER_INVITATIONS_OF_SIGN_IN: Final = f"""
DELETE FROM member_invitations WHERE {_OF_SIGN_IN} RETURNING project_id, id"""
FIND_MEMBERS_OF_SIGN_IN: Final = f"""
SELECT DISTINCT project_id, developer_id FROM member_origins WHERE {_OF_SIGN_IN} AND developer_id <> $1
ORDER BY project_id, developer_id"""
"""Finds the members who joined by invitations made with this sign-in, and those whom they invited in turn."""

READ_CREATION: Final = "SELECT created_at FROM projects WHERE id = $1"

# ---- the removal of a developer

LOCK_SHARED_MEMBERS: Final = """
SELECT project_id, developer_id, role FROM project_members
WHERE project_id IN (SELECT m.project_id FROM project_members m WHERE m.developer_id = $1)
ORDER BY project_id, developer_id"""
DELETE_MEMBERSHIPS: Final = "DELETE FROM project_members WHERE developer_id = $1"
DELETE_MEMBER_INVITATIONS_BY: Final = "DELETE FROM member_invitations WHERE inviter_id = $1 RETURNING project_id, id"
DELETE_INVITATIONS_FOR: Final = "DELETE FROM invitations WHERE developer_id = $1"
DELETE_ORIGINS_OF: Final = "DELETE FROM member_origins WHERE developer_id = $1"
FIND_DEVELOPERS_INVITED_BY: Final = "SELECT id FROM developers WHERE inviter_id = $1"
ADOPT_DEVELOPERS: Final = """
UPDATE developers SET inviter_id = (SELECT d.inviter_id FROM developers d WHERE d.id = $1),
  sign_in = (SELECT d.sign_in FROM developers d WHERE d.id = $1)
WHERE inviter_id = $1"""
"""Makes the developers whom a developer invited derive from that developer's own inviter and sign-in."""
DELETE_DEVELOPER: Final = "DELETE FROM developers WHERE id = $1"


DescribeEnded = Callable[[EndedRights], Sequence[AuditEntry]]
"""Returns the audit entries for the rights that a report ended. A driver may call it more than once, so it must have no
side effects."""


DescribeRemoved = Callable[[RemovedDeveloper], Sequence[AuditEntry]]
"""Returns the audit entries for the removal of a developer, with the same rules as `DescribeEnded`."""


class DeveloperQueries(Queries):
    """Developers and invitations."""

    async def create_developer(self, developer: Developer, *, entry: AuditEntry | None = None) -> bool:
        """Store a developer; False if the e-mail address is taken (compared without case)."""
        return bool(await self._database.add(CREATE_DEVELOPER, *developer_values(developer), entry=entry))

    async def read_developer(self, email: str) -> Developer | None:
        """Return the developer with this e-mail address (compared without case)."""
        return await self._find(READ_DEVELOPER, email.lower())

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        """Return the developer to whom this messenger account is linked."""
        return await self._find(READ_DEVELOPER_BY_MESSENGER_ID, messenger_id)

    async def read_developer_of_sign_in(self, messenger_id: str, sign_in: str) -> Developer | None:
        """Return the developer whose rights derive from a sign-in; otherwise the one to whom this account is linked."""
        return await self._find(FIND_DEVELOPER_OF_SIGN_IN, sign_in, messenger_id)

    async def _find(self, statement: str, *values: str) -> Developer | None:
        found = await self._database.read(statement, *values)
        return developer_from(found[0]) if found else None

    async def list_developers(self) -> list[Developer]:
        """Return all developers, oldest first."""
        return [developer_from(row) for row in await self._database.read(LIST_DEVELOPERS)]

    async def create_invitation(
        self, invitation: Invitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> None:
        """Store an invitation, which replaces all others for the same developer or address (compared without case)."""

        async def create(transaction: Transaction) -> None:
            # With this lock, only one of two concurrent invitations remains, and none remains if another one is
            # accepted concurrently.
            await transaction.lock_developers()
            await transaction.add(CREATE_INVITATION, *invitation_values(invitation, code_hash))
            others = (invitation.id, invitation.developer_id, invitation.email)
            await transaction.fetch(REPLACE_INVITATIONS, *others)
            await transaction.add_entry(entry)

        await self._database.in_transaction(create)

    async def read_invitation(self, code_hash: bytes, now: int) -> Invitation | None:
        """Return the invitation whose code has this SHA-256; None if there is none or it has expired at `now`."""
        found = await self._database.read(READ_INVITATION, code_hash, now)
        return invitation_from(found[0]) if found else None

    async def list_invitations(self, now: int) -> list[Invitation]:
        """Return the invitations with an e-mail address that have not expired at `now`, newest first."""
        return [invitation_from(row) for row in await self._database.read(LIST_INVITATIONS, now)]

    async def delete_invitation(self, invitation_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Revoke an invitation; False if there is none."""
        return bool(await self._database.change(DELETE_INVITATION, invitation_id, entry=entry))

    async def accept_invitation(
        self,
        code_hash: bytes,
        developer: Developer,
        now: int,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> InvitationOutcome:
        """Accept an invitation: store `developer`, or link its messenger account to the existing developer.

        Exactly one of several concurrent callers gets "accepted". This also deletes all other invitations for that
        developer or address, and those for the first developer, so that no older link can link another account. With
        any other outcome nothing changes, and the invitation can be tried again. "not_first": it is for the first
        developer, but a developer exists. "email_taken", "identity_taken": another developer has that address or
        messenger account. Linking another account to a developer ends their console sessions.

        `sign_in` is the sign-in that confirmed the account.
        """
        judged = (developer.email.lower(), developer.messenger_id, code_hash, now)

        async def accept(transaction: Transaction) -> InvitationOutcome:
            # If several callers use one code, the second waits here until the first has committed, and then finds no
            # invitation.
            await transaction.lock_developers()
            await require_sign_in(transaction, sign_in)
            if not await transaction.lock(READ_INVITATION, code_hash, now):
                return "gone"
            outcome: InvitationOutcome
            # This statement runs after those that wait for locks, so that it sees the commits of other transactions.
            ((invitation_id, bound_id, outcome, is_bound),) = await transaction.fetch(JUDGE_INVITATION, *judged)
            if outcome != "accepted":
                return outcome
            if bound_id is None:
                await transaction.add(CREATE_DEVELOPER, *developer_values(developer))
            else:
                account = (developer.messenger_id, developer.messenger_name)
                await transaction.add(BIND_IDENTITY, *account, bound_id)
                if not is_bound:
                    await end_console_sessions(transaction, bound_id)
            bound_by = None if sign_in is None else sign_in.id
            await transaction.fetch(LINK_DEVELOPER, bound_by, invitation_id, developer.id)
            await transaction.fetch(SETTLE_INVITATIONS, invitation_id, developer.id, developer.email)
            await transaction.add_entry(entry)
            return outcome

        # Check the code before taking the lock, so that callers who guess codes cannot lock the table.
        if await self.read_invitation(code_hash, now) is None:
            return "gone"
        return await self._database.in_transaction(accept)

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        """End, in one transaction, all credentials and rights that derive from a developer's reported sign-in.

        The sign-in must be reported before this call. The transaction ends:

        - all console sessions of the developer;
        - all access tokens that derive, directly or indirectly, from this sign-in or a later one;
        - the invitations that derive from this sign-in or, if it linked the account, also from a later one;
        - the memberships in projects of those who accepted one of these, and of those whom they invited in turn.

        Developers who accepted one of these invitations can no longer sign in, and the credentials that they created
        end too. A project that loses its last owner gets this developer as its owner. A messenger account that the
        sign-in linked is unlinked. No such credential can be created meanwhile. Repeating the call is safe.
        """
        values = (developer_id, sign_in)

        async def end(transaction: Transaction) -> EndedRights:
            # This lock prevents creating and accepting invitations. The locks on the developers' rows prevent creating
            # credentials.
            await transaction.lock_developers()
            invited = [row[0] for row in await transaction.fetch(FIND_INVITED_DEVELOPERS, *values)]
            for each in sorted([developer_id, *invited]):
                await transaction.lock(FIND_DEVELOPER, each)
            # Delete invitations before credentials: a call that revokes an invitation locks it first, and then the
            # acting session.
            invitations = await transaction.fetch(DELETE_INVITATIONS_OF_SIGN_IN, *values)
            for each in invited:
                invitations += await transaction.fetch(DELETE_INVITATIONS_OF, each)
            members = await _end_memberships(transaction, developer_id, sign_in)
            member_invitations = await transaction.fetch(DELETE_MEMBER_INVITATIONS_OF_SIGN_IN, *values)
            for each in invited:
                member_invitations += await transaction.fetch(DELETE_MEMBER_INVITATIONS_BY, each)
            sessions = await end_console_sessions(transaction, developer_id)
            tokens = await transaction.fetch(DELETE_ACCESS_TOKENS_OF_SIGN_IN, *values)
            unbound = await transaction.fetch(UNBIND_SIGN_IN, *values)
            for each in invited:
                await transaction.fetch(SHUT_OUT_DEVELOPER, each)
                await end_console_sessions(transaction, each)
                tokens += await transaction.fetch(DELETE_ACCESS_TOKENS, each)
            ended = EndedRights(
                sessions,
                tuple(EndedToken(*row) for row in tokens),
                tuple(row[0] for row in invitations),
                tuple(invited),
                is_unbound=bool(unbound),
                members=tuple(members),
                member_invitations=tuple(ProjectItem(*row) for row in member_invitations),
            )
            for entry in describe(ended):
                await transaction.add_entry(entry)
            return ended

        return await self._database.in_transaction(end)

    async def remove_developer(
        self,
        developer_id: str,
        now: int,
        *,
        successor_id: str | None = None,
        delete_projects: bool = False,
        describe: DescribeRemoved,
    ) -> RemovedDeveloper | None:
        """Erase a developer's account with its credentials, memberships and invitations, in one transaction.

        The projects of which the developer is the only owner pass to `successor_id`, or are deleted with
        `delete_projects`. Return None if one of the two developers does not exist; nothing is changed.

        Raises:
            ProjectsNeedOwner: there are such projects, and neither is given.
        """

        async def remove(transaction: Transaction) -> RemovedDeveloper | None:
            # These locks prevent creating and accepting invitations, and creating credentials.
            await transaction.lock_developers()
            invited = [row[0] for row in await transaction.fetch(FIND_DEVELOPERS_INVITED_BY, developer_id)]
            found = {}
            for each in sorted({developer_id, successor_id or developer_id, *invited}):
                found[each] = await transaction.lock(FIND_DEVELOPER, each)
            if not all(found.values()):
                return None
            projects: dict[str, dict[str, Role]] = {}
            for project_id, member_id, role in await transaction.lock(LOCK_SHARED_MEMBERS, developer_id):
                projects.setdefault(project_id, {})[member_id] = role
            names = dict(await transaction.fetch(NAME_PROJECTS, developer_id))
            alone = [
                ProjectItem(each, names[each])
                for each, roles in projects.items()
                if roles[developer_id] == "owner" and list(roles.values()).count("owner") == 1
            ]
            if alone and successor_id is None and not delete_projects:
                raise ProjectsNeedOwner(names=[f"{name} ({project_id})" for project_id, name in alone])
            for project_id, _ in alone:
                if delete_projects:
                    await erase_project(transaction, project_id)
                else:
                    await transaction.add(SET_OWNER, project_id, successor_id, now)
            await transaction.fetch(DELETE_MEMBERSHIPS, developer_id)
            await transaction.fetch(DELETE_ORIGINS_OF, developer_id)
            await settle_plans(transaction, sorted(projects))
            await transaction.fetch(DELETE_MEMBER_INVITATIONS_BY, developer_id)
            await transaction.fetch(DELETE_INVITATIONS_OF, developer_id)
            await transaction.fetch(DELETE_INVITATIONS_FOR, developer_id)
            sessions = await end_console_sessions(transaction, developer_id)
            tokens = await transaction.fetch(DELETE_ACCESS_TOKENS, developer_id)
            await transaction.fetch(ADOPT_DEVELOPERS, developer_id)
            await transaction.fetch(DELETE_DEVELOPER, developer_id)
            left = [ProjectItem(each, names[each]) for each in projects if ProjectItem(each, names[each]) not in alone]
            kept, deleted = ((), alone) if delete_projects else (alone, ())
            removed = RemovedDeveloper(tuple(kept), tuple(deleted), tuple(left), sessions, len(tokens))
            for entry in describe(removed):
                await transaction.add_entry(entry)
            return removed

        return await self._database.in_transaction(remove)


async def _end_memberships(transaction: Transaction, developer_id: str, sign_in: str) -> list[ProjectItem]:
    """Remove the members who joined through a sign-in. A project that loses its last owner gets this developer back."""
    found = await transaction.fetch(FIND_MEMBERS_OF_SIGN_IN, developer_id, sign_in)
    roles_in = {each: await lock_members(transaction, each) for each in sorted({row[0] for row in found})}
    # Again, because those whom they invited may have joined before the locks.
    found = await transaction.fetch(FIND_MEMBERS_OF_SIGN_IN, developer_id, sign_in)
    ended = [ProjectItem(*row) for row in found]
    for project_id, roles in roles_in.items():
        for each in ended:
            if each.project_id == project_id:
                await end_membership(transaction, *each)
                roles.pop(each.item)
        if "owner" not in roles.values():
            ((created_at,),) = await transaction.fetch(READ_CREATION, project_id)
            await transaction.add(SET_OWNER, project_id, developer_id, created_at)
        await settle_plans(transaction, [project_id])
    return ended
