"""Give projects their bots, and track whether the messenger still accepts these bots' tokens.

A project with a project bot issues links to that bot only. When the messenger refuses the bot's token, the project
starts no new sign-ins until another token is set: another bot never takes its place. A bot belongs to the holder of its
only valid token. When the messenger accepts the new token and refuses the token of another project, that project loses
the bot.

A change of a bot has three steps: the caller checks the other fields (`Projects.check_changes`), `Bots` checks the
token with the messenger and returns a `CheckedBot`, and `Projects` writes all changes in one step.
"""

import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import structlog

from taproof.contract.audit import AuditAction
from taproof.core.accounts import Actor, AuditEntry
from taproof.core.bot_token import bot_id_of
from taproof.core.clock import MINUTE, SECOND, Clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.errors import BotTaken, BotTokenRefused, DecryptionFailed, InvalidRequest, RateLimited
from taproof.core.project_bots import BotLoss, CheckedBot, ProjectBot, RemovedBot
from taproof.core.projects import ProjectChanges
from taproof.core.rate_limit import Gcra, KeyedGcra
from taproof.core.service_bot import ServiceBot
from taproof.service.audit import service_entry
from taproof.service.installation import SERVICE_BOT_MARK, read_service_bot
from taproof.service.project_access import read_project_for
from taproof.service.projects import Projects
from taproof.storage.protocol import Storage

CHECKS: Final = Gcra(20, MINUTE, 20)
"""The rate limit for checking bot tokens with the messenger, per developer."""
_FORM: Final = 'bot_token must be a bot\'s token as @BotFather shows it, like 123456789:AbC…, or "" for none.'
_SERVICE_BOT: Final = "This is the service's own bot. Create another bot for this project with @BotFather."
_SUPERSEDED: Final = "The messenger refuses its token, and another project has set a newer one. No action is needed."

_log = structlog.get_logger(__name__)


class BotAccount(NamedTuple):
    """A bot as the messenger reports it. `username` has no `@`."""

    id: int
    username: str


AskMessenger = Callable[[str], Awaitable[BotAccount]]
"""Returns the bot with this token. Raises BotTokenRefused, or MessengerUnavailable if there is no response."""


