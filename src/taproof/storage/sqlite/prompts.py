"""The messages that show sessions to their owners, on SQLite."""

from collections.abc import Sequence

import apsw

from taproof.core.model import EndedPrompt, Hint, SessionKey, ShownPrompt
from taproof.storage.queries import prompts as queries
from taproof.storage.sqlite import notify
from taproof.storage.sqlite.database import SqliteDatabase


class SqlitePrompts(queries.PromptQueries[SqliteDatabase]):
    """See `storage.protocol.PromptStorage`."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database, self._announce_hints)

    async def _announce_hints(self, hints: Sequence[tuple[SessionKey, Hint]]) -> None:
        def write(connection: apsw.Connection) -> None:
            for key, hint in hints:
                notify.record(connection, key, hint)

        if hints:
            await self._database.writer.run(write)

    async def record_prompt(self, prompt: ShownPrompt) -> Hint | None:
        key, *shown = prompt
        found = await self._database.change(queries.RECORD_PROMPT, *shown, *key)
        return found[0][0] if found else None

    async def claim_ended_prompts(self, now: int, leased_until: int, limit: int) -> list[EndedPrompt]:
        # A write waits for the disk, so start one only if there is something to claim.
        if not self._database.rows(queries.ANY_DUE_PROMPT, (now,)):
            return []
        claimed = await self._database.change(queries.CLAIM_PROMPTS, leased_until, now, limit)
        return [queries.ended_prompt_from(row) for row in claimed]
