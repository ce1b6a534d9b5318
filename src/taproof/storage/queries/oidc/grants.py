"""The grants of users, which clients of the OpenID provider hold after a sign-in.

Whatever ends grants calls `end_grants` in its own transaction. A grant is created only while its session's row and the
user's grants in the project are locked, and `end_grants` finds grants in a statement that begins after it got the same
lock. So no grant is created beside a report, a block or an erasure without being found by it.
"""

from typing import Any, Final, NamedTuple

from taproof.core.accounts import AuditEntry
from taproof.core.oidc.grants import (
    GRANT_LIFETIME,
    IDLE_LIFETIME,
    KEPT_AFTER_END,
    TOLD_REASONS,
    EndReason,
    NewGrant,
    OidcGrant,
    Refreshed,
    RefreshHashes,
    RotatedTokens,
)
from taproof.core.page_cursor import PageCursor
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.oidc.groups import admits
from taproof.storage.queries.rights import require_role
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import Row, Values, page_start

HOLD_SESSION: Final = "SELECT 1 FROM sessions s WHERE s.day = $1 AND s.token_hash = $2"
IS_BLOCKED: Final = "SELECT 1 FROM blocks WHERE messenger_id = $1 AND project_id = $2"
CREATE_GRANT: Final = """
INSERT INTO oidc_grants (id, client_id, client_version, project_id, session_day, session_hash, messenger_id,
  messenger_name, messenger_username, encrypted_phone, scopes, auth_time, created_at, family_hash, refresh_hash,
  idle_expires_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"""
_GRANT: Final = """
SELECT id, client_id, client_version, project_id, messenger_id, messenger_name, messenger_username, encrypted_phone,
  scopes, auth_time, access_expires_at, access_scopes, created_at, refreshed_at, idle_expires_at, ended_at,
  ended_reason, refresh_hash
FROM oidc_grants"""
READ_GRANT: Final = f"{_GRANT} WHERE id = $1"
READ_GRANT_BY_FAMILY: Final = f"{_GRANT} WHERE family_hash = $1"
READ_GRANT_BY_ACCESS_TOKEN: Final = f"{_GRANT} WHERE access_token_hash = $1"
LIST_GRANTS: Final = f"""{_GRANT}
WHERE project_id = $1 AND client_id = $2 AND ended_at IS NULL AND idle_expires_at > $3
  AND client_version = (SELECT c.version FROM oidc_clients c WHERE c.id = $2)
  AND (created_at, id) < ($4, $5)
ORDER BY created_at DESC, id DESC LIMIT $6"""
_OF_CLIENT: Final = f"""EXISTS (SELECT 1 FROM oidc_clients c WHERE c.id = oidc_grants.client_id
    AND c.version = oidc_grants.client_version AND c.grant_types LIKE '%refresh_token%')
  AND {admits("oidc_grants.client_id", "oidc_grants.messenger_id")}"""
REFRESH_GRANT: Final = f"""
UPDATE oidc_grants SET refresh_hash = $1, access_token_hash = $2, access_expires_at = $3, access_scopes = $4,
  refreshed_at = $5, idle_expires_at = CASE WHEN $6 < expires_at THEN $6 ELSE expires_at END
WHERE family_hash = $7 AND refresh_hash = $8 AND client_id = $9 AND ended_at IS NULL AND idle_expires_at > $5
  AND {_OF_CLIENT}
RETURNING id"""
FIND_REUSED: Final = "SELECT id FROM oidc_grants WHERE family_hash = $1 AND client_id = $2 AND refresh_hash <> $3"
FORGET_FIRST_ACCESS_TOKEN: Final = """
UPDATE oidc_authorizations SET access_token_hash = NULL WHERE access_token_hash = $1 AND client_id = $2 RETURNING id"""
FORGET_ACCESS_TOKEN: Final = """
UPDATE oidc_grants SET access_token_hash = NULL, access_expires_at = NULL
WHERE access_token_hash = $1 AND client_id = $2 RETURNING id"""
PURGE_GRANTS: Final = Purge("oidc_grants", "id", "idle_expires_at <= $1")
ERASE_GRANTS_OF_PROJECT: Final = Purge("oidc_grants", "id", "project_id = $1")
ERASE_LOGOUTS_OF_PROJECT: Final = "DELETE FROM oidc_logouts WHERE project_id = $1"
# Reasons that do not show that the client has signed the user out. Whoever has an ID token can ask for `signed_out`.
_LEFT_SIGNED_IN: Final = "'revoked', 'reused', 'signed_out'"
TELL_OF_ERASED: Final = f"""
INSERT INTO oidc_logouts (sid, client_id, project_id, messenger_id, created_at, due_at, attempts)
SELECT g.id, g.client_id, g.project_id, NULL, $1, $1, 0
FROM oidc_grants g JOIN oidc_clients c ON c.id = g.client_id AND c.backchannel_logout_uri <> ''
WHERE g.id = $2 AND (g.ended_at IS NULL OR g.ended_reason IN ({_LEFT_SIGNED_IN})) ON CONFLICT (sid) DO NOTHING"""
FORGET_USER_OF_LOGOUT: Final = "UPDATE oidc_logouts SET messenger_id = NULL WHERE sid = $1"
ERASE_GRANT: Final = "DELETE FROM oidc_grants WHERE id = $1 RETURNING project_id"


