"""The doctor's look at the bots of projects: which of them the service has found broken."""

from typing import Final

from taproof.cli.doctor.finding import Finding
from taproof.config.settings import Settings
from taproof.core.errors import TaproofError
from taproof.runtime.store import open_storage

_NAMED: Final = 5


async def check_project_bots(settings: Settings) -> list[Finding]:
    """Look at them in a store that is in use; there is nothing to say when there are none."""
    try:
        storage = await open_storage(settings.database_url, pgbouncer=settings.pgbouncer)
        try:
            bots = await storage.bots.list_project_bots()
        finally:
            await storage.close()
    except TaproofError:
        return []  # What is wrong with the store is another finding.
    if not bots:
        return []
    broken = [f"{bot.project_id} (@{bot.username})" for bot in bots if bot.broken_at is not None]
    count = f"{len(bots)} project{'s' if len(bots) > 1 else ''} with a bot of their own"
    if not broken:
        return [Finding("own bots", "ok", f"{count}, none of them broken")]
    named = ", ".join(broken[:_NAMED]) + (f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else "")
    return [
        Finding(
            "own bots",
            "warning",
            f"{count}; the messenger refuses the token of {named}",
            "Tell their developers to set bot_token again: @BotFather shows the new one. Until then they start no "
            "sign-ins.",
        )
    ]
