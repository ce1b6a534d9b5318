"""The bots of projects on PostgreSQL."""

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.errors import BotTaken
from taproof.core.model import BotChange, ProjectBot
from taproof.storage.postgres.developers import PostgresAccounts, add_entry
from taproof.storage.queries import bots as bot_queries


class PostgresBots(PostgresAccounts):
    """The part of the store that knows the bots of projects. See `storage.bot_protocol.BotStorage`."""

    async def list_project_bots(self) -> list[ProjectBot]:
        return [ProjectBot(*row) for row in await self._pool.fetch(bot_queries.LIST_PROJECT_BOTS)]

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        found = await self._pool.fetch(bot_queries.READ_PROJECT_BOT, bot_id)
        return ProjectBot(*found[0]) if found else None

    async def mark_bot_broken(
        self, project_id: str, encrypted_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        return bool(await self._change(entry, bot_queries.MARK_BOT_BROKEN, now, project_id, encrypted_token))

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        return bool(await self._pool.find(bot_queries.RENAME_BOT, username, bot_id))


async def hold_projects(connection: asyncpg.Connection, project_id: str, change: BotChange | None) -> None:
    """Hold a project that is about to be changed together with the one that loses its bot to it, if there is one."""
    if change is not None and change.loss is not None:
        await connection.execute(bot_queries.POSTGRES_HOLD_PROJECTS, project_id, change.loss.project_id)


async def write_bot(connection: asyncpg.Connection, owned: tuple[str, str], change: BotChange | None) -> None:
    """Make a change, if there is any, of the bot of a developer's project.

    Raises:
        BotTaken: it serves another project. The transaction is undone.
    """
    if change is None:
        return
    bot, entry, loss = change
    if bot is None:
        changed = await connection.fetch(bot_queries.REMOVE_PROJECT_BOT, *owned)
    else:
        if loss is not None and await connection.fetch(bot_queries.LOSE_PROJECT_BOT, loss.project_id, bot.bot_id):
            await add_entry(connection, loss.entry)
        values = (bot.bot_id, bot.username, bot.encrypted_token, bot.broken_at)
        try:
            changed = await connection.fetch(bot_queries.SET_PROJECT_BOT, *values, *owned)
        except asyncpg.UniqueViolationError:
            # The index `projects_by_bot`: of two nodes at once the second waits for the first, and then hears this.
            raise BotTaken from None
    if changed:
        await add_entry(connection, entry)
