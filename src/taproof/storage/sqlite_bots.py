"""The bots of projects on SQLite."""

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.model import ProjectBot
from taproof.storage import bot_sql
from taproof.storage.bot_protocol import BotSetting
from taproof.storage.group_commit import rows
from taproof.storage.sqlite_access import SqliteAccess, add_entry


class SqliteBots(SqliteAccess):
    """The part of the store that knows the bots of projects. See `storage.bot_protocol.BotStorage`."""

    async def set_project_bot(
        self, developer_id: str, project_id: str, bot: ProjectBot | None, *, entry: AuditEntry | None = None
    ) -> BotSetting:
        owned = (developer_id, project_id)

        def write(connection: apsw.Connection) -> BotSetting:
            if not rows(connection, bot_sql.FIND_OWNED_PROJECT, owned):
                return "not_found"
            if bot is None:
                changed = rows(connection, bot_sql.REMOVE_PROJECT_BOT, owned)
            elif rows(connection, bot_sql.FIND_BOT_ELSEWHERE, (bot.bot_id, project_id)):
                # Asked first, as nobody else writes meanwhile: an index that refuses a row would undo the whole group.
                return "taken"
            else:
                changed = rows(connection, bot_sql.SET_PROJECT_BOT, (*_values(bot), *owned))
            if changed:
                add_entry(connection, entry)
            return "set"

        setting: BotSetting = await self._writer.run(write)
        return setting

    async def list_project_bots(self) -> list[ProjectBot]:
        return [ProjectBot(*row) for row in self._read(bot_sql.LIST_PROJECT_BOTS, ())]

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        found = self._read(bot_sql.READ_PROJECT_BOT, (bot_id,))
        return ProjectBot(*found[0]) if found else None

    async def mark_bot_broken(
        self, project_id: str, sealed_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        return bool(await self._write(bot_sql.MARK_BOT_BROKEN, (now, project_id, sealed_token), entry))

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        return bool(await self._write(bot_sql.RENAME_BOT, (username, bot_id)))


def _values(bot: ProjectBot) -> tuple[int, str, bytes, int | None]:
    return bot.bot_id, bot.username, bot.sealed_token, bot.broken_at