class Ended(NamedTuple):
    """The statements that end some grants: see `_ended`."""

    find: str
    tell: str
    end: str


_TOLD: Final = ", ".join(f"'{reason}'" for reason in sorted(TOLD_REASONS))


def _ended(*columns: str) -> Ended:
    """Return the statements that end the grants with given values in these columns.

    The values of the columns are the last parameters of each statement. A client that revoked its token, used it twice,
    or let the user sign out here, may still have the user signed in. So such a grant ends again for a reason of which
    its client must be told.
    """

    def left(reason: int, value: int) -> str:
        """Return the condition for the grants left to end. `reason` and `value` are the numbers of parameters."""
        of = " AND ".join(f"{column} = ${number}" for number, column in enumerate(columns, value))
        return f"(ended_at IS NULL OR (ended_reason IN ({_LEFT_SIGNED_IN}) AND ${reason} IN ({_TOLD}))) AND {of}"

    return Ended(
        find=f"SELECT id FROM oidc_grants WHERE {left(1, 2)} ORDER BY id",
        tell=f"""
INSERT INTO oidc_logouts (sid, client_id, project_id, messenger_id, created_at, due_at, attempts)
SELECT g.id, g.client_id, g.project_id, g.messenger_id, CAST($1 AS BIGINT), CAST($1 AS BIGINT), 0
FROM (SELECT * FROM oidc_grants WHERE {left(2, 3)}) AS g
JOIN oidc_clients c ON c.id = g.client_id AND c.backchannel_logout_uri <> ''
WHERE $2 IN ({_TOLD}) ON CONFLICT (sid) DO NOTHING""",
        end=f"""
UPDATE oidc_grants SET ended_at = COALESCE(ended_at, $1), ended_reason = $2, encrypted_phone = NULL,
  idle_expires_at = $3
WHERE {left(2, 4)} RETURNING id""",
    )


BY_ID: Final = _ended("id")
"""Ends one grant."""
OF_CLIENT: Final = _ended("id", "project_id", "client_id")
"""Ends one grant of a client."""
OF_SESSION: Final = _ended("session_day", "session_hash")
"""Ends the grants of a sign-in session."""
OF_USER: Final = _ended("messenger_id", "project_id")
"""Ends the grants of an account in a project."""
OF_USER_AT_CLIENT: Final = _ended("messenger_id", "project_id", "client_id")
"""Ends the grants of an account at a client."""


async def end_grants(transaction: Transaction, which: Ended, values: Values, now: int, reason: EndReason) -> int:
    """End grants, and record the logouts of which their clients must be told; return the number of ended grants.

    Args:
        transaction: the transaction of the cause. On PostgreSQL, it must already hold the lock with which a grant of
            these is created: that of the session, or `lock_user` of the project and the account.
        which: finds the grants.
        values: the values that `which` takes.
        now: the time, in ms.
        reason: the cause.
    """
    if not await transaction.lock(which.find, reason, *values):
        return 0
    await transaction.fetch(which.tell, now, reason, *values)
    return len(await transaction.fetch(which.end, now, reason, now + KEPT_AFTER_END, *values))


async def hold_user(transaction: Transaction, new: NewGrant) -> bool:
    """Lock a session and its user's grants before a grant is created. Return False if the user must get none.

    The session's row may be gone, or the user has blocked the project.
    """
    if not await transaction.lock(HOLD_SESSION, *new.session):
        return False
    await transaction.lock_user(new.project_id, new.identity.messenger_id)
    return not await transaction.fetch(IS_BLOCKED, new.identity.messenger_id, new.project_id)


async def create_grant(transaction: Transaction, new: NewGrant) -> None:
    """Store a grant in the transaction that issues the first tokens, after `hold_user`."""
    identity = new.identity
    expires_at = new.created_at + GRANT_LIFETIME
    idle_expires_at = expires_at if new.refresh is None else new.created_at + IDLE_LIFETIME
    await transaction.add(
        CREATE_GRANT,
        *(new.id, new.client_id, new.client_version, new.project_id, *new.session),
        *(identity.messenger_id, identity.messenger_name, identity.messenger_username, new.encrypted_phone),
        *(new.scopes, new.auth_time, new.created_at, *(new.refresh or (None, None)), idle_expires_at, expires_at),
    )


