"""The bots of projects on PostgreSQL."""

from typing import Final

from taproof.storage.batcher import Batcher
from taproof.storage.postgres.database import PostgresDatabase
from taproof.storage.queries import bots as queries
from taproof.storage.queries.bots import UpdateClaim
from taproof.storage.rows import columns

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
_Claim = tuple[int, int, int, int]
"""The arguments of a `claim_update` call."""


class PostgresBots(queries.BotQueries):
    """See `storage.queries.bots.BotQueries`."""

    _database: PostgresDatabase

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._claims = Batcher[_Claim, UpdateClaim](self._claim_updates, limit=_UPDATES, key=lambda claim: claim[:2])
        self._finished = Batcher[tuple[int, int], None](self._finish_updates, limit=_UPDATES)

    async def close(self) -> None:
        """Finish the waiting calls."""
        await self._claims.close()
        await self._finished.close()

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        return await self._claims.run((bot_id, update_id, now, stale_before))

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
