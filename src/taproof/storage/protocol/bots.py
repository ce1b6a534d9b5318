"""The interface of `store.bots`."""

from typing import Literal, Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.project_bots import ProjectBot

UpdateClaim = Literal["claimed", "in_progress", "done"]


class BotStorage(Protocol):
    """Project bots, and the updates that bots receive."""

    async def list_project_bots(self) -> list[ProjectBot]:
        """Return the bots of all projects, broken or not, ordered by id."""

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        """Return the bot with this id and its project; None if no project has this bot."""

    async def mark_bot_broken(
        self, project_id: str, encrypted_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Record that the messenger has refused this token since `now`. Setting another token clears the mark.

        Return False if the project now has another token, or if the bot is already marked.
        """

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        """Store a bot's username; False if it has not changed, or if no project has this bot."""

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        """Claim a bot update. Only the caller that gets "claimed" handles it, and then calls `finish_update`.

        "in_progress": another caller claimed it after `stale_before`, so the messenger must deliver it again. With the
        time of the caller's own claim as `stale_before`, the call renews that claim, unless another caller has the
        update by now.
        """

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        """Record that an update was completely handled."""

    async def release_update(self, bot_id: int, update_id: int, claimed_at: int) -> None:
        """Release the claim made at `claimed_at`, so that the update can immediately be claimed again.

        A finished update remains finished, and a later claim of another caller remains.
        """

    async def purge_updates(self, claimed_before: int, limit: int) -> int:
        """Erase at most `limit` updates claimed before `claimed_before`; return their number."""