class Bots:
    """Gives projects their bots, and records the changes that the messenger reports.

    Args:
        encryptor: encrypts the tokens.
        projects: changes projects.
        ask: returns the bot to which a token belongs, as the messenger reports it.
        is_service_bot: returns whether the bot with this id or username is the service's own.
        limited: called when a developer checks too many tokens.
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
        limited: Callable[[], None],
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

    # ---- for developers

    async def set_bot(self, actor: Actor, project_id: str, token: str) -> None:
        """Give a project the bot with this token, which replaces any previous bot; "" removes the bot.

        A call that raises an error of `check_change` or `Projects.update_project` changes nothing.
        """
        bot = await self.check_change(actor, project_id, token)
        await self._projects.update_project(actor, project_id, ProjectChanges(), bot=bot)

    async def check_change(self, actor: Actor, project_id: str, token: str) -> CheckedBot | RemovedBot:
        """Return the bot that a project gets with this token or, for "", the bot that it loses; see `check_token`."""
        actor.grant.require("write")
        project = await read_project_for(self._storage, actor.developer, project_id, "write")
        return await self.check_token(actor, token, project_id) if token else RemovedBot(project.bot_username)

    async def check_token(self, actor: Actor, token: str, project_id: str = "") -> CheckedBot:
        """Ask the messenger to which bot a token belongs, and return that bot for a project; "" for a new project.

        Raises:
            InsufficientScope: the acting credential lacks the scope `write`; the messenger is not asked.
            InvalidRequest, BotTokenRefused, MessengerUnavailable: no bot has this token, or there is no response.
            BotTaken: the bot is the service's own, or serves another project.
            RateLimited: too many tokens were checked for this developer.
        """
        actor.grant.require("write")
        bot_id = bot_id_of(token)
        if bot_id is None:
            raise InvalidRequest(_FORM)
        if self._is_service_bot(bot_id, ""):
            raise BotTaken(_SERVICE_BOT)
        now = self._clock()
        if not self._checks.spend(actor.developer.id, now):
            self._limited()
            raise RateLimited(max(1, -(-self._checks.standing(actor.developer.id, now).until_next // SECOND)))
        account = await self._ask(token)
        if account.id != bot_id:
            raise BotTokenRefused
        if self._is_service_bot(bot_id, account.username):
            raise BotTaken(_SERVICE_BOT)
        return CheckedBot(bot_id, account.username, token, await self._loss(bot_id, token, project_id))

    async def _loss(self, bot_id: int, token: str, project_id: str) -> BotLoss | None:
        """Return the loss for the other project that has this bot, if any. Raise BotTaken if it may serve that one."""
        holder = await self._storage.bots.read_project_bot(bot_id)
        if holder is None or holder.project_id == project_id:
            return None
        if holder.broken_at is None:
            await self._require_dead(holder, token)
        other = await self._storage.projects.read_project(holder.project_id)
        if other is None:
            return None
        return BotLoss(other.id, self._entry(other.developer_id, "bot.removed", holder, self._clock()))

    async def _require_dead(self, holder: ProjectBot, token: str) -> None:
        """Mark a project's bot as broken if the messenger accepts another token and refuses the project's token.

        Only the messenger knows which token is newer. Without asking it, the developer would have to wait until the
        project's bot discovers that its token no longer works.

        Raises:
            BotTaken: the project's token is the same, is also valid, or cannot be decrypted.
            MessengerUnavailable: there is no response.
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
                project_id, bot_username = holder.project_id, holder.username
                _log.error("project_bot_broken", project_id=project_id, bot_username=bot_username, advice=_SUPERSEDED)
        else:
            raise BotTaken

    # ---- for the processes that run the bots

    async def list_project_bots(self) -> list[ProjectBot]:
        """Return the bots of all projects, broken or not."""
        return await self._storage.bots.list_project_bots()

    async def read_bot(self, bot_id: int) -> ProjectBot | None:
        """Return the project bot with this id; None if there is none."""
        return await self._storage.bots.read_project_bot(bot_id)

    def open_token(self, bot: ProjectBot) -> str:
        """Return a bot's token. Raise DecryptionFailed if its master key is not known."""
        return self._encryptor.decrypt(bot.encrypted_token, associated_data_of("bot_token", bot.project_id))

    async def mark_broken(self, bot: ProjectBot) -> bool:
        """Mark a bot as broken: the messenger refuses its token. Return False if it is marked or has another token."""
        project = await self._storage.projects.read_project(bot.project_id)
        if project is None:
            return False
        now = self._clock()
        entry = self._entry(project.developer_id, "bot.broken", bot, now)
        return await self._storage.bots.mark_bot_broken(project.id, bot.encrypted_token, now, entry=entry)

    def _entry(self, developer_id: str, action: AuditAction, bot: ProjectBot, now: int) -> AuditEntry:
        details = {"bot_id": bot.bot_id, "bot_username": bot.username}
        return service_entry(developer_id, action, now, self._entropy, subject=bot.project_id, details=details)

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        """Store a bot's new username, which its links contain from now on; False if it is already stored."""
        return await self._storage.bots.rename_bot(bot_id, username)

    async def record_service_bot(self, account: ServiceBot) -> None:
        """Store the account of the service's own bot, for processes that do not ask the messenger."""
        if await self.read_service_bot() != account:
            await self._storage.metadata.set_mark(SERVICE_BOT_MARK, _dump(account))

    async def record_refusal(self, token_hash: str) -> None:
        """Store that the messenger refuses the token of the service's own bot, unless a process has a newer token."""
        known = await self.read_service_bot()
        if known is not None and known.token_hash == token_hash and not known.is_refused:
            refused = _dump(dataclasses.replace(known, is_refused=True))
            await self._storage.metadata.set_mark(SERVICE_BOT_MARK, refused, instead_of=_dump(known))

    async def read_service_bot(self) -> ServiceBot | None:
        """Return the account of the service's own bot as the messenger last reported it; None before the first time."""
        return await read_service_bot(self._storage)


def _dump(account: ServiceBot) -> bytes:
    return json.dumps(dataclasses.asdict(account)).encode()
