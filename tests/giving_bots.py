"""Give projects their own bots, directly in the store."""

from typing import Literal

from taproof.core.accounts import AuditEntry
from taproof.core.errors import BotTaken
from taproof.core.project_bots import BotChange, ProjectBot
from taproof.core.projects import ProjectChanges
from taproof.storage.protocol import Storage


async def give_bot(
    storage: Storage, developer_id: str, project_id: str, bot: ProjectBot | None, *, entry: AuditEntry | None = None
) -> Literal["set", "not_found", "taken"]:
    """Give a project this bot and change nothing else; with None, remove its bot."""
    try:
        project = await storage.projects.update_project(
            developer_id, project_id, ProjectChanges(), 1, bot=BotChange(bot, entry)
        )
    except BotTaken:
        return "taken"
    return "not_found" if project is None else "set"
