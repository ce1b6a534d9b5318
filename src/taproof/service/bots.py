"""The bots of projects: how a developer gives a project its own, and what becomes of it.

A project with a bot of its own gives out that bot's links alone. When the messenger refuses its token, its new sign-ins
are refused too until another token is set (`SignIn.create_session`): never does another bot speak in its place.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from taproof.core.accounts import Actor, AuditAction, AuditEntry
from taproof.core.bot_token import bot_id_of
from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import BotTaken, BotTokenRefused, InvalidRequest
from taproof.core.model import BotChange, Project, ProjectBot, ProjectChanges
from taproof.core.sealing import Sealer
from taproof.service.audit import audit_entry, service_entry
from taproof.service.bindings import bot_token_binding
from taproof.service.projects import FindBot, Projects
from taproof.storage.protocol import Storage

_FORM: Final = 'bot_token must be a bot\'s token as @BotFather shows it, like 123456789:AbC…, or "" for none.'
_SERVICE_BOT: Final = "This is the service's own bot. Make another one for this project, with @BotFather."


class BotAccount(NamedTuple):
    """What the messenger says of a bot; `username` without the `@`."""

    id: int
    username: str


AskMessenger = Callable[[str], Awaitable[BotAccount]]
"""Returns the bot that has a token. Raises BotTokenRefused, or MessengerUnavailable when there is no answer."""


@dataclass(frozen=True, slots=True)
class CheckedBot:
    """A bot whose token the messenger has just accepted."""

    id: int
    username: str
    token: str = field(repr=False)


class Bots:
    """Gives projects their bots, and keeps what is found out about these.

    Args:
        storage: the store.
        sealer: seals the tokens.
        clock: returns the time in ms.
        entropy: returns random bytes.
        projects: changes projects.
        ask: asks the messenger whose a token is.
        is_service_bot: tells whether the bot with this id or username is the service's own.
    """

    def __init__(
        self,
        storage: Storage,
        sealer: Sealer,
        clock: Clock,
        entropy: Entropy,
        *,
        projects: Projects,
        ask: AskMessenger,
        is_service_bot: Callable[[int, str], bool],
    ) -> None:
        self._storage = storage
        self._sealer = sealer
        self._projects = projects
        self._ask = ask
        self._is_service_bot = is_service_bot
        self._clock = clock
        self._entropy = entropy

    # ---- what developers do

    async def check_token(self, token: str) -> CheckedBot:
        """Ask the messenger whose this token is.

        Raises:
            InvalidRequest, BotTokenRefused, MessengerUnavailable: it is no bot's, or that cannot be known just now.
            BotTaken: it is the service's own bot's.
        """
        bot_id = bot_id_of(token)
        if bot_id is None:
            raise InvalidRequest(_FORM)
        if self._is_service_bot(bot_id, ""):
            raise BotTaken(_SERVICE_BOT)
        account = await self._ask(token)
        if account.id != bot_id:
            raise BotTokenRefused
        if self._is_service_bot(bot_id, account.username):
            raise BotTaken(_SERVICE_BOT)
        return CheckedBot(bot_id, account.username, token)

    async def set_bot(self, actor: Actor, project_id: str, token: str) -> None:
        """Give a project the bot with this token, in the place of any other; "" takes its bot away.

        Raises:
            InvalidRequest, ProjectNotFound, BotTokenRefused, BotTaken, MessengerUnavailable: and nothing is changed.
        """
        await self._projects.update_project(actor, project_id, ProjectChanges(), find_bot=self.change(actor, token))

    def change(self, actor: Actor, bot_token: str) -> FindBot:
        """Return what `Projects` finds out with, in a change of its own, what becomes of a project's bot.

        It raises what `check_token` does.
        """

        async def find_bot(project: Project) -> BotChange:
            if not bot_token:
                details: dict[str, Any] = {"bot_username": project.bot_username}
                return BotChange(None, self._entry(actor, "bot.removed", project, details))
            bot = await self.check_token(bot_token)
            sealed = self._sealer.seal(bot.token, bot_token_binding(project.id), self._entropy)
            details = {"bot_id": bot.id, "bot_username": bot.username}
            return BotChange(
                ProjectBot(project.id, bot.id, bot.username, sealed), self._entry(actor, "bot.set", project, details)
            )

        return find_bot

    def _entry(self, actor: Actor, action: AuditAction, project: Project, details: dict[str, Any]) -> AuditEntry:
        return audit_entry(actor, action, self._clock(), self._entropy, subject=project.id, details=details)

    # ---- what who runs the bots asks and finds out

    async def list_bots(self) -> list[ProjectBot]:
        """Return the bots of all projects, broken or not."""
        return await self._storage.list_project_bots()

    async def read_bot(self, bot_id: int) -> ProjectBot | None:
        """Return the bot with this id; None when it is no project's."""
        return await self._storage.read_project_bot(bot_id)

    def open_token(self, bot: ProjectBot) -> str:
        """Return a bot's token.

        Raises:
            SealBroken: it is sealed under another master key, or for another project.
        """
        return self._sealer.unseal(bot.sealed_token, bot_token_binding(bot.project_id))

    async def mark_broken(self, bot: ProjectBot) -> bool:
        """Note that the messenger refuses a bot's token. False when that was noted, or another token is set by now."""
        project = await self._storage.read_project(bot.project_id)
        if project is None:
            return False
        now = self._clock()
        details = {"bot_id": bot.bot_id, "bot_username": bot.username}
        entry = service_entry(
            project.developer_id, "bot.broken", now, self._entropy, subject=project.id, details=details
        )
        return await self._storage.mark_bot_broken(project.id, bot.sealed_token, now, entry=entry)

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        """Note a bot's username, which its links are made of from now on; False when it is known already."""
        return await self._storage.rename_bot(bot_id, username)
