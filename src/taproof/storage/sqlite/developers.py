"""Developers and invitations on SQLite."""

import apsw

from taproof.core.accounts import AuditEntry, Developer, EndedRights, EndedToken, Invitation, InvitationOutcome
from taproof.core.model import DeveloperSignIn
from taproof.storage.protocol import DescribeEnded
from taproof.storage.queries import credentials as credential_queries
from taproof.storage.queries import developers as queries
from taproof.storage.rows import developer_values, invitation_values
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.rights import add_entry, require_sign_in


class SqliteDevelopers(queries.DeveloperQueries[SqliteDatabase]):
    """See `storage.protocol.DeveloperStorage`."""

    async def create_invitation(
        self, invitation: Invitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> None:
        def write(connection: apsw.Connection) -> None:
            rows(connection, queries.CREATE_INVITATION, invitation_values(invitation, code_hash))
            others = (invitation.id, invitation.developer_id, invitation.email)
            connection.execute(queries.REPLACE_INVITATIONS, others)
            add_entry(connection, entry)

        await self._database.writer.run(write)

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
            found = rows(connection, queries.JUDGE_INVITATION, judged)
            if not found:
                return "gone"
            outcome: InvitationOutcome
            invitation_id, bound_id, outcome, is_bound = found[0]
            if outcome != "accepted":
                return outcome
            if bound_id is None:
                connection.execute(queries.CREATE_DEVELOPER, developer_values(developer))
            else:
                connection.execute(queries.BIND_IDENTITY, (developer.messenger_id, developer.messenger_name, bound_id))
                if not is_bound:
                    connection.execute(credential_queries.DELETE_CONSOLE_SESSIONS, (bound_id,))
            bound_by = None if sign_in is None else sign_in.id
            connection.execute(queries.LINK_DEVELOPER, (bound_by, invitation_id, developer.id))
            connection.execute(queries.SETTLE_INVITATIONS, (invitation_id, developer.id, developer.email))
            add_entry(connection, entry)
            return outcome

        # Whoever guesses at codes costs a read, and no write.
        if await self.read_invitation(code_hash, now) is None:
            return "gone"
        return await self._database.writer.run(write)

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        values = (developer_id, sign_in)

        def write(connection: apsw.Connection) -> EndedRights:
            invited = [row[0] for row in rows(connection, queries.FIND_INVITED_DEVELOPERS, values)]
            sessions = rows(connection, credential_queries.DELETE_CONSOLE_SESSIONS, (developer_id,))
            tokens = rows(connection, credential_queries.DELETE_ACCESS_TOKENS_OF_SIGN_IN, values)
            invitations = rows(connection, queries.DELETE_INVITATIONS_OF_SIGN_IN, values)
            unbound = rows(connection, queries.UNBIND_SIGN_IN, values)
            for each in invited:
                connection.execute(queries.SHUT_OUT_DEVELOPER, (each,))
                connection.execute(credential_queries.DELETE_CONSOLE_SESSIONS, (each,))
                tokens += rows(connection, credential_queries.DELETE_ACCESS_TOKENS, (each,))
                invitations += rows(connection, queries.DELETE_INVITATIONS_OF, (each,))
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

        return await self._database.writer.run(write)
