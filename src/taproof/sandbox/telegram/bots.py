"""The bots of the sandbox: the service's own, and others that tests and projects add.

Each bot has its own chats, updates, webhook and flood limit; all bots share the people. A bot that waits in a long poll
needs a few hundred bytes here, so hundreds of bots are cheap.
"""

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.messenger import Messenger
from taproof.sandbox.telegram.methods import BotMethods
from taproof.sandbox.telegram.people import Person, simulated_people
from taproof.sandbox.telegram.request import ApiError
from taproof.sandbox.telegram.webhook import UpdateSender

BOT_LIMIT: Final = 1_000
PHONE_PATH: Final = "/sandbox/phone"
NEW_BOT_PATH: Final = "/sandbox/newbot"
"""The beginning of links that suggest a bot, in place of https://t.me/newbot."""
BOT_USERNAME: Final = re.compile(r"(?i:[a-z][a-z0-9_]{1,28}bot)")
"""The names that a bot can have (https://core.telegram.org/bots/features#creating-a-new-bot)."""
_FIRST_NAME: Final = "Taproof sandbox"


@dataclass(slots=True, eq=False)
class SandboxBot:
    """A bot: the token in its calls, and the parts that answer them."""

    token: str
    messenger: Messenger
    webhook: UpdateSender
    methods: BotMethods
    manager_id: int | None = None
    """The bot that manages this one, and can read its token."""
    owner_id: int = 0
    """The person who created a managed bot."""

    @property
    def id(self) -> int:
        """The number at the start of the token. It stays the same when the token is revoked."""
        return int(self.messenger.bot["id"])

    @property
    def username(self) -> str:
        """The bot's username, without the `@`."""
        return str(self.messenger.bot["username"])


class SandboxBots:
    """All bots, the service's own first. The links to the phone begin with `base_url`."""

    def __init__(self, own_hosts: OwnHosts, clock: Clock, entropy: Entropy, base_url: str) -> None:
        self.people: Final = simulated_people()
        self._own_hosts = own_hosts
        self._clock = clock
        self._entropy = entropy
        self._base_url = base_url
        self.by_id: Final[dict[int, SandboxBot]] = {}
        self._is_closed = False

    def __iter__(self) -> Iterator[SandboxBot]:
        """Iterate over all bots."""
        return iter(self.by_id.values())

    @property
    def first(self) -> SandboxBot:
        """The service's own bot."""
        return next(iter(self.by_id.values()))

    def find(self, username: str) -> SandboxBot | None:
        """Return a bot by its username, ignoring case; None if there is none."""
        return next((bot for bot in self if bot.username.lower() == username.lower()), None)

    def has_name(self, username: str, but_not: int) -> bool:
        """Return whether a bot or person whose id is not `but_not` has this username, ignoring case."""
        named = [*self, *self.people.values()]
        return any((each.username or "").lower() == username.lower() and each.id != but_not for each in named)

    def authenticate(self, token: str) -> SandboxBot:
        """Return the bot that has this token.

        Raises:
            ApiError: 401, no bot has this token.
        """
        number = token.partition(":")[0]
        # At most 16 digits: Python refuses to parse very long numbers.
        bot = self.by_id.get(int(number)) if len(number) <= 16 else None
        if bot is None or not hmac.compare_digest(token.encode(), bot.token.encode()):
            raise ApiError(401, "Unauthorized")
        return bot

    def add(self, username: str, name: str = _FIRST_NAME, token: str = "") -> SandboxBot:
        """Add a bot and return it. Without a token, it gets a new one, with an unused id."""
        if not token:
            bot_id = 10**9 + int.from_bytes(self._entropy(4))
            while bot_id in self.by_id or bot_id in self.people:
                bot_id += 1
            token = self._new_token(bot_id)
        bot_id = int(token.partition(":")[0])
        messenger = Messenger(bot_id, username, name, self.people, clock=self._clock, entropy=self._entropy)
        if self._is_closed:
            messenger.close()
        webhook = UpdateSender(messenger.updates, self._own_hosts, self._clock)
        methods = BotMethods(messenger, webhook, self._own_hosts, self._clock, partial(self._managed_token, bot_id))
        self.by_id[bot_id] = bot = SandboxBot(token, messenger, webhook, methods)
        return bot

    def add_managed(self, username: str, name: str, manager: SandboxBot, owner: Person) -> SandboxBot:
        """Add a bot that a person creates for another bot to manage, and return it."""
        bot = self.add(username, name)
        bot.manager_id, bot.owner_id = manager.id, owner.id
        self._tell_manager(bot)
        return bot

    def _tell_manager(self, bot: SandboxBot) -> None:
        """Notify a bot's manager that the bot was created or got another token."""
        if bot.manager_id is not None:
            content = {"user": self.people[bot.owner_id].as_user(), "bot": dict(bot.messenger.bot)}
            self.by_id[bot.manager_id].messenger.updates.add("managed_bot", bot.owner_id, content)

    def _managed_token(self, manager_id: int, bot_id: int) -> str | None:
        """Return the token of a bot for its manager; None for any other bot."""
        bot = self.by_id.get(bot_id)
        return bot.token if bot is not None and bot.manager_id == manager_id else None

    async def revoke(self, bot: SandboxBot) -> None:
        """Give a bot a new token, as the messenger does when the owner reports a leak of the old one.

        A poll with the old token fails at once. The webhook and the pending updates are removed too.
        """
        bot.token = self._new_token(bot.id)
        bot.messenger.updates.end_poll(ApiError(401, "Unauthorized"))
        bot.messenger.updates.clear()
        await bot.webhook.set(None)
        self._tell_manager(bot)

    def rename(self, bot: SandboxBot, username: str | None, name: str | None) -> None:
        """Change a bot's names; None keeps a name. Links with the old username no longer work."""
        bot.messenger.bot["username"] = username or bot.username
        bot.messenger.bot["first_name"] = name or bot.messenger.bot["first_name"]

    def shown(self, bot: SandboxBot) -> dict[str, Any]:
        """Return a bot in the control API's format, without its token. Its deeplinks are `<link_base>?start=…`."""
        is_first = bot is self.first
        return {
            "id": bot.id,
            "username": bot.username,
            "name": bot.messenger.bot["first_name"],
            "link_base": f"{self._base_url}{PHONE_PATH}" + ("" if is_first else f"/{bot.username}"),
            "is_first": is_first,
            "can_manage_bots": bot.methods.can_manage_bots,
        }

    def close(self) -> None:
        """End all waiting calls, and refuse new ones."""
        self._is_closed = True
        for bot in self:
            bot.messenger.close()

    def _new_token(self, bot_id: int) -> str:
        # The form of Telegram's tokens: a number, a colon, 35 characters.
        return f"{bot_id}:{self._entropy(16).hex()}sbx"
