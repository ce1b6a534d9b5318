"""What the service asks of a store about the bots of projects. See `protocol.py`."""

from typing import Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.model import ProjectBot


class BotStorage(Protocol):
    """The part of the store that knows the bots of projects."""

    async def list_project_bots(self) -> list[ProjectBot]:
        """Return the bots of all projects, broken or not, by id."""

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        """Return the bot with this id and whose it is; None when it is no project's."""

    async def mark_bot_broken(
        self, project_id: str, encrypted_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Write down that the messenger refuses this token since `now`, until another is set; once.

        False, and nothing is changed, when the project has another token by now or that was written down before.
        """

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        """Write down a bot's username; False when it is that already, or the bot is no project's."""
