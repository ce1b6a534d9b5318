"""Project bots, and the updates that bots receive."""

from typing import Final, Literal

from taproof.core.accounts import AuditEntry
from taproof.core.project_bots import BotChange, ProjectBot
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.transaction import Transaction

_BOT: Final = "SELECT id, bot_id, bot_username, encrypted_bot_token, bot_broken_at FROM projects"
FIND_BOT_ELSEWHERE: Final = "SELECT id, bot_broken_at FROM projects WHERE bot_id = $1 AND id <> $2"
SET_PROJECT_BOT: Final = """
UPDATE projects SET bot_id = $1, bot_username = $2, encrypted_bot_token = $3, bot_broken_at = $4
WHERE id = $5 RETURNING id"""
REMOVE_PROJECT_BOT: Final = """
UPDATE projects SET bot_id = NULL, bot_username = NULL, encrypted_bot_token = NULL, bot_broken_at = NULL
WHERE id = $1 AND bot_username IS NOT NULL RETURNING id"""
# `bot_username` and `bot_broken_at` are kept, so that no other bot is used until the developer decides.
LOSE_PROJECT_BOT: Final = """
UPDATE projects SET bot_id = NULL, encrypted_bot_token = NULL
WHERE id = $1 AND bot_id = $2 AND bot_broken_at IS NOT NULL RETURNING id"""
LIST_PROJECT_BOTS: Final = f"{_BOT} WHERE bot_id IS NOT NULL ORDER BY bot_id"
READ_PROJECT_BOT: Final = f"{_BOT} WHERE bot_id = $1"
MARK_BOT_BROKEN: Final = """
UPDATE projects SET bot_broken_at = $1 WHERE id = $2 AND encrypted_bot_token = $3 AND bot_broken_at IS NULL
RETURNING id"""
RENAME_BOT: Final = "UPDATE projects SET bot_username = $1 WHERE bot_id = $2 AND bot_username <> $1 RETURNING id"
# ---- updates

CLAIM_UPDATE: Final = """
INSERT INTO bot_updates (bot_id, update_id, claimed_at, done) VALUES ($1, $2, $3, 0)
ON CONFLICT (bot_id, update_id) DO UPDATE SET claimed_at = excluded.claimed_at
  WHERE bot_updates.done = 0 AND bot_updates.claimed_at <= $4
RETURNING update_id"""
READ_UPDATE: Final = "SELECT done FROM bot_updates WHERE bot_id = $1 AND update_id = $2"
FINISH_UPDATE: Final = "UPDATE bot_updates SET done = 1 WHERE bot_id = $1 AND update_id = $2"
RELEASE_UPDATE: Final = """
UPDATE bot_updates SET claimed_at = 0 WHERE bot_id = $1 AND update_id = $2 AND done = 0 AND claimed_at <= $3"""
PURGE_UPDATES: Final = Purge("bot_updates", "bot_id, update_id", "claimed_at < $1")


UpdateClaim = Literal["claimed", "in_progress", "done"]


class BotQueries(Queries):
    """Project bots, and the updates that bots receive."""

    async def list_project_bots(self) -> list[ProjectBot]:
        """Return the bots of all projects, broken or not, ordered by id."""
        return [ProjectBot(*row) for row in await self._database.read(LIST_PROJECT_BOTS)]

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        """Return the bot with this id and its project; None if no project has this bot."""
        found = await self._database.read(READ_PROJECT_BOT, bot_id)
        return ProjectBot(*found[0]) if found else None

    async def mark_bot_broken(
        self, project_id: str, encrypted_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Record that the messenger has refused this token since `now`. Setting another token clears the mark.

        Return False if the project now has another token, or if the bot is already marked.
        """
        return bool(await self._database.change(MARK_BOT_BROKEN, now, project_id, encrypted_token, entry=entry))

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        """Store a bot's username; False if it has not changed, or if no project has this bot."""
        return bool(await self._database.change(RENAME_BOT, username, bot_id))

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        """Claim a bot update. Only the caller that gets "claimed" handles it, and then calls `finish_update`.

        "in_progress": another caller claimed it after `stale_before`, so the messenger must deliver it again. With the
        time of the caller's own claim as `stale_before`, the call renews that claim, unless another caller has the
        update by now.
        """

        async def claim(transaction: Transaction) -> UpdateClaim:
            if await transaction.fetch(CLAIM_UPDATE, bot_id, update_id, now, stale_before):
                return "claimed"
            ((done,),) = await transaction.fetch(READ_UPDATE, bot_id, update_id)
            return "done" if done else "in_progress"

        return await self._database.in_transaction(claim)

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        """Record that an update was completely handled."""
        await self._database.change(FINISH_UPDATE, bot_id, update_id)

    async def release_update(self, bot_id: int, update_id: int, claimed_at: int) -> None:
        """Release the claim made at `claimed_at`, so that the update can immediately be claimed again.

        A finished update remains finished, and a later claim of another caller remains.
        """
        await self._database.change(RELEASE_UPDATE, bot_id, update_id, claimed_at)

    async def purge_updates(self, claimed_before: int, limit: int) -> int:
        """Erase at most `limit` updates claimed before `claimed_before`; return their number."""
        return await self._database.purge(PURGE_UPDATES, claimed_before, limit)


async def is_taken(transaction: Transaction, project_id: str, change: BotChange | None) -> bool:
    """Return whether a change's bot serves another project that does not lose it in this change.

    Call this before any write. A row that an index refuses would roll back the whole group of writes on SQLite.
    """
    if change is None or change.bot is None:
        return False
    found = await transaction.fetch(FIND_BOT_ELSEWHERE, change.bot.bot_id, project_id)
    if not found:
        return False
    holder_id, broken_at = found[0]
    return change.loss is None or holder_id != change.loss.project_id or broken_at is None


async def write_bot(transaction: Transaction, project_id: str, change: BotChange | None) -> None:
    """Apply a change, if any, to the bot of a locked project. The new bot must not be taken."""
    if change is None:
        return
    bot, entry, loss = change
    if bot is None:
        changed = await transaction.fetch(REMOVE_PROJECT_BOT, project_id)
    else:
        if loss is not None and await transaction.fetch(LOSE_PROJECT_BOT, loss.project_id, bot.bot_id):
            await transaction.add_entry(loss.entry)
        values = (bot.bot_id, bot.username, bot.encrypted_token, bot.broken_at)
        changed = await transaction.add(SET_PROJECT_BOT, *values, project_id)
    if changed:
        await transaction.add_entry(entry)
