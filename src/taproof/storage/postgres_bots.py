"""The bots of projects on PostgreSQL."""

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.model import ProjectBot
from taproof.storage import bot_sql
from taproof.storage.bot_protocol import BotSetting
from taproof.storage.postgres_accounts import PostgresAccounts


class PostgresBots(PostgresAccounts):
    """The part of the store that knows the bots of projects. See `storage.bot_protocol.BotStorage`."""

    async def set_project_bot(
        self, developer_id: str, project_id: str, bot: ProjectBot | None, *, entry: AuditEntry | None = None
    ) -> BotSetting:
        owned = (developer_id, project_id)
        if bot is None:
            if await self._change(entry, bot_sql.REMOVE_PROJECT_BOT, *owned):
                return "set"
            return "set" if await self._pool.find(bot_sql.FIND_OWNED_PROJECT, *owned) else "not_found"
        values = (bot.bot_id, bot.username, bot.sealed_token, bot.broken_at)
        try:
            changed = await self._change(entry, bot_sql.SET_PROJECT_BOT, *values, *owned)
        except asyncpg.UniqueViolationError:
            # The index `projects_by_bot`: of two nodes at once the second waits for the first, and then hears this.
            return "taken"
        return "set" if changed else "not_found"

    async def list_project_bots(self) -> list[ProjectBot]:
        return [ProjectBot(*row) for row in await self._pool.fetch(bot_sql.LIST_PROJECT_BOTS)]

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        found = await self._pool.fetch(bot_sql.READ_PROJECT_BOT, bot_id)
        return ProjectBot(*found[0]) if found else None

    async def mark_bot_broken(
        self, project_id: str, sealed_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        return bool(await self._change(entry, bot_sql.MARK_BOT_BROKEN, now, project_id, sealed_token))

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        return bool(await self._pool.find(bot_sql.RENAME_BOT, username, bot_id))
