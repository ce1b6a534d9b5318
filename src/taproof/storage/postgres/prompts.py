"""The messages that show sessions to their owners, on PostgreSQL."""

from collections.abc import Sequence
from typing import Final

from taproof.core.prompts import EndedPrompt, ShownPrompt
from taproof.core.sessions import Hint, SessionKey
from taproof.storage.batcher import Batcher
from taproof.storage.postgres.database import PostgresDatabase
from taproof.storage.postgres.notify import Announcer
from taproof.storage.queries import prompts as queries
from taproof.storage.rows import columns

_WRITES: Final = 256

# The lock waits for a cancellation in progress, and keeps the next one waiting. So either this statement sees that the
# session is cancelled, or the cancellation ends the prompt that this statement adds.
RECORD_PROMPTS: Final = f"""
WITH held AS MATERIALIZED (
  SELECT a.*, s.* FROM (
    SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::TEXT[])
      AS each (day, token_hash, bot_id, messenger_id, message_id, language) ORDER BY day, token_hash
  ) AS a CROSS JOIN LATERAL (
    SELECT x.expires_at, CASE WHEN x.withdrawn = 1 THEN x.cancelled_at END AS ended_at, x.hint FROM sessions x
    WHERE x.day = ANY ($1::INTEGER[]) AND x.day = a.day AND x.token_hash = a.token_hash
      AND COALESCE(x.opener_id, '') = a.messenger_id
    LIMIT 1 FOR SHARE
  ) AS s
), recorded AS (
  INSERT INTO prompts (day, token_hash, bot_id, messenger_id, message_id, language, expires_at, ended_at, leased_until)
  SELECT h.day, h.token_hash, h.bot_id, h.messenger_id, h.message_id, h.language, h.expires_at, h.ended_at, 0
  FROM held h {queries.REPLACE_PROMPT}
)
SELECT day, token_hash, hint FROM held"""
# This runs after the statement that changed the sessions, so that it sees prompts that were added meanwhile.
END_PROMPTS: Final = """
WITH held AS MATERIALIZED (
  SELECT a.* FROM (
    SELECT * FROM unnest($1::INTEGER[], $2::BYTEA[], $3::BIGINT[]) AS each (day, token_hash, ended_at)
    ORDER BY day, token_hash
  ) AS a CROSS JOIN LATERAL (
    SELECT FROM prompts q WHERE q.day = a.day AND q.token_hash = a.token_hash LIMIT 1 FOR UPDATE
  ) AS q
)
UPDATE prompts q SET ended_at = h.ended_at, leased_until = 0 FROM held h
WHERE q.day = h.day AND q.token_hash = h.token_hash"""
CLAIM_PROMPTS: Final = """
WITH due AS MATERIALIZED (
  SELECT day, token_hash FROM prompts WHERE ended_at IS NOT NULL AND leased_until <= $2
  ORDER BY leased_until LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE prompts q SET leased_until = $1 FROM due d WHERE q.day = d.day AND q.token_hash = d.token_hash
RETURNING q.day, q.token_hash, q.bot_id, q.messenger_id, q.message_id, q.language, q.leased_until"""


class PostgresPrompts(queries.PromptQueries):
    """See `storage.queries.prompts.PromptQueries`."""

    _database: PostgresDatabase

    def __init__(self, database: PostgresDatabase, announcer: Announcer) -> None:
        super().__init__(database, self._announce_hints)
        self._announcer = announcer
        # A single statement cannot insert two prompts of one session.
        self._records = Batcher[ShownPrompt, Hint | None](self._record, limit=_WRITES, key=lambda each: each.key)

    async def close(self) -> None:
        """Finish the waiting calls."""
        await self._records.close()

    async def _announce_hints(self, hints: Sequence[tuple[SessionKey, Hint]]) -> None:
        self._announcer.tell(hints)

    async def record_prompt(self, prompt: ShownPrompt) -> Hint | None:
        return await self._records.run(prompt)

    async def _record(self, items: list[ShownPrompt]) -> list[Hint | None]:
        values = columns((*key, *shown) for key, *shown in items)
        rows = await self._database.fetch(RECORD_PROMPTS, set(values[0]), *values)
        found: dict[tuple[int, bytes], Hint | None] = {(row[0], row[1]): row[2] for row in rows}
        return [found.get(each.key) for each in items]

    async def claim_ended_prompts(self, now: int, leased_until: int, limit: int) -> list[EndedPrompt]:
        claimed = await self._database.fetch(CLAIM_PROMPTS, leased_until, now, limit)
        return [queries.ended_prompt_from(row) for row in claimed]
