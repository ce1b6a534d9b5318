"""Project bots that a developer creates in Telegram with one tap, managed by the service's own bot.

The service suggests a bot with a link. Its username proves later which project the bot was suggested for: it carries an
HMAC over the project, its current bot, the developer's messenger account and the time. So nothing is stored, and a
suggestion is good for one bot, for at most half an hour, and for the account of the developer who got it.

Source: https://core.telegram.org/bots/api-changelog#april-3-2026 (Bot API 9.6),
https://core.telegram.org/api/bots/managed-bots.
"""

import base64
import hmac
import re
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

import structlog

from taproof.core.accounts import Actor
from taproof.core.bot_token import bot_id_of
from taproof.core.clock import MINUTE, Clock
from taproof.core.encryption import Encryptor
from taproof.core.errors import (
    BotTaken,
    BotTokenRefused,
    DecryptionFailed,
    InsufficientRole,
    InvalidRequest,
    ProjectNotFound,
    RateLimited,
)
from taproof.core.names import visible_name
from taproof.core.projects import Project
from taproof.core.roles import PERMITTED
from taproof.service.bots import BotAccount, Bots
from taproof.storage.protocol import Storage

SLOT: Final = 15 * MINUTE
"""A suggestion is accepted in the slot of its creation and in the next one."""
NAME_LIMIT: Final = 64
"""The maximum length of a bot's name (core.telegram.org/method/bots.createBot)."""
_PURPOSE: Final = "suggested bots"
_TAG_LENGTH: Final = 13
"""65 bits in base32. A username has at most 32 characters."""
_STEM_LENGTH: Final = 12
_NOT_IN_USERNAMES: Final = re.compile(r"[^a-z0-9]")

_REFUSALS: Final = (
    *(BotTaken, BotTokenRefused, DecryptionFailed, InsufficientRole, InvalidRequest, ProjectNotFound, RateLimited),
)
_log = structlog.get_logger(__name__)


class ManagedBots:
    """Suggests bots to developers, and gives them to their projects once Telegram has created them.

    Args:
        encryptor: derives the key of the usernames.
        bots: checks tokens and gives projects their bots.
        find_manager: returns the username of the service's own bot if it may manage bots, else None.
        link_base: the beginning of the links, such as `https://t.me/newbot/`.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        clock: Clock,
        *,
        bots: Bots,
        find_manager: Callable[[], str | None],
        link_base: str,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._bots = bots
        self._find_manager = find_manager
        self._link_base = link_base

    async def suggest_bot(self, actor: Actor, project: Project) -> str | None:
        """Return the link with which a developer creates their project's bot; None if that is not possible.

        It is possible if the service's bot may manage bots, the developer has linked a messenger account, and their
        role and credential permit changes to the project.
        """
        messenger_id = actor.developer.messenger_id
        may_write = "write" in actor.grant.scopes and project.role is not None and "write" in PERMITTED[project.role]
        manager = self._find_manager() if messenger_id is not None and may_write else None
        if manager is None or messenger_id is None:
            return None
        username = _suggested_username(self._encryptor.derive(_PURPOSE), project, messenger_id, self._clock() // SLOT)
        name = quote(visible_name(project.name)[:NAME_LIMIT], safe="")
        return f"{self._link_base}{manager}/{username}?name={name}"

    async def adopt_bot(self, creator_id: str, account: BotAccount, fetch_token: Callable[[], Awaitable[str]]) -> bool:
        """Give a project the bot that was suggested for it, or the new token of a bot that it has already.

        `creator_id` is the messenger account that created the bot, or owns it now. `fetch_token` returns the token, and
        is called only if a project may get the bot. Repeating a call changes nothing. Return whether a project was
        changed.

        Raises:
            MessengerUnavailable: the token could not be checked; nothing was changed.
        """
        developer = await self._storage.developers.read_developer_by_messenger_id(creator_id)
        if developer is None:
            return False
        project = await self._project_of(developer.id, creator_id, account)
        if project is None:
            return False
        token = await fetch_token()
        held = await self._bots.read_bot(account.id)
        try:
            if bot_id_of(token) != account.id or (held is not None and self._bots.open_token(held) == token):
                return False
            await self._bots.set_bot(Actor(developer, "service"), project.id, token)
        except _REFUSALS as refusal:
            _log.warning("managed_bot_refused", project_id=project.id, reason=refusal.code)
            return False
        _log.info("managed_bot_adopted", project_id=project.id, bot_username=account.username)
        return True

    async def _project_of(self, developer_id: str, messenger_id: str, account: BotAccount) -> Project | None:
        """Return the developer's project for which this bot was suggested, or which has it already."""
        slot, keys = self._clock() // SLOT, self._encryptor.derive_all(_PURPOSE)
        for project in await self._storage.projects.list_projects(developer_id):
            expected = {_suggested_username(key, project, messenger_id, slot - ago) for key in keys for ago in (0, 1)}
            if project.bot_id == account.id or account.username.lower() in expected:
                return project
        return None


def _suggested_username(key: str, project: Project, messenger_id: str, slot: int) -> str:
    """Return the username of the bot that is suggested for a project in a slot of time. It changes with the bot."""
    text = f"{project.id}\n{project.bot_id}\n{messenger_id}\n{slot}"
    digest = hmac.digest(bytes.fromhex(key), text.encode(), "sha256")
    tag = base64.b32encode(digest).decode().lower()[:_TAG_LENGTH]
    stem = _NOT_IN_USERNAMES.sub("", project.name.lower())[:_STEM_LENGTH]
    # A username begins with a letter and ends with "bot" (core.telegram.org/bots/features#creating-a-new-bot).
    return f"{stem if stem[:1].isalpha() else 'signin'}_{tag}_bot"
