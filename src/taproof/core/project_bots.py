"""The bots of projects, and their changes."""

from dataclasses import dataclass, field
from typing import NamedTuple

from taproof.core.accounts import AuditEntry


@dataclass(frozen=True, slots=True)
class ProjectBot:
    """A project bot with its encrypted token."""

    project_id: str
    bot_id: int
    username: str
    encrypted_token: bytes
    broken_at: int | None = None


class BotLoss(NamedTuple):
    """A project that loses its broken bot to another project; `entry` informs the losing project's developer.

    It keeps a broken bot without a token, so that its developer decides which bot replaces it.
    """

    project_id: str
    entry: AuditEntry


class BotChange(NamedTuple):
    """A project's new bot, None to remove the bot; `loss` is the project that had it before."""

    bot: ProjectBot | None
    entry: AuditEntry | None = None
    loss: BotLoss | None = None


@dataclass(frozen=True, slots=True)
class CheckedBot:
    """A bot whose token the messenger has just accepted; `loss` is the project that loses this bot."""

    id: int
    username: str
    token: str = field(repr=False)
    loss: BotLoss | None = None


class RemovedBot(NamedTuple):
    """A project's bot that is to be removed. `username` is None if the project has no bot."""

    username: str | None
