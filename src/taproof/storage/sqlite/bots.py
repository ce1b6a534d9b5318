"""The bots of projects on SQLite."""

import apsw

from taproof.core.model import BotChange
from taproof.storage.protocol import UpdateClaim
from taproof.storage.queries import bots as queries
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.transaction import add_entry


class SqliteBots(queries.BotQueries[SqliteDatabase]):
    """See `storage.protocol.BotStorage`."""

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        def write(connection: apsw.Connection) -> UpdateClaim:
            if rows(connection, queries.CLAIM_UPDATE, (bot_id, update_id, now, stale_before)):
                return "claimed"
            done = rows(connection, queries.READ_UPDATE, (bot_id, update_id))[0][0]
            return "done" if done else "in_progress"

        return await self._database.writer.run(write)

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        await self._database.change(queries.FINISH_UPDATE, bot_id, update_id)


def is_taken(connection: apsw.Connection, project_id: str, change: BotChange | None) -> bool:
    """Return whether the bot of a change serves another project that does not lose it in this change.

    Call it before any write. No other writer runs meanwhile, and a row refused by an index would undo the whole group
    of writes.
    """
    if change is None or change.bot is None:
        return False
    found = rows(connection, queries.FIND_BOT_ELSEWHERE, (change.bot.bot_id, project_id))
    if not found:
        return False
    holder_id, broken_at = found[0]
    return change.loss is None or holder_id != change.loss.project_id or broken_at is None


def write_bot(connection: apsw.Connection, owned: tuple[str, str], change: BotChange | None) -> None:
    """Apply a change, if there is one, to the bot of a developer's project. The new bot must not be taken."""
    if change is None:
        return
    bot, entry, loss = change
    if bot is None:
        changed = rows(connection, queries.REMOVE_PROJECT_BOT, owned)
    else:
        if loss is not None and rows(connection, queries.LOSE_PROJECT_BOT, (loss.project_id, bot.bot_id)):
            add_entry(connection, loss.entry)
        values = (bot.bot_id, bot.username, bot.encrypted_token, bot.broken_at)
        changed = rows(connection, queries.SET_PROJECT_BOT, (*values, *owned))
    if changed:
        add_entry(connection, entry)
