"""Check the bots of projects: the service records those whose token no longer works."""

from typing import Final

from taproof.cli.command import open_store
from taproof.cli.doctor.finding import Finding, ok, warning
from taproof.config.settings import Settings
from taproof.core.errors import TaproofError

_NAMED: Final = 5


async def check_project_bots(settings: Settings) -> list[Finding]:
    """Check the bots in an existing store. Without bots, return no finding."""
    try:
        async with open_store(settings, may_create=True) as storage:
            bots = await storage.bots.list_project_bots()
    except TaproofError:
        return []  # Another check reports the error of the store.
    if not bots:
        return []
    broken = [f"{bot.project_id} (@{bot.username})" for bot in bots if bot.broken_at is not None]
    count = "1 project with its own bot" if len(bots) == 1 else f"{len(bots)} projects with their own bots"
    if not broken:
        return [ok("own bots", f"{count}, none of them broken")]
    named = ", ".join(broken[:_NAMED]) + (f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else "")
    advice = "Ask their developers to set bot_token to the new token from @BotFather. Until then, sign-ins fail."
    return [warning("own bots", f"{count}; the messenger refuses the token of {named}", advice)]
