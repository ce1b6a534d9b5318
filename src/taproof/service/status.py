"""The state of a running installation, read from its database alone. `taproof doctor` checks the configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from taproof.core.clock import DAY, MINUTE, iso8601
from taproof.core.deliveries import DeliveryCounts
from taproof.core.leases import Lease
from taproof.core.project_bots import ProjectBot
from taproof.core.service_bot import ServiceBot
from taproof.service.installation import BACKUP_MARK, read_service_bot
from taproof.storage.protocol import DatabaseFacts, Storage

_LATE: Final = 5 * MINUTE
"""A worker sends a due event within seconds, unless it is too busy or none is running."""
_OLD_BACKUP: Final = 7 * DAY
_NAMED: Final = 5
_WORK: Final = {
    "bot": "receives the updates of the bot, so users cannot sign in. Start one with the role all or bot",
    "project bots": "serves the bots of projects. Start one with the role all or bot",
    "housekeeping": "deletes expired data and sends webhooks. Start one with the role all or worker",
}
"""By the first part of a lease's name: the work that nobody does without it, and the remedy."""


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """The state of an installation at the time `now`, in ms. `last_backup` is in ISO 8601, if one was recorded."""

    now: int
    leases: Sequence[Lease]
    bots: Sequence[ProjectBot]
    webhooks: DeliveryCounts
    oldest_due: int | None
    database: DatabaseFacts
    last_backup: str | None
    service_bot: ServiceBot | None = None

    @property
    def held(self) -> list[Lease]:
        """The leases that have not expired."""
        return [lease for lease in self.leases if lease.held_until > self.now]

    @property
    def broken_bots(self) -> list[ProjectBot]:
        """The project bots whose token the messenger refuses."""
        return [bot for bot in self.bots if bot.broken_at is not None]

    @property
    def attention(self) -> list[str]:
        """One sentence for each thing that needs attention, with the next step."""
        found = []
        if not self.held:
            found.append("No process of the service is running. Start it with: taproof serve")
        else:
            names = [lease.name for lease in self.held]
            for work, remedy in _WORK.items():
                if not any(name == work or name.startswith(f"{work} ") for name in names):
                    found.append(f"No process {remedy}, and check its log.")
        if self.oldest_due is not None and self.oldest_due <= self.now - _LATE:
            found.append(
                f"Webhooks have been due since {iso8601(self.oldest_due)}. Check the log of the processes with the "
                "role all or worker, and add processes if they are busy."
            )
        if self.service_bot is not None and self.service_bot.is_refused:
            found.append(
                f"The messenger refuses the token of the service's bot (@{self.service_bot.username}). Set "
                "TAPROOF_BOT_TOKEN to the token that @BotFather shows. Until then, no sign-in starts."
            )
        if broken := [f"{bot.project_id} (@{bot.username})" for bot in self.broken_bots]:
            named = ", ".join(broken[:_NAMED]) + (f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else "")
            found.append(
                f"The messenger refuses the bot token of {named}. Ask their developers to set bot_token to the new "
                "token from @BotFather. Until then, sign-ins fail."
            )
        if self.last_backup is not None and self.last_backup < iso8601(self.now - _OLD_BACKUP):
            found.append(f"The last backup was made on {self.last_backup}. Make a new one with: taproof backup FILE")
        return found


async def read_status(storage: Storage, now: int) -> InstallationStatus:
    """Return the state of the installation at the time `now`, in ms."""
    backup = await storage.metadata.read_mark(BACKUP_MARK)
    return InstallationStatus(
        now=now,
        leases=await storage.leases.list_leases(),
        bots=await storage.bots.list_project_bots(),
        webhooks=await storage.deliveries.count_deliveries(now),
        oldest_due=await storage.deliveries.read_oldest_due(now),
        database=await storage.describe(),
        last_backup=None if backup is None else backup.decode("ascii"),
        service_bot=await read_service_bot(storage),
    )
