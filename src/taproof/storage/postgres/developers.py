"""Developers and invitations on PostgreSQL."""

from typing import Final

import asyncpg

from taproof.core.accounts import AuditEntry, Developer, EndedRights, EndedToken, Invitation, InvitationOutcome
from taproof.core.model import DeveloperSignIn
from taproof.storage.postgres.credentials import DELETE_CONSOLE_SESSIONS
from taproof.storage.postgres.pool import PostgresPool
from taproof.storage.postgres.rights import add_entry, require_sign_in
from taproof.storage.protocol import DescribeEnded
from taproof.storage.queries import credentials as credential_queries
from taproof.storage.queries import developers as queries
from taproof.storage.rows import developer_values, invitation_values

HOLD_DEVELOPERS: Final = "LOCK TABLE developers IN SHARE ROW EXCLUSIVE MODE"
"""Until the end of the transaction nobody else adds a developer or changes one; whoever reads them is not held up."""
HOLD_INVITATION: Final = f"{queries.READ_INVITATION} FOR UPDATE"
HOLD_INVITED: Final = "SELECT FROM developers WHERE id = ANY ($1::TEXT[]) ORDER BY id FOR UPDATE"


class PostgresDevelopers(queries.DeveloperQueries[PostgresPool]):
    """See `storage.protocol.DeveloperStorage`."""

    async def create_invitation(
        self, invitation: Invitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> None:
        async def create(connection: asyncpg.Connection) -> None:
            # So that of two that are made at once one is left, and none beside one that is just taken up.
            await connection.execute(HOLD_DEVELOPERS)
            await connection.execute(queries.CREATE_INVITATION, *invitation_values(invitation, code_hash))
            others = (invitation.id, invitation.developer_id, invitation.email)
            await connection.execute(queries.REPLACE_INVITATIONS, *others)
            await add_entry(connection, entry)

        await self._database.transact(create)

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
            await connection.execute(HOLD_DEVELOPERS)
            await require_sign_in(connection, sign_in)
            if not await connection.fetch(HOLD_INVITATION, code_hash, now):
                return "gone"
            outcome: InvitationOutcome
            # A statement after those that waited, so that it sees what the others have committed.
            invitation_id, bound_id, outcome, is_bound = await connection.fetchrow(queries.JUDGE_INVITATION, *judged)
            if outcome != "accepted":
                return outcome
            if bound_id is None:
                await connection.execute(queries.CREATE_DEVELOPER, *developer_values(developer))
            else:
                account = (developer.messenger_id, developer.messenger_name)
                await connection.execute(queries.BIND_IDENTITY, *account, bound_id)
                if not is_bound:
                    await connection.execute(DELETE_CONSOLE_SESSIONS, bound_id)
            bound_by = None if sign_in is None else sign_in.id
            await connection.execute(queries.LINK_DEVELOPER, bound_by, invitation_id, developer.id)
            await connection.execute(queries.SETTLE_INVITATIONS, invitation_id, developer.id, developer.email)
            await add_entry(connection, entry)
            return outcome

        # Nobody who guesses at codes gets to hold the developers.
        if await self.read_invitation(code_hash, now) is None:
            return "gone"
        return await self._database.transact(accept)

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        values = (developer_id, sign_in)

        async def end(connection: asyncpg.Connection) -> EndedRights:
            # Nobody invites or takes up an invitation meanwhile; then, of these developers, nobody creates anything.
            await connection.execute(HOLD_DEVELOPERS)
            invited = [row[0] for row in await connection.fetch(queries.FIND_INVITED_DEVELOPERS, *values)]
            await connection.execute(HOLD_INVITED, [developer_id, *invited])
            # Invitations before credentials: whoever revokes an invitation holds it, then the session that acts.
            invitations = await connection.fetch(queries.DELETE_INVITATIONS_OF_SIGN_IN, *values)
            for each in invited:
                invitations += await connection.fetch(queries.DELETE_INVITATIONS_OF, each)
            sessions = await connection.fetch(DELETE_CONSOLE_SESSIONS, developer_id)
            tokens = await connection.fetch(credential_queries.DELETE_ACCESS_TOKENS_OF_SIGN_IN, *values)
            unbound = await connection.fetch(queries.UNBIND_SIGN_IN, *values)
            for each in invited:
                await connection.execute(queries.SHUT_OUT_DEVELOPER, each)
                await connection.execute(DELETE_CONSOLE_SESSIONS, each)
                tokens += await connection.fetch(credential_queries.DELETE_ACCESS_TOKENS, each)
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

        return await self._database.transact(end)
