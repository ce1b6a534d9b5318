"""The beginnings of sign-in links, for the service's own bot and for project bots."""

from typing import Final
from urllib.parse import urlsplit

import structlog

from taproof.core.errors import MessengerUnavailable
from taproof.core.service_bot import ServiceBot

_TELEGRAM: Final = frozenset({"t.me", "telegram.me", "telegram.dog"})
"""The hosts whose paths are usernames."""

_log = structlog.get_logger(__name__)


class Deeplinks:
    """Returns the addresses that session tokens are appended to.

    The address and the id of the service's own bot may be unknown until the messenger answers: see `know`. If the
    address names a bot on a host of Telegram's, the name follows the bot's username. Any other address stays.
    `project_bots` is the part of a link before the username of a project bot.
    """

    def __init__(self, service_bot: str | None, project_bots: str = "https://t.me/", bot_id: int | None = None) -> None:
        self._service_bot = service_bot
        self._project_bots = project_bots
        self._bot_id = bot_id
        self._known: ServiceBot | None = None

    @property
    def is_known(self) -> bool:
        """True if the address for the service's own bot is known."""
        return self._service_bot is not None

    def set_service_bot(self, address: str, bot_id: int) -> None:
        """Set the address for the service's own bot, and the bot's id."""
        self._service_bot = address
        self._bot_id = bot_id

    def know(self, account: ServiceBot) -> None:
        """Use what the messenger reports about the service's own bot. Create no links while it refuses the token."""
        before, self._known, self._bot_id = self._known, account, account.id
        if account.is_refused:
            if before is None or not before.is_refused:
                advice = "The messenger refuses the token, so no sign-in starts. Set the token that @BotFather shows."
                _log.error("bot_broken", advice=advice)
            return
        if before is not None and before.is_refused:
            _log.info("bot_recovered")
        address = self._service_bot
        if address is None or _names_bot(address):
            address = f"{'https://t.me' if address is None else address.rpartition('/')[0]}/{account.username}"
        if self._service_bot is None:
            _log.info("bot_known", link_base=address)
        elif address != self._service_bot:
            _log.info("bot_renamed", link_base=address)
        self._service_bot = address

    def of_bot(self, username: str | None) -> str:
        """Return the address for the project bot with this username, or with None for the service's own bot.

        Raises:
            MessengerUnavailable: the service's own bot is unknown, or the messenger refuses its token.
        """
        if username is not None:
            return f"{self._project_bots}{username}"
        if self._service_bot is None or (self._known is not None and self._known.is_refused):
            raise MessengerUnavailable
        return self._service_bot

    def is_service_bot(self, bot_id: int, username: str) -> bool:
        """Return whether the bot with this id or username is known to be the service's own."""
        name = (self._service_bot or "").rpartition("/")[2]
        return bot_id == self._bot_id or (name != "" and name.lower() == username.lower())

    def find_manager(self) -> str | None:
        """Return the username of the service's own bot if it may manage bots; otherwise None."""
        known = self._known
        return known.username if known is not None and known.manages_bots and not known.is_refused else None


def _names_bot(address: str) -> bool:
    parts = urlsplit(address)
    return parts.hostname in _TELEGRAM and parts.path.count("/") == 1