async def erase_grants(transaction: Transaction, found: list[Row], now: int) -> list[str]:
    """Erase grants whose locked rows begin with their ids, and notify their clients; return the project of each."""
    projects: list[str] = []
    for grant_id, *_ in found:
        await transaction.fetch(TELL_OF_ERASED, now, grant_id)
        await transaction.fetch(FORGET_USER_OF_LOGOUT, grant_id)
        projects += [row[0] for row in await transaction.fetch(ERASE_GRANT, grant_id)]
    return projects


class GrantQueries(Queries):
    """The grants of users. `AuthorizationQueries` creates them, together with the first tokens."""

    async def read_grant(self, grant_id: str) -> OidcGrant | None:
        """Return the grant of a sign-in, ended or not."""
        return await self._find(READ_GRANT, grant_id)

    async def read_grant_by_family(self, family_hash: bytes) -> OidcGrant | None:
        """Return the grant of a refresh token's family, ended or not."""
        return await self._find(READ_GRANT_BY_FAMILY, family_hash)

    async def read_grant_by_access_token(self, access_token_hash: bytes) -> OidcGrant | None:
        """Return the grant whose last refresh gave this access token."""
        return await self._find(READ_GRANT_BY_ACCESS_TOKEN, access_token_hash)

    async def _find(self, statement: str, value: Any) -> OidcGrant | None:
        found = await self._database.read(statement, value)
        return OidcGrant(*found[0]) if found else None

    async def list_grants(
        self, project_id: str, client_id: str, before: PageCursor | None, now: int, limit: int
    ) -> list[OidcGrant]:
        """Return the live grants of a client, newest first. A position has `created_at` and the id."""
        values = (project_id, client_id, now, *page_start(before), limit)
        return [OidcGrant(*row) for row in await self._database.look_up(LIST_GRANTS, *values)]

    async def refresh_grant(self, client_id: str, hashes: RefreshHashes, rotated: RotatedTokens, now: int) -> Refreshed:
        """Replace the refresh token and the access token of a client's grant. Of concurrent calls, one succeeds.

        A token that was replaced before ends the grant (RFC 9700, section 4.14.2).
        """
        new = (rotated.secret, rotated.access_token_hash, rotated.access_expires_at, rotated.access_scopes)

        async def refresh(transaction: Transaction) -> Refreshed:
            values = (*new, now, now + IDLE_LIFETIME, *hashes, client_id)
            if await transaction.fetch(REFRESH_GRANT, *values):
                return "refreshed"
            for (grant_id,) in await transaction.lock(FIND_REUSED, hashes.family, client_id, hashes.secret):
                if await end_grants(transaction, BY_ID, (grant_id,), now, "reused"):
                    return "reused"
            return "gone"

        return await self._database.in_transaction(refresh)

    async def end_grant(self, grant_id: str, now: int, reason: EndReason) -> bool:
        """End a grant. Return False if it has ended before, or does not exist."""

        async def end(transaction: Transaction) -> bool:
            return bool(await end_grants(transaction, BY_ID, (grant_id,), now, reason))

        return await self._database.in_transaction(end)

    async def end_client_grant(
        self,
        developer_id: str,
        project_id: str,
        client_id: str,
        grant_id: str,
        now: int,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """End a grant for a developer. Return False if this developer's client has no such grant, or if it has ended.

        Raises:
            InsufficientRole: the developer's role does not permit it.
        """

        async def end(transaction: Transaction) -> bool:
            if not await require_role(transaction, developer_id, project_id, "write"):
                return False
            if not await end_grants(transaction, OF_CLIENT, (grant_id, project_id, client_id), now, "ended"):
                return False
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(end)

    async def end_grants_of_user(
        self, project_id: str, client_id: str, messenger_id: str, now: int, reason: EndReason
    ) -> int:
        """End the grants of an account at a client; return their number."""

        async def end(transaction: Transaction) -> int:
            await transaction.lock_user(project_id, messenger_id)
            values = (messenger_id, project_id, client_id)
            return await end_grants(transaction, OF_USER_AT_CLIENT, values, now, reason)

        return await self._database.in_transaction(end)

    async def revoke_access_token(self, access_token_hash: bytes, client_id: str) -> bool:
        """Forget an access token of a client, with or without a grant. Return False if there is none."""

        async def revoke(transaction: Transaction) -> bool:
            for statement in (FORGET_FIRST_ACCESS_TOKEN, FORGET_ACCESS_TOKEN):
                if await transaction.fetch(statement, access_token_hash, client_id):
                    return True
            return False

        return await self._database.in_transaction(revoke)

    async def purge_grants(self, now: int, limit: int) -> int:
        """Erase at most `limit` ended or expired grants."""
        return await self._database.purge(PURGE_GRANTS, now, limit)
