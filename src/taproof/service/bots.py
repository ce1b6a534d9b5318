"""The bots of projects: how a developer gives a project its own, and what becomes of it.

A project with a bot of its own gives out that bot's links alone. When the messenger refuses its token, its new sign-ins
are refused too until another token is set (`SignIn.create_session`): never does another bot speak in its place.

A bot belongs to who has its token. The messenger has one valid token of each bot at a time: when it accepts the one
that is set now and refuses the one that another project has, the bot is taken away from that project.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import structlog

from taproof.core.accounts import Actor, AuditAction, AuditEntry, Developer
from taproof.core.bot_token import bot_id_of
from taproof.core.clock import MINUTE, SECOND, Clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import BotTaken, BotTokenRefused, DecryptionFailed, InvalidRequest, RateLimited
from taproof.core.model import BotChange, BotLoss, Project, ProjectBot, ProjectChanges
from taproof.core.rate_limit import Gcra, KeyedGcra
from taproof.service.associated_data import bot_token_associated_data
from taproof.service.audit import audit_entry, service_entry
from taproof.service.projects import FindBot, Projects
from taproof.storage.protocol import Storage

CHECKS: Final = Gcra(20, MINUTE, 20)
"""How often the messenger is asked for one developer."""
_FORM: Final = 'bot_token must be a bot\'s token as @BotFather shows it, like 123456789:AbC…, or "" for none.'
_SERVICE_BOT: Final = "This is the service's own bot. Make another one for this project, with @BotFather."

_log = structlog.get_logger(__name__)


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
        encryptor: encrypts the tokens.
        clock: returns the time in ms.
        entropy: returns random bytes.
        projects: changes projects.
        ask: asks the messenger whose a token is.
        is_service_bot: tells whether the bot with this id or username is the service's own.
        limited: called when a developer has tried too many tokens.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        clock: Clock,
        entropy: Entropy,
        *,
        projects: Projects,
        ask: AskMessenger,
        is_service_bot: Callable[[int, str], bool],
        limited: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._projects = projects
        self._ask = ask
        self._is_service_bot = is_service_bot
        self._limited = limited
        self._checks = KeyedGcra(CHECKS)
        self._clock = clock
        self._entropy = entropy

    # ---- what developers do

    async def check_token(self, developer: Developer, token: str) -> CheckedBot:
        """Ask the messenger for a developer whose this token is.

        Raises:
            InvalidRequest, BotTokenRefused, MessengerUnavailable: it is no bot's, or that cannot be known just now.
            BotTaken: it is the service's own bot's.
            RateLimited: it was asked for this developer too often.
        """
        bot_id = bot_id_of(token)
        if bot_id is None:
            raise InvalidRequest(_FORM)
        if self._is_service_bot(bot_id, ""):
            raise BotTaken(_SERVICE_BOT)
        now = self._clock()
        if not self._checks.spend(developer.id, now):
            self._limited()
            raise RateLimited(max(1, -(-self._checks.standing(developer.id, now).until_next // SECOND)))
        account = await self._ask(token)
        if account.id != bot_id:
            raise BotTokenRefused
        if self._is_service_bot(bot_id, account.username):
            raise BotTaken(_SERVICE_BOT)
        return CheckedBot(bot_id, account.username, token)

    async def set_bot(self, actor: Actor, project_id: str, token: str) -> None:
        """Give a project the bot with this token, in the place of any other; "" takes its bot away.

        Raises:
            InvalidRequest, ProjectNotFound, BotTokenRefused, BotTaken, RateLimited, MessengerUnavailable: and nothing
                is changed.
        """
        await self._projects.update_project(actor, project_id, ProjectChanges(), find_bot=self.change(actor, token))

    def change(self, actor: Actor, bot_token: str) -> FindBot:
        """Return what `Projects` finds out with, in a change of its own, what becomes of a project's bot.

        It raises what `check_token` does, and BotTaken also when the bot works for another project.

        Raises:
            InsufficientScope: the acting credential may only read; the messenger is not asked.
        """
        actor.grant.require("write")

        async def find_bot(project: Project) -> BotChange:
            if not bot_token:
                details: dict[str, Any] = {"bot_username": project.bot_username}
                return BotChange(None, self._entry(actor, "bot.removed", project, details))
            bot = await self.check_token(actor.developer, bot_token)
            loss = await self._loss(bot, project)
            encrypted = self._encryptor.encrypt(bot.token, bot_token_associated_data(project.id), self._entropy)
            details = {"bot_id": bot.id, "bot_username": bot.username}
            entry = self._entry(actor, "bot.set", project, details)
            return BotChange(ProjectBot(project.id, bot.id, bot.username, encrypted), entry, loss)

        return find_bot

    async def _loss(self, bot: CheckedBot, project: Project) -> BotLoss | None:
        """Return what another project loses when this one gets a bot; None when it is no other's.

        Raises:
            BotTaken: it works for the other project, or may do so.
        """
        holder = await self._storage.bots.read_project_bot(bot.id)
        if holder is None or holder.project_id == project.id:
            return None
        if holder.broken_at is None:
            await self._require_dead(holder, bot.token)
        other = await self._storage.projects.read_project(holder.project_id)
        if other is None:
            return None
        details = {"bot_id": holder.bot_id, "bot_username": holder.username}
        entry = service_entry(
            other.developer_id, "bot.removed", self._clock(), self._entropy, subject=other.id, details=details
        )
        return BotLoss(other.id, entry)

    async def _require_dead(self, holder: ProjectBot, token: str) -> None:
        """Mark the bot of a project broken whose token is not the one that the messenger has just accepted.

        It is asked all the same, since it alone knows which one is the newer; then nobody waits for the project's own
        bot to find that out.

        Raises:
            BotTaken: it is the same token, or valid too, or cannot be opened.
            MessengerUnavailable: there is no answer.
        """
        try:
            held = self.open_token(holder)
        except DecryptionFailed:
            raise BotTaken from None
        if held == token:
            raise BotTaken
        try:
            await self._ask(held)
        except BotTokenRefused:
            if await self.mark_broken(holder):
                advice = "The messenger refuses its token, and another project has set a newer one. Nothing is to do."
                _log.error("own_bot_broken", project_id=holder.project_id, bot_username=holder.username, advice=advice)
        else:
            raise BotTaken

    def _entry(self, actor: Actor, action: AuditAction, project: Project, details: dict[str, Any]) -> AuditEntry:
        return audit_entry(actor, action, self._clock(), self._entropy, subject=project.id, details=details)

    # ---- what who runs the bots asks and finds out

    async def list_bots(self) -> list[ProjectBot]:
        """Return the bots of all projects, broken or not."""
        return await self._storage.bots.list_project_bots()

    async def read_bot(self, bot_id: int) -> ProjectBot | None:
        """Return the bot with this id; None when it is no project's."""
        return await self._storage.bots.read_project_bot(bot_id)

    def open_token(self, bot: ProjectBot) -> str:
        """Return a bot's token.

        Raises:
            DecryptionFailed: it is encrypted under another master key, or for another project.
        """
        return self._encryptor.decrypt(bot.encrypted_token, bot_token_associated_data(bot.project_id))

    async def mark_broken(self, bot: ProjectBot) -> bool:
        """Note that the messenger refuses a bot's token. False when that was noted, or another token is set by now."""
        project = await self._storage.projects.read_project(bot.project_id)
        if project is None:
            return False
        now = self._clock()
        details = {"bot_id": bot.bot_id, "bot_username": bot.username}
        entry = service_entry(
            project.developer_id, "bot.broken", now, self._entropy, subject=project.id, details=details
        )
        return await self._storage.bots.mark_bot_broken(project.id, bot.encrypted_token, now, entry=entry)

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        """Note a bot's username, which its links are made of from now on; False when it is known already."""
        return await self._storage.bots.rename_bot(bot_id, username)
