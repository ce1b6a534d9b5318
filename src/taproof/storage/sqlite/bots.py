"""The bots of projects on SQLite."""

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.model import BotChange, ProjectBot
from taproof.storage.queries import bots as bot_queries
from taproof.storage.sqlite.access import SqliteAccess, add_entry
from taproof.storage.sqlite.group_commit import rows


class SqliteBots(SqliteAccess):
    """The part of the store that knows the bots of projects. See `storage.bot_protocol.BotStorage`."""

    async def list_project_bots(self) -> list[ProjectBot]:
        return [ProjectBot(*row) for row in self._read(bot_queries.LIST_PROJECT_BOTS, ())]

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        found = self._read(bot_queries.READ_PROJECT_BOT, (bot_id,))
        return ProjectBot(*found[0]) if found else None

    async def mark_bot_broken(
        self, project_id: str, encrypted_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        return bool(await self._write(bot_queries.MARK_BOT_BROKEN, (now, project_id, encrypted_token), entry))

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        return bool(await self._write(bot_queries.RENAME_BOT, (username, bot_id)))


def is_taken(connection: apsw.Connection, project_id: str, change: BotChange | None) -> bool:
    """Return whether the bot of a change, if there is any, serves another project, and does not lose it now.

    It is asked before anything is written, as nobody else writes meanwhile: an index that refuses a row would undo the
    whole group of writes.
    """
    if change is None or change.bot is None:
        return False
    found = rows(connection, bot_queries.FIND_BOT_ELSEWHERE, (change.bot.bot_id, project_id))
    if not found:
        return False
    holder_id, broken_at = found[0]
    return change.loss is None or holder_id != change.loss.project_id or broken_at is None


def write_bot(connection: apsw.Connection, owned: tuple[str, str], change: BotChange | None) -> None:
    """Make a change, if there is any, of the bot of a developer's project; the new one is not taken."""
    if change is None:
        return
    bot, entry, loss = change
    if bot is None:
        changed = rows(connection, bot_queries.REMOVE_PROJECT_BOT, owned)
    else:
        if loss is not None and rows(connection, bot_queries.LOSE_PROJECT_BOT, (loss.project_id, bot.bot_id)):
            add_entry(connection, loss.entry)
        values = (bot.bot_id, bot.username, bot.encrypted_token, bot.broken_at)
        changed = rows(connection, bot_queries.SET_PROJECT_BOT, (*values, *owned))
    if changed:
        add_entry(connection, entry)
