"""The beginnings of sign-in links, for the service's own bot and for project bots."""

from taproof.core.errors import MessengerUnavailable


class Deeplinks:
    """Returns the addresses that session tokens are appended to.

    The address of the service's own bot may be unknown until the messenger answers: see `set_service_bot`.

    Args:
        service_bot: that address, if it is known from the start.
        project_bots: the part of a link before the username of a project bot.
        bot_id: the id of the service's own bot; None while it is unknown.
    """

    def __init__(self, service_bot: str | None, project_bots: str = "https://t.me/", bot_id: int | None = None) -> None:
        self._service_bot = service_bot
        self._project_bots = project_bots
        self._bot_id = bot_id

    @property
    def is_known(self) -> bool:
        """True if the address for the service's own bot is known."""
        return self._service_bot is not None

    def set_service_bot(self, address: str, bot_id: int) -> None:
        """Set the address for the service's own bot, and the bot's id."""
        self._service_bot = address
        self._bot_id = bot_id

    def of_service_bot(self) -> str:
        """Return the address for the service's own bot; raises MessengerUnavailable while it is unknown."""
        if self._service_bot is None:
            raise MessengerUnavailable
        return self._service_bot

    def of_project_bot(self, username: str) -> str:
        """Return the address for a project bot."""
        return f"{self._project_bots}{username}"

    def is_service_bot(self, bot_id: int, username: str) -> bool:
        """Return whether the bot with this id or username is known to be the service's own."""
        name = (self._service_bot or "").rpartition("/")[2]
        return bot_id == self._bot_id or (name != "" and name.lower() == username.lower())
