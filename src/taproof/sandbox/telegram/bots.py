"""The bots of the sandbox: the service's own, and further ones that tests and projects bring.

Each has its own chats, updates, webhook and flood limit; what they have in common is the people. One that waits in a
long poll holds a few hundred bytes here, so hundreds of them are cheap.
"""

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.messenger import Messenger
from taproof.sandbox.telegram.methods import BotMethods
from taproof.sandbox.telegram.people import People
from taproof.sandbox.telegram.request import ApiError
from taproof.sandbox.telegram.webhook import UpdateSender

BOT_LIMIT: Final = 1_000
PHONE_PATH: Final = "/sandbox/phone"
_USERNAME: Final = re.compile(r"(?i:[a-z][a-z0-9_]{1,28}bot)")
_FIRST_NAME: Final = "Taproof sandbox"


def unauthorized() -> ApiError:
    """Return the refusal of a token that is no bot's, or no longer."""
    return ApiError(401, "Unauthorized")


@dataclass(slots=True, eq=False)
class SandboxBot:
    """A bot: the token that it is called with, and what answers the calls."""

    token: str
    messenger: Messenger
    webhook: UpdateSender
    methods: BotMethods

    @property
    def id(self) -> int:
        """Return the number that its token begins with; it stays when the token is revoked."""
        bot_id: int = self.messenger.bot["id"]
        return bot_id

    @property
    def username(self) -> str:
        """Return its name, without the `@`."""
        username: str = self.messenger.bot["username"]
        return username


class SandboxBots:
    """Every bot, the service's own first.

    Args:
        people: who may write to them.
        own_hosts: where webhooks may lie without HTTPS or on any port.
        clock: returns the time in ms.
        entropy: returns random bytes.
        base_url: what links to the phone begin with.
    """

    def __init__(self, people: People, own_hosts: OwnHosts, clock: Clock, entropy: Entropy, base_url: str) -> None:
        self.people: Final = people
        self._own_hosts = own_hosts
        self._clock = clock
        self._entropy = entropy
        self._base_url = base_url
        self._bots: dict[int, SandboxBot] = {}
        self._is_closed = False

    def __iter__(self) -> Iterator[SandboxBot]:
        """Go through all of them."""
        return iter(self._bots.values())

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._bots)

    @property
    def first(self) -> SandboxBot:
        """Return the service's own bot."""
        return next(iter(self._bots.values()))

    def find(self, username: str) -> SandboxBot | None:
        """Return a bot by its name, in any case."""
        return next((bot for bot in self if bot.username.lower() == username.lower()), None)

    def authenticate(self, token: str) -> SandboxBot:
        """Return the bot that is called with this token.

        Raises:
            ApiError: 401, it is no bot's.
        """
        number = token.partition(":")[0]
        # Sixteen digits at most: Python refuses to read a number of very many.
        bot = self._bots.get(int(number)) if len(number) <= 16 else None
        if bot is None or not hmac.compare_digest(token.encode(), bot.token.encode()):
            raise unauthorized()
        return bot

    def is_id(self, number: int) -> bool:
        """Tell whether a bot has this id: people have others."""
        return number in self._bots

    def add(self, username: str, name: str = _FIRST_NAME, token: str = "") -> SandboxBot:
        """Add a bot; without a token it gets one, and an id that nobody has."""
        if not token:
            bot_id = 10**9 + int.from_bytes(self._entropy(4))
            while bot_id in self._bots or bot_id in self.people:
                bot_id += 1
            token = self._new_token(bot_id)
        bot_id = int(token.partition(":")[0])
        messenger = Messenger(bot_id, username, name, self.people, clock=self._clock, entropy=self._entropy)
        if self._is_closed:
            messenger.close()
        webhook = UpdateSender(messenger.updates, self._own_hosts, self._clock)
        methods = BotMethods(messenger, webhook, self._own_hosts, self._clock)
        self._bots[bot_id] = bot = SandboxBot(token, messenger, webhook, methods)
        return bot

    async def revoke(self, bot: SandboxBot) -> None:
        """Give a bot a new token, as the messenger does when its owner says that the old one has leaked.

        Whoever polls with the old one is told so at once; the webhook and the updates that waited went with it.
        """
        bot.token = self._new_token(bot.id)
        bot.messenger.updates.end_poll(unauthorized())
        bot.messenger.updates.clear()
        await bot.webhook.set(None)

    def rename(self, bot: SandboxBot, username: str | None, name: str | None) -> None:
        """Change a bot's names; None leaves one as it is. Links with the old username lead nowhere from then on."""
        bot.messenger.bot["username"] = username or bot.username
        bot.messenger.bot["first_name"] = name or bot.messenger.bot["first_name"]

    def link_base(self, bot: SandboxBot) -> str:
        """Return what a deeplink to this bot begins with, before `?start=`."""
        return f"{self._base_url}{PHONE_PATH}" + ("" if bot is self.first else f"/{bot.username}")

    def shown(self, bot: SandboxBot) -> dict[str, Any]:
        """Return a bot as the control API has it, without its token."""
        return {
            "id": bot.id,
            "username": bot.username,
            "name": bot.messenger.bot["first_name"],
            "link_base": self.link_base(bot),
            "is_first": bot is self.first,
        }

    def close(self) -> None:
        """Let everything that waits come to its end."""
        self._is_closed = True
        for bot in self:
            bot.messenger.close()

    def _new_token(self, bot_id: int) -> str:
        # Telegram's own form: a number, a colon, 35 characters.
        return f"{bot_id}:{self._entropy(16).hex()}sbx"


def is_bot_username(username: str) -> bool:
    """Tell whether a bot can have this name: 5 to 32 letters, digits and underscores that end in `bot`.

    https://core.telegram.org/bots/features#creating-a-new-bot
    """
    return _USERNAME.fullmatch(username) is not None
