"""What sign-in links begin with."""

from taproof.core.errors import MessengerUnavailable


class MessengerLink:
    """Knows the address that a session token is appended to, once the service's own bot's username is known.

    Args:
        base: that address, where it is known from the start.
        bots: what comes before the username of a project's own bot in its links.
        bot_id: the service's own bot; None as long as it is not known.
    """

    def __init__(self, base: str | None, bots: str = "https://t.me/", bot_id: int | None = None) -> None:
        self.base = base
        self.bot_id = bot_id
        self._bots = bots

    def __call__(self) -> str:
        """Return the address; raises MessengerUnavailable as long as it is not known."""
        if self.base is None:
            raise MessengerUnavailable
        return self.base

    def of_project_bot(self, username: str) -> str:
        """Return the address for a project's own bot."""
        return f"{self._bots}{username}"

    def is_service_bot(self, bot_id: int, username: str) -> bool:
        """Tell whether the bot with this id or this username is the service's own, as far as that is known."""
        name = (self.base or "").rpartition("/")[2]
        return bot_id == self.bot_id or (name != "" and name.lower() == username.lower())
