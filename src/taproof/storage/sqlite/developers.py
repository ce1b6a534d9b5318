"""Developers on SQLite: how they come, what they sign in with, and what they did."""

from collections import Counter
from typing import Final

import apsw

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
from taproof.core.model import DeveloperSignIn, PageCursor
from taproof.storage.account_protocol import (
    CONSOLE_SESSIONS_KEPT,
    EXPIRED_TOKENS_KEPT,
    NO_LIMIT,
    DescribeEnded,
    DescribeTokens,
)
from taproof.storage.queries import developers as developer_queries
from taproof.storage.queries import sessions as session_queries
from taproof.storage.rows import (
    console_session_from,
    console_session_values,
    developer_from,
    developer_values,
    invitation_from,
    invitation_values,
    session_and_developer_from,
    token_and_developer_from,
    token_from,
    token_values,
)
from taproof.storage.sqlite.access import SqliteAccess, add_entry, require_sign_in
from taproof.storage.sqlite.group_commit import rows

_NEWEST: Final = PageCursor(2**62, "")


class SqliteAccounts(SqliteAccess):
    """The part of the store that holds developers. See `storage.protocol.Storage`."""

    # ---- developers and access tokens

    async def create_developer(self, developer: Developer, *, entry: AuditEntry | None = None) -> bool:
        return bool(await self._write(developer_queries.CREATE_DEVELOPER, developer_values(developer), entry))

    async def read_developer(self, email: str) -> Developer | None:
        found = self._read(developer_queries.READ_DEVELOPER, (email.lower(),))
        return developer_from(found[0]) if found else None

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        found = self._read(developer_queries.READ_DEVELOPER_BY_MESSENGER_ID, (messenger_id,))
        return developer_from(found[0]) if found else None

    async def list_developers(self) -> list[Developer]:
        return [developer_from(row) for row in self._read(developer_queries.LIST_DEVELOPERS, ())]

    async def create_access_token(
        self,
        token: AccessToken,
        token_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        outdated = (token.developer_id, token.created_at, EXPIRED_TOKENS_KEPT)

        def write(connection: apsw.Connection) -> bool:
            require_sign_in(connection, sign_in, token.developer_id)
            if not rows(connection, developer_queries.CREATE_ACCESS_TOKEN, (*token_values(token, token_hash), limit)):
                return False
            connection.execute(developer_queries.ERASE_EXPIRED_TOKENS, outdated)
            add_entry(connection, entry)
            return True

        return bool(await self._writer.run(write))

    async def read_access_token(self, token_hash: bytes) -> tuple[AccessToken, Developer] | None:
        found = self._read(developer_queries.READ_ACCESS_TOKEN, (token_hash,))
        return token_and_developer_from(found[0]) if found else None

    async def touch_access_token(self, token_id: str, now: int) -> None:
        await self._write(developer_queries.TOUCH_ACCESS_TOKEN, (now, token_id))

    async def list_access_tokens(self, developer_id: str) -> list[AccessToken]:
        return [token_from(row) for row in self._read(developer_queries.LIST_ACCESS_TOKENS, (developer_id,))]

    async def delete_access_token(
        self, developer_id: str, token_id: str, *, keep_created: bool = False, describe: DescribeTokens | None = None
    ) -> list[EndedToken]:
        values = (developer_id, token_id)

        def write(connection: apsw.Connection) -> list[EndedToken]:
            found = rows(connection, developer_queries.READ_ENDED_TOKEN, values)
            if not found:
                return []
            if keep_created:
                connection.execute(developer_queries.ADOPT_ACCESS_TOKENS, (token_id, developer_id))
            else:
                found += rows(connection, developer_queries.FIND_ACCESS_TOKENS_CREATED, values)
            ended = [EndedToken(*row) for row in found]
            # Before they go: one of them may be the credential that acts.
            for entry in describe(ended) if describe is not None else ():
                add_entry(connection, entry)
            for each in ended:
                connection.execute(developer_queries.DELETE_CONSOLE_SESSIONS_OF_TOKEN, (developer_id, each.id))
                connection.execute(developer_queries.DELETE_ACCESS_TOKEN, (developer_id, each.id))
            return ended

        found: list[EndedToken] = await self._writer.run(write)
        return found

    # ---- invitations

    async def create_invitation(
        self, invitation: Invitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> None:
        def write(connection: apsw.Connection) -> None:
            rows(connection, developer_queries.CREATE_INVITATION, invitation_values(invitation, code_hash))
            others = (invitation.id, invitation.developer_id, invitation.email)
            connection.execute(developer_queries.REPLACE_INVITATIONS, others)
            add_entry(connection, entry)

        await self._writer.run(write)

    async def read_invitation(self, code_hash: bytes, now: int) -> Invitation | None:
        found = self._read(developer_queries.READ_INVITATION, (code_hash, now))
        return invitation_from(found[0]) if found else None

    async def list_invitations(self, now: int) -> list[Invitation]:
        return [invitation_from(row) for row in self._read(developer_queries.LIST_INVITATIONS, (now,))]

    async def delete_invitation(self, invitation_id: str, *, entry: AuditEntry | None = None) -> bool:
        return bool(await self._write(developer_queries.DELETE_INVITATION, (invitation_id,), entry))

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

        def write(connection: apsw.Connection) -> InvitationOutcome:
            require_sign_in(connection, sign_in)
            found = rows(connection, developer_queries.JUDGE_INVITATION, judged)
            if not found:
                return "gone"
            outcome: InvitationOutcome
            invitation_id, bound_id, outcome, is_bound = found[0]
            if outcome != "accepted":
                return outcome
            if bound_id is None:
                connection.execute(developer_queries.CREATE_DEVELOPER, developer_values(developer))
            else:
                connection.execute(
                    developer_queries.BIND_IDENTITY, (developer.messenger_id, developer.messenger_name, bound_id)
                )
                if not is_bound:
                    connection.execute(developer_queries.DELETE_CONSOLE_SESSIONS, (bound_id,))
            bound_by = None if sign_in is None else sign_in.id
            connection.execute(developer_queries.LINK_DEVELOPER, (bound_by, invitation_id, developer.id))
            connection.execute(developer_queries.SETTLE_INVITATIONS, (invitation_id, developer.id, developer.email))
            add_entry(connection, entry)
            return outcome

        # Whoever guesses at codes costs a read, and no write.
        if await self.read_invitation(code_hash, now) is None:
            return "gone"
        outcome: InvitationOutcome = await self._writer.run(write)
        return outcome

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

        def write(connection: apsw.Connection) -> bool:
            require_sign_in(connection, sign_in)
            if not rows(connection, developer_queries.CREATE_CONSOLE_SESSION, values):
                return False
            others = (session.developer_id, session.id, CONSOLE_SESSIONS_KEPT - 1)
            connection.execute(developer_queries.TRIM_CONSOLE_SESSIONS, others)
            add_entry(connection, entry)
            return True

        return bool(await self._writer.run(write))

    async def read_console_session(
        self, token_hash: bytes, now: int, idle_since: int
    ) -> tuple[ConsoleSession, Developer] | None:
        found = self._read(developer_queries.READ_CONSOLE_SESSION, (token_hash, idle_since, now))
        return session_and_developer_from(found[0]) if found else None

    async def touch_console_session(self, session_id: str, now: int) -> None:
        await self._write(developer_queries.TOUCH_CONSOLE_SESSION, (now, session_id))

    async def list_console_sessions(self, developer_id: str, now: int, idle_since: int) -> list[ConsoleSession]:
        found = self._read(developer_queries.LIST_CONSOLE_SESSIONS, (developer_id, idle_since, now))
        return [console_session_from(row) for row in found]

    async def delete_console_session(
        self, developer_id: str, session_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        def write(connection: apsw.Connection) -> bool:
            if not rows(connection, developer_queries.FIND_CONSOLE_SESSION, (developer_id, session_id)):
                return False
            add_entry(connection, entry)  # First, since it may be the session that acts.
            connection.execute(developer_queries.DELETE_CONSOLE_SESSION, (developer_id, session_id))
            return True

        return bool(await self._writer.run(write))

    async def delete_console_sessions(self, developer_id: str, *, entry: AuditEntry | None = None) -> int:
        def write(connection: apsw.Connection) -> int:
            if not rows(connection, developer_queries.ANY_CONSOLE_SESSION, (developer_id,)):
                return 0
            add_entry(connection, entry)
            return len(rows(connection, developer_queries.DELETE_CONSOLE_SESSIONS, (developer_id,)))

        return int(await self._writer.run(write))

    # ---- the report of a sign-in

    async def read_developer_of_sign_in(self, messenger_id: str, sign_in: str) -> Developer | None:
        found = self._read(developer_queries.FIND_DEVELOPER_OF_SIGN_IN, (sign_in, messenger_id))
        return developer_from(found[0]) if found else None

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        values = (developer_id, sign_in)

        def write(connection: apsw.Connection) -> EndedRights:
            invited = [row[0] for row in rows(connection, developer_queries.FIND_INVITED_DEVELOPERS, values)]
            sessions = rows(connection, developer_queries.DELETE_CONSOLE_SESSIONS, (developer_id,))
            tokens = rows(connection, developer_queries.DELETE_ACCESS_TOKENS_OF_SIGN_IN, values)
            invitations = rows(connection, developer_queries.DELETE_INVITATIONS_OF_SIGN_IN, values)
            unbound = rows(connection, developer_queries.UNBIND_SIGN_IN, values)
            for each in invited:
                connection.execute(developer_queries.SHUT_OUT_DEVELOPER, (each,))
                connection.execute(developer_queries.DELETE_CONSOLE_SESSIONS, (each,))
                tokens += rows(connection, developer_queries.DELETE_ACCESS_TOKENS, (each,))
                invitations += rows(connection, developer_queries.DELETE_INVITATIONS_OF, (each,))
            ended = EndedRights(
                len(sessions),
                tuple(EndedToken(*row) for row in tokens),
                tuple(row[0] for row in invitations),
                tuple(invited),
                is_unbound=bool(unbound),
            )
            for entry in describe(ended):
                add_entry(connection, entry)
            return ended

        ended: EndedRights = await self._writer.run(write)
        return ended

    async def purge_console_access(self, now: int, idle_since: int, limit: int) -> int:
        # A write waits for the disk: it is not begun when there is nothing.
        if not (
            self._read(session_queries.ANY_IDLE_CONSOLE_SESSION, (idle_since,))
            or self._read(session_queries.ANY_OUTDATED_INVITATION, (now,))
        ):
            return 0

        def write(connection: apsw.Connection) -> int:
            ended = rows(connection, session_queries.PURGE_CONSOLE_SESSIONS, (idle_since, limit))
            return len(ended) + len(rows(connection, session_queries.PURGE_INVITATIONS, (now, limit)))

        return int(await self._writer.run(write))

    # ---- the audit log

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        await self._writer.run(lambda connection: add_entry(connection, entry))

    async def read_audit_purge(self, developer_id: str) -> AuditPurge | None:
        found = self._read(developer_queries.READ_AUDIT_PURGE, (developer_id,))
        return AuditPurge(*found[0]) if found else None

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        if not self._read(developer_queries.FIND_OLD_ENTRIES, (before, 1)):
            return 0

        def write(connection: apsw.Connection) -> int:
            found = rows(connection, developer_queries.FIND_OLD_ENTRIES, (before, limit))
            for developer_id, number in Counter(row[0] for row in found).items():
                connection.execute(developer_queries.RECORD_AUDIT_PURGE, (developer_id, before, number, now))
            for key in found:
                connection.execute(developer_queries.ERASE_AUDIT_ENTRY, key)
            return len(found)

        return int(await self._writer.run(write))

    async def list_audit_entries(self, developer_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        found = self._read(developer_queries.LIST_AUDIT_ENTRIES, (developer_id, *(before or _NEWEST), limit))
        return [AuditEntry(*row) for row in found]
