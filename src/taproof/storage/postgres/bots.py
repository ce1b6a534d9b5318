"""The bots of projects on PostgreSQL."""

from typing import Final, NamedTuple

import asyncpg

from taproof.core.errors import BotTaken
from taproof.core.model import BotChange
from taproof.storage.batcher import Batcher
from taproof.storage.postgres.pool import PostgresPool
from taproof.storage.postgres.transaction import add_entry
from taproof.storage.protocol import UpdateClaim
from taproof.storage.queries import bots as queries
from taproof.storage.rows import columns

HOLD_PROJECTS: Final = "SELECT FROM projects WHERE id IN ($1, $2) ORDER BY id FOR UPDATE"
"""Locks both projects before either is changed: see `postgres/__init__.py` for the lock order."""
CLAIM_UPDATES: Final = """
INSERT INTO bot_updates AS u (bot_id, update_id, claimed_at, done)
SELECT a.bot_id, a.update_id, a.claimed_at, 0
FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[]) AS a (bot_id, update_id, claimed_at)
ORDER BY a.bot_id, a.update_id
ON CONFLICT (bot_id, update_id) DO UPDATE SET claimed_at = excluded.claimed_at
  WHERE u.done = 0 AND u.claimed_at <= (
    SELECT MIN(s.stale_before) FROM unnest($1::BIGINT[], $2::BIGINT[], $4::BIGINT[])
      AS s (bot_id, update_id, stale_before) WHERE s.bot_id = excluded.bot_id AND s.update_id = excluded.update_id)
RETURNING u.bot_id, u.update_id"""
DONE_UPDATES: Final = """
SELECT u.bot_id, u.update_id FROM bot_updates u JOIN unnest($1::BIGINT[], $2::BIGINT[]) AS a (bot_id, update_id)
  ON a.bot_id = u.bot_id AND a.update_id = u.update_id WHERE u.done = 1"""
FINISH_UPDATES: Final = """
WITH claimed AS MATERIALIZED (
  SELECT u.bot_id, u.update_id
  FROM bot_updates u JOIN unnest($1::BIGINT[], $2::BIGINT[]) AS a (bot_id, update_id)
    ON a.bot_id = u.bot_id AND a.update_id = u.update_id
  ORDER BY u.bot_id, u.update_id FOR UPDATE OF u
)
UPDATE bot_updates u SET done = 1 FROM claimed c WHERE u.bot_id = c.bot_id AND u.update_id = c.update_id"""

_UPDATES: Final = 256


class _Claim(NamedTuple):
    """A call of `claim_update`."""

    bot_id: int
    update_id: int
    now: int
    stale_before: int


class PostgresBots(queries.BotQueries[PostgresPool]):
    """See `storage.protocol.BotStorage`."""

    def __init__(self, pool: PostgresPool) -> None:
        super().__init__(pool)
        self._claims = Batcher[_Claim, UpdateClaim](self._claim_updates, limit=_UPDATES, key=lambda claim: claim[:2])
        self._finished = Batcher[tuple[int, int], None](self._finish_updates, limit=_UPDATES)

    async def close(self) -> None:
        """Finish the waiting calls."""
        await self._claims.close()
        await self._finished.close()

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        return await self._claims.run(_Claim(bot_id, update_id, now, stale_before))

    async def _claim_updates(self, items: list[_Claim]) -> list[UpdateClaim]:
        values = columns(items)
        claimed = {tuple(row) for row in await self._database.fetch(CLAIM_UPDATES, *values)}
        if len(claimed) == len(items):
            return ["claimed"] * len(items)
        done = {tuple(row) for row in await self._database.fetch(DONE_UPDATES, *values[:2])}
        return ["claimed" if item[:2] in claimed else "done" if item[:2] in done else "in_progress" for item in items]

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        await self._finished.run((bot_id, update_id))

    async def _finish_updates(self, items: list[tuple[int, int]]) -> list[None]:
        await self._database.fetch(FINISH_UPDATES, *columns(items))
        return [None] * len(items)


async def hold_projects(connection: asyncpg.Connection, project_id: str, change: BotChange | None) -> None:
    """Lock a project that is about to change together with the project that loses its bot to it, if there is one."""
    if change is not None and change.loss is not None:
        await connection.execute(HOLD_PROJECTS, project_id, change.loss.project_id)


async def write_bot(connection: asyncpg.Connection, owned: tuple[str, str], change: BotChange | None) -> None:
    """Apply a change, if there is one, to the bot of a developer's project.

    Raises:
        BotTaken: the bot serves another project. The transaction is rolled back.
    """
    if change is None:
        return
    bot, entry, loss = change
    if bot is None:
        changed = await connection.fetch(queries.REMOVE_PROJECT_BOT, *owned)
    else:
        if loss is not None and await connection.fetch(queries.LOSE_PROJECT_BOT, loss.project_id, bot.bot_id):
            await add_entry(connection, loss.entry)
        values = (bot.bot_id, bot.username, bot.encrypted_token, bot.broken_at)
        try:
            changed = await connection.fetch(queries.SET_PROJECT_BOT, *values, *owned)
        except asyncpg.UniqueViolationError:
            # Raised by the index `projects_by_bot`. Of two concurrent nodes, the second waits for the first and then
            # fails here.
            raise BotTaken from None
    if changed:
        await add_entry(connection, entry)
