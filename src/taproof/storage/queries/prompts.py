"""The messages that show sessions to their owners."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from taproof.core.clock import HOUR
from taproof.core.prompts import EndedPrompt, Renewal, ShownPrompt
from taproof.core.return_code import RETURN_LIFETIME
from taproof.core.sessions import Hint, SessionKey
from taproof.storage.queries.database import Database, Purge, Queries
from taproof.storage.queries.transaction import Transaction

REPLACE_PROMPT: Final = """
ON CONFLICT (day, token_hash) DO UPDATE SET bot_id = excluded.bot_id, messenger_id = excluded.messenger_id,
  message_id = excluded.message_id, language = excluded.language, expires_at = excluded.expires_at,
  ended_at = excluded.ended_at, leased_until = 0"""
RECORD_PROMPT: Final = f"""
INSERT INTO prompts (day, token_hash, bot_id, messenger_id, message_id, language, expires_at, ended_at, leased_until)
SELECT s.day, s.token_hash, $1, $2, $3, $4, s.expires_at, CASE WHEN s.withdrawn = 1 THEN s.cancelled_at END, 0
FROM sessions s WHERE s.day = $5 AND s.token_hash = $6 AND COALESCE(s.opener_id, '') = $2 {REPLACE_PROMPT}
RETURNING (SELECT s.hint FROM sessions s WHERE s.day = prompts.day AND s.token_hash = prompts.token_hash)"""
FIND_MESSAGE: Final = """
SELECT message_id FROM prompts WHERE day = $1 AND token_hash = $2 AND bot_id = $3 AND messenger_id = $4"""
READ_RENEWAL: Final = """
SELECT p.message_id, COALESCE(p.renewals, 0), p.renewed_at, p.renewed_for FROM sessions s
LEFT JOIN prompts p ON p.day = s.day AND p.token_hash = s.token_hash
WHERE s.day = $1 AND s.token_hash = $2 AND COALESCE(s.opener_id, '') = $3 AND s.status || '' = 'pending'"""
# The number of renewals that was read is a condition, so only one of several taps renews a prompt.
RENEW_PROMPT: Final = """
INSERT INTO prompts (day, token_hash, bot_id, messenger_id, language, expires_at, leased_until, renewals, renewed_at,
  renewed_for)
SELECT s.day, s.token_hash, $1, $2, $3, s.expires_at, 0, 1, $4, $5
FROM sessions s WHERE s.day = $6 AND s.token_hash = $7 AND COALESCE(s.opener_id, '') = $2 AND s.status || '' = 'pending'
ON CONFLICT (day, token_hash) DO UPDATE SET message_id = NULL, renewals = prompts.renewals + 1,
  renewed_at = excluded.renewed_at, renewed_for = excluded.renewed_for
WHERE prompts.renewals = $8 AND prompts.renewed_for IS DISTINCT FROM excluded.renewed_for
RETURNING renewals"""
END_PROMPT: Final = "UPDATE prompts SET ended_at = $1, leased_until = 0 WHERE day = $2 AND token_hash = $3"
FIND_PROMPTS: Final = """
SELECT day, token_hash, message_id, hint FROM prompts WHERE messenger_id = $1 AND bot_id = $2 AND expires_at > $3
ORDER BY day, token_hash"""
# After Confirm, the user needs no further message.
READ_REACHABLE: Final = """
SELECT hint FROM sessions
WHERE day = $1 AND token_hash = $2 AND status || '' = 'pending' AND hint NOT IN ('return', 'unreachable')"""
KEEP_HINT: Final = "UPDATE prompts SET hint = $1 WHERE day = $2 AND token_hash = $3"
SET_UNREACHABLE: Final = "UPDATE sessions SET hint = 'unreachable' WHERE day = $1 AND token_hash = $2"
SET_REACHABLE: Final = """
UPDATE sessions SET hint = $1
WHERE day = $2 AND token_hash = $3 AND status || '' = 'pending' AND hint = 'unreachable' RETURNING hint"""
ANY_DUE_PROMPT: Final = "SELECT 1 FROM prompts WHERE ended_at IS NOT NULL AND leased_until <= $1 LIMIT 1"
CLAIM_PROMPTS: Final = """
UPDATE prompts SET leased_until = $1 WHERE (day, token_hash) IN
  (SELECT day, token_hash FROM prompts WHERE ended_at IS NOT NULL AND leased_until <= $2 ORDER BY leased_until LIMIT $3)
