"""The bots of projects on SQLite."""

import apsw

from taproof.storage.protocol import UpdateClaim
from taproof.storage.queries import bots as queries
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows


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
