"""Know what sign-in links begin with, for the service's own bot and the bots of projects."""

from taproof.core.errors import MessengerUnavailable


class Deeplinks:
    """Returns the addresses that session tokens are appended to.

    The address for the service's own bot may be known only once the messenger has answered: see `set_service_bot`.

    Args:
        service_bot: that address, where it is known from the start.
        project_bots: what comes before the username of a project's own bot in its links.
        bot_id: the id of the service's own bot; None as long as it is not known.
    """

    def __init__(self, service_bot: str | None, project_bots: str = "https://t.me/", bot_id: int | None = None) -> None:
        self._service_bot = service_bot
        self._project_bots = project_bots
        self._bot_id = bot_id

    @property
    def is_known(self) -> bool:
        """Whether the address for the service's own bot is known."""
        return self._service_bot is not None

    def set_service_bot(self, address: str, bot_id: int) -> None:
        """Learn the address for the service's own bot, and the bot's id."""
        self._service_bot = address
        self._bot_id = bot_id

    def of_service_bot(self) -> str:
        """Return the address for the service's own bot; raises MessengerUnavailable as long as it is not known."""
        if self._service_bot is None:
            raise MessengerUnavailable
        return self._service_bot

    def of_project_bot(self, username: str) -> str:
        """Return the address for a project's own bot."""
        return f"{self._project_bots}{username}"

    def is_service_bot(self, bot_id: int, username: str) -> bool:
        """Tell whether the bot with this id or username is the service's own, as far as that is known."""
        name = (self._service_bot or "").rpartition("/")[2]
        return bot_id == self._bot_id or (name != "" and name.lower() == username.lower())