RETURNING day, token_hash, bot_id, messenger_id, message_id, language, leased_until"""
FINISH_PROMPT: Final = "DELETE FROM prompts WHERE day = $1 AND token_hash = $2 AND leased_until = $3 RETURNING day"
POSTPONE_PROMPT: Final = """
UPDATE prompts SET leased_until = $1 WHERE day = $2 AND token_hash = $3 AND leased_until = $4 RETURNING day"""
PURGE_PROMPTS: Final = Purge(
    "prompts",
    "day, token_hash",
    f"expires_at <= $1 AND (ended_at IS NULL OR expires_at <= $1 - {HOUR - RETURN_LIFETIME})",
)

Announce = Callable[[Sequence[tuple[SessionKey, Hint]]], Awaitable[None]]
"""Announces new hints to the other processes."""


class PromptQueries(Queries):
    """The messages that show sessions to their owners."""

    def __init__(self, database: Database, announce: Announce) -> None:
        super().__init__(database)
        self._announce = announce

    async def record_prompt(self, prompt: ShownPrompt) -> Hint | None:
        """Record which message shows a session, instead of an earlier one; return the session's hint.

        If the application has cancelled the session, the message must be edited. Record nothing and return None if the
        session does not belong to this account.
        """
        key, *shown = prompt
        found = await self._database.change(RECORD_PROMPT, *shown, *key)
        return found[0][0] if found else None

    async def renew_prompt(self, prompt: ShownPrompt, tap_id: str, now: int, limit: int, pause: int) -> Renewal:
        """Begin to replace the message that shows a session by a fresh one, because of the tap `tap_id`.

        `record_prompt` ends it. A session has at most `limit` fresh messages, and at most one within `pause` ms. Of
        several taps at the same time, one begins. The same tap begins again until the message is recorded.
        """
        key, bot_id, messenger_id, _, language = prompt
        found = await self._database.read(READ_RENEWAL, *key, messenger_id)
        if not found:
            return Renewal("refused")
        message_id, renewals, renewed_at, renewed_for = found[0]
        if renewed_for == tap_id and message_id is None:
            return Renewal("begun")
        if renewed_for == tap_id or (renewed_at is not None and now < renewed_at + pause):
            return Renewal("sent", message_id)
        if renewals >= limit:
            return Renewal("refused")
        values = (bot_id, messenger_id, language, now, tap_id, *key, renewals)
        if not await self._database.change(RENEW_PROMPT, *values):
            return Renewal("sent")
        return Renewal("begun", message_id)

    async def find_message(self, key: SessionKey, bot_id: int, messenger_id: str) -> int | None:
        """Return the id of this bot's message that shows a session to this account; None if none is recorded."""
        found = await self._database.read(FIND_MESSAGE, *key, bot_id, messenger_id)
        return found[0][0] if found else None

    async def mark_unreachable(self, bot_id: int, messenger_id: str, now: int) -> Sequence[SessionKey]:
        """Give the account's pending sessions with this bot the hint "unreachable"; return the changed ones."""

        async def mark(transaction: Transaction) -> list[SessionKey]:
            changed: list[SessionKey] = []
            for *key, _, _ in await transaction.fetch(FIND_PROMPTS, messenger_id, bot_id, now):
                for (hint,) in await transaction.lock(READ_REACHABLE, *key):
                    await transaction.fetch(KEEP_HINT, hint, *key)
                    await transaction.fetch(SET_UNREACHABLE, *key)
                    changed.append(SessionKey(*key))
            return changed

        if not await self._database.read(FIND_PROMPTS, messenger_id, bot_id, now):
            return []  # Most users who block the bot have no prompt, and a transaction waits for the disk.
        changed = await self._database.in_transaction(mark)
        await self._announce([(key, "unreachable") for key in changed])
        return changed

    async def mark_reachable(self, bot_id: int, messenger_id: str, now: int) -> Sequence[tuple[SessionKey, Hint]]:
        """Give these sessions their earlier hints again; return the changed ones with their hints.

        A session whose prompt was never delivered gets the hint "waiting".
        """

        async def mark(transaction: Transaction) -> list[tuple[SessionKey, Hint]]:
            changed: list[tuple[SessionKey, Hint]] = []
            for *key, message_id, hint in await transaction.fetch(FIND_PROMPTS, messenger_id, bot_id, now):
                # Without a message, the user must open the link again.
                earlier = "waiting" if message_id is None else hint or "opened"
                for (restored,) in await transaction.fetch(SET_REACHABLE, earlier, *key):
                    changed.append((SessionKey(*key), restored))
            return changed

        if not await self._database.read(FIND_PROMPTS, messenger_id, bot_id, now):
            return []
        changed = await self._database.in_transaction(mark)
        await self._announce(changed)
        return changed

    async def claim_ended_prompts(self, now: int, leased_until: int, limit: int) -> list[EndedPrompt]:
        """Claim messages that must be edited and that no other process holds at `now`. Claims end at `leased_until`."""
        # A write waits for the disk, so start one only if there is something to claim.
        if not await self._database.read(ANY_DUE_PROMPT, now):
            return []
        return [ended_prompt_from(row) for row in await self._database.change(CLAIM_PROMPTS, leased_until, now, limit)]

    async def finish_prompt(self, ended: EndedPrompt) -> bool:
        """Erase a claimed prompt, because its message needs no edit any more; False if the claim was lost."""
        return bool(await self._database.change(FINISH_PROMPT, *ended.prompt.key, ended.leased_until))

    async def postpone_prompt(self, ended: EndedPrompt, until: int) -> bool:
        """Give up a claim, so that the message is claimed again from `until` on; False if the claim was lost."""
        return bool(await self._database.change(POSTPONE_PROMPT, until, *ended.prompt.key, ended.leased_until))

    async def purge_prompts(self, now: int, limit: int) -> int:
        """Erase at most `limit` prompts whose sessions have expired, at the latest; return their number.

        A message that must still be edited is kept for another hour.
        """
        # `expires_at` is that of the session when the prompt was sent. Confirm may postpone it by up to
        # `RETURN_LIFETIME`.
        return await self._database.purge(PURGE_PROMPTS, now - RETURN_LIFETIME, limit)


def ended_prompt_from(row: Sequence[Any]) -> EndedPrompt:
    """Return the prompt of a row of `CLAIM_PROMPTS`."""
    day, token_hash, *shown, leased_until = row
    return EndedPrompt(ShownPrompt(SessionKey(day, token_hash), *shown), leased_until)
