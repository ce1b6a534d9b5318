"""Developers on PostgreSQL: how they come, what they sign in with, and what they did."""

from collections import Counter
from typing import Any, Final

import asyncpg

from taproof.core.accounts import (
    AccessToken,
    AuditEntry,
    AuditPurge,
    ConsoleSession,
    Developer,
    EndedRights,
    EndedToken,
    Invitation,
    InvitationOutcome,
)
from taproof.core.errors import AccessDenied
from taproof.core.model import DeveloperSignIn, PageCursor
from taproof.storage.account_protocol import (
    CONSOLE_SESSIONS_KEPT,
    EXPIRED_TOKENS_KEPT,
    NO_LIMIT,
    DescribeEnded,
    DescribeTokens,
)
from taproof.storage.postgres import developer_sql, sql
from taproof.storage.postgres.pool import PostgresPool
from taproof.storage.queries import developers as developer_queries
from taproof.storage.rows import (
    access_ended,
    console_session_from,
    console_session_values,
    developer_from,
    developer_values,
    entry_values,
    invitation_from,
    invitation_values,
    session_and_developer_from,
    token_and_developer_from,
    token_from,
    token_values,
)

_NEWEST: Final = PageCursor(2**62, "")


class PostgresAccounts:
    """The part of the store that holds developers. See `storage.protocol.Storage`."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    async def _add(self, entry: AuditEntry | None, statement: str, *values: Any) -> list[asyncpg.Record]:
        """Run a statement that returns what it changed; if that is anything, `entry` goes into the audit log."""
        if entry is None:
            return await self._pool.fetch(statement, *values)

        async def change(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            changed: list[asyncpg.Record] = await connection.fetch(statement, *values)
            if changed:
                await add_entry(connection, entry)
            return changed

        return await self._pool.transact(change)

    async def _change(self, entry: AuditEntry | None, statement: str, *values: Any) -> list[asyncpg.Record]:
        """Do as `_add` with a statement that changes what it finds: text with a NUL finds nothing."""
        return [] if _has_nul(*values) else await self._add(entry, statement, *values)

    # ---- developers and access tokens

    async def create_developer(self, developer: Developer, *, entry: AuditEntry | None = None) -> bool:
        return bool(await self._add(entry, developer_queries.CREATE_DEVELOPER, *developer_values(developer)))

    async def read_developer(self, email: str) -> Developer | None:
        found = await self._pool.find(developer_queries.READ_DEVELOPER, email.lower())
        return developer_from(found[0]) if found else None

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        found = await self._pool.find(developer_queries.READ_DEVELOPER_BY_MESSENGER_ID, messenger_id)
        return developer_from(found[0]) if found else None

    async def list_developers(self) -> list[Developer]:
        return [developer_from(row) for row in await self._pool.fetch(developer_queries.LIST_DEVELOPERS)]

    async def create_access_token(
        self,
        token: AccessToken,
        token_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        developer_id, values = token.developer_id, (*token_values(token, token_hash), limit)

        async def create(connection: asyncpg.Connection) -> bool:
            await connection.execute(developer_sql.HOLD_DEVELOPER, developer_id)
            await require_sign_in(connection, sign_in, developer_id)
            if not await connection.fetch(developer_queries.CREATE_ACCESS_TOKEN, *values):
                return False
            outdated = (developer_id, token.created_at, EXPIRED_TOKENS_KEPT)
            await connection.execute(developer_queries.ERASE_EXPIRED_TOKENS, *outdated)
            await add_entry(connection, entry)
            return True

        return await self._pool.transact(create)

    async def read_access_token(self, token_hash: bytes) -> tuple[AccessToken, Developer] | None:
        found = await self._pool.fetch(developer_queries.READ_ACCESS_TOKEN, token_hash)
        return token_and_developer_from(found[0]) if found else None

    async def touch_access_token(self, token_id: str, now: int) -> None:
        await self._pool.find(developer_queries.TOUCH_ACCESS_TOKEN, now, token_id)

    async def list_access_tokens(self, developer_id: str) -> list[AccessToken]:
        return [token_from(row) for row in await self._pool.find(developer_queries.LIST_ACCESS_TOKENS, developer_id)]

    async def delete_access_token(
        self, developer_id: str, token_id: str, *, keep_created: bool = False, describe: DescribeTokens | None = None
    ) -> list[EndedToken]:
        values = (developer_id, token_id)

        async def delete(connection: asyncpg.Connection) -> list[EndedToken]:
            # Whoever creates a token with one of these waits, and then finds it gone.
            await connection.execute(developer_sql.HOLD_DEVELOPER, developer_id)
            found = await connection.fetch(developer_queries.READ_ENDED_TOKEN, *values)
            if not found:
                return []
            if keep_created:
                await connection.execute(developer_queries.ADOPT_ACCESS_TOKENS, token_id, developer_id)
            else:
                found += await connection.fetch(developer_queries.FIND_ACCESS_TOKENS_CREATED, *values)
            ended = [EndedToken(*row) for row in found]
            # Before they go: one of them may be the credential that acts.
            for entry in describe(ended) if describe is not None else ():
                await add_entry(connection, entry)
            for each in ended:
                await connection.execute(developer_queries.DELETE_CONSOLE_SESSIONS_OF_TOKEN, developer_id, each.id)
                await connection.execute(developer_queries.DELETE_ACCESS_TOKEN, developer_id, each.id)
            return ended

        return [] if _has_nul(*values) else await self._pool.transact(delete)

    # ---- invitations

    async def create_invitation(
        self, invitation: Invitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> None:
        async def create(connection: asyncpg.Connection) -> None:
            # So that of two that are made at once one is left, and none beside one that is just taken up.
            await connection.execute(developer_sql.HOLD_DEVELOPERS)
            await connection.execute(developer_queries.CREATE_INVITATION, *invitation_values(invitation, code_hash))
            others = (invitation.id, invitation.developer_id, invitation.email)
            await connection.execute(developer_queries.REPLACE_INVITATIONS, *others)
            await add_entry(connection, entry)

        await self._pool.transact(create)

    async def read_invitation(self, code_hash: bytes, now: int) -> Invitation | None:
        found = await self._pool.fetch(developer_queries.READ_INVITATION, code_hash, now)
        return invitation_from(found[0]) if found else None

    async def list_invitations(self, now: int) -> list[Invitation]:
        return [invitation_from(row) for row in await self._pool.fetch(developer_queries.LIST_INVITATIONS, now)]

    async def delete_invitation(self, invitation_id: str, *, entry: AuditEntry | None = None) -> bool:
        return bool(await self._change(entry, developer_queries.DELETE_INVITATION, invitation_id))

    async def accept_invitation(
        self,
        code_hash: bytes,
        developer: Developer,
        now: int,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> InvitationOutcome:
        judged = (developer.email.lower(), developer.messenger_id, code_hash, now)

        async def accept(connection: asyncpg.Connection) -> InvitationOutcome:
            # Of those who have one code, the second waits here until the first has committed, and finds nothing.
            await connection.execute(developer_sql.HOLD_DEVELOPERS)
            await require_sign_in(connection, sign_in)
            if not await connection.fetch(developer_sql.HOLD_INVITATION, code_hash, now):
                return "gone"
            outcome: InvitationOutcome
            # A statement after those that waited, so that it sees what the others have committed.
            invitation_id, bound_id, outcome, is_bound = await connection.fetchrow(
                developer_queries.JUDGE_INVITATION, *judged
            )
            if outcome != "accepted":
                return outcome
            if bound_id is None:
                await connection.execute(developer_queries.CREATE_DEVELOPER, *developer_values(developer))
            else:
                account = (developer.messenger_id, developer.messenger_name)
                await connection.execute(developer_queries.BIND_IDENTITY, *account, bound_id)
                if not is_bound:
                    await connection.execute(developer_sql.DELETE_CONSOLE_SESSIONS, bound_id)
            bound_by = None if sign_in is None else sign_in.id
            await connection.execute(developer_queries.LINK_DEVELOPER, bound_by, invitation_id, developer.id)
            await connection.execute(developer_queries.SETTLE_INVITATIONS, invitation_id, developer.id, developer.email)
            await add_entry(connection, entry)
            return outcome

        # Nobody who guesses at codes gets to hold the developers.
        if await self.read_invitation(code_hash, now) is None:
            return "gone"
        return await self._pool.transact(accept)

    # ---- the console's sessions

    async def create_console_session(
        self,
        session: ConsoleSession,
        token_hash: bytes,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        values = console_session_values(session, token_hash)

        async def create(connection: asyncpg.Connection) -> bool:
            await connection.execute(developer_sql.HOLD_DEVELOPER, session.developer_id)
            await require_sign_in(connection, sign_in)
            if not await connection.fetch(developer_queries.CREATE_CONSOLE_SESSION, *values):
                return False
            others = (session.developer_id, session.id, CONSOLE_SESSIONS_KEPT - 1)
            await connection.execute(developer_sql.TRIM_CONSOLE_SESSIONS, *others)
            await add_entry(connection, entry)
            return True

        return await self._pool.transact(create)

    async def read_console_session(
        self, token_hash: bytes, now: int, idle_since: int
    ) -> tuple[ConsoleSession, Developer] | None:
        found = await self._pool.fetch(developer_queries.READ_CONSOLE_SESSION, token_hash, idle_since, now)
        return session_and_developer_from(found[0]) if found else None

    async def touch_console_session(self, session_id: str, now: int) -> None:
        await self._pool.find(developer_queries.TOUCH_CONSOLE_SESSION, now, session_id)

    async def list_console_sessions(self, developer_id: str, now: int, idle_since: int) -> list[ConsoleSession]:
        found = await self._pool.find(developer_queries.LIST_CONSOLE_SESSIONS, developer_id, idle_since, now)
        return [console_session_from(row) for row in found]

    async def delete_console_session(
        self, developer_id: str, session_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        async def delete(connection: asyncpg.Connection) -> bool:
            await connection.execute(developer_sql.HOLD_DEVELOPER, developer_id)
            if not await connection.fetch(developer_queries.FIND_CONSOLE_SESSION, developer_id, session_id):
                return False
            await add_entry(connection, entry)  # First, since it may be the session that acts.
            await connection.execute(developer_queries.DELETE_CONSOLE_SESSION, developer_id, session_id)
            return True

        return not _has_nul(developer_id, session_id) and await self._pool.transact(delete)

    async def delete_console_sessions(self, developer_id: str, *, entry: AuditEntry | None = None) -> int:
        async def delete(connection: asyncpg.Connection) -> int:
            await connection.execute(developer_sql.HOLD_DEVELOPER, developer_id)
            if not await connection.fetch(developer_queries.ANY_CONSOLE_SESSION, developer_id):
                return 0
            await add_entry(connection, entry)
            return len(await connection.fetch(developer_sql.DELETE_CONSOLE_SESSIONS, developer_id))

        return 0 if _has_nul(developer_id) else await self._pool.transact(delete)

    # ---- the report of a sign-in

    async def read_developer_of_sign_in(self, messenger_id: str, sign_in: str) -> Developer | None:
        found = await self._pool.find(developer_queries.FIND_DEVELOPER_OF_SIGN_IN, sign_in, messenger_id)
        return developer_from(found[0]) if found else None

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        values = (developer_id, sign_in)

        async def end(connection: asyncpg.Connection) -> EndedRights:
            # Nobody invites or takes up an invitation meanwhile; then, of these developers, nobody creates anything.
            await connection.execute(developer_sql.HOLD_DEVELOPERS)
            invited = [row[0] for row in await connection.fetch(developer_queries.FIND_INVITED_DEVELOPERS, *values)]
            await connection.execute(developer_sql.HOLD_INVITED, [developer_id, *invited])
            # Invitations before credentials: whoever revokes an invitation holds it, then the session that acts.
            invitations = await connection.fetch(developer_queries.DELETE_INVITATIONS_OF_SIGN_IN, *values)
            for each in invited:
                invitations += await connection.fetch(developer_queries.DELETE_INVITATIONS_OF, each)
            sessions = await connection.fetch(developer_sql.DELETE_CONSOLE_SESSIONS, developer_id)
            tokens = await connection.fetch(developer_queries.DELETE_ACCESS_TOKENS_OF_SIGN_IN, *values)
            unbound = await connection.fetch(developer_queries.UNBIND_SIGN_IN, *values)
            for each in invited:
                await connection.execute(developer_queries.SHUT_OUT_DEVELOPER, each)
                await connection.execute(developer_sql.DELETE_CONSOLE_SESSIONS, each)
                tokens += await connection.fetch(developer_queries.DELETE_ACCESS_TOKENS, each)
            ended = EndedRights(
                len(sessions),
                tuple(EndedToken(*row) for row in tokens),
                tuple(row[0] for row in invitations),
                tuple(invited),
                is_unbound=bool(unbound),
            )
            for entry in describe(ended):
                await add_entry(connection, entry)
            return ended

        return await self._pool.transact(end)

    async def purge_console_access(self, now: int, idle_since: int, limit: int) -> int:
        found = await self._pool.fetch(sql.PURGE_CONSOLE_ACCESS, idle_since, now, limit)
        return int(found[0][0])

    # ---- the audit log

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        await self._pool.transact(lambda connection: add_entry(connection, entry))

    async def read_audit_purge(self, developer_id: str) -> AuditPurge | None:
        found = await self._pool.find(developer_queries.READ_AUDIT_PURGE, developer_id)
        return AuditPurge(*found[0]) if found else None

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        async def purge(connection: asyncpg.Connection) -> int:
            found = await connection.fetch(developer_sql.FIND_OLD_ENTRIES, before, limit)
            # By developer, as the locks of `audit_purges` are taken; the next statement sees what this one wrote.
            for developer_id, number in sorted(Counter(row[0] for row in found).items()):
                await connection.execute(developer_queries.RECORD_AUDIT_PURGE, developer_id, before, number, now)
            await connection.executemany(developer_queries.ERASE_AUDIT_ENTRY, [tuple(row) for row in found])
            return len(found)

        return await self._pool.transact(purge)

    async def list_audit_entries(self, developer_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        # The characters of an id all come after both; PostgreSQL takes no NUL.
        start = before._replace(id=before.id.replace("\0", "\1")) if before else _NEWEST
        found = await self._pool.find(developer_queries.LIST_AUDIT_ENTRIES, developer_id, *start, limit)
        return [AuditEntry(*row) for row in found]


async def add_entry(connection: asyncpg.Connection, entry: AuditEntry | None) -> None:
    """Add an entry to the audit log, in the transaction of the change that it tells of.

    Raises:
        InvalidAccessToken, SignedOut: the credential that acts has ended, so the transaction must not be committed.
    """
    if entry is not None and not await connection.fetch(developer_sql.ADD_AUDIT_ENTRY, *entry_values(entry)):
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
    if not await connection.fetch(developer_sql.HOLD_SIGN_IN, *sign_in.key):
        raise AccessDenied
    if developer_id is not None and not await connection.fetch(
        developer_queries.SIGN_IN_IS_OF_DEVELOPER, *sign_in.key, developer_id
    ):
        raise AccessDenied


def _has_nul(*values: Any) -> bool:
    """Tell whether a text has a NUL, which PostgreSQL takes in no value: so there is no such row."""
    return any(isinstance(value, str) and "\0" in value for value in values)
