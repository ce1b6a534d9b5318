"""Webhook delivery for project bots: each has the path `/bot/webhook/<bot id>` and its own secret."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from taproof.core.errors import DecryptionFailed, StoreUnavailable
from taproof.messengers.telegram.updates import Handling, UpdateIntake
from taproof.messengers.telegram.webhook import WebhookEndpoint
from taproof.service.bots import Bots

_ID_LENGTH: Final = 16

Secrets = Callable[[int], Sequence[str]]
"""Returns the secrets that are valid for updates of the bot with this id."""


class ProjectBotWebhooks:
    """The ASGI application behind `POST /bot/webhook/<bot id>`, in any process.

    `intake` returns the update handler for the bot with this token.
    """

    def __init__(self, bots: Bots, intake: Callable[[str], UpdateIntake], secrets: Secrets) -> None:
        self._bots = bots
        self._make_intake = intake
        self._secrets = secrets
        self._intakes: dict[int, tuple[bytes, UpdateIntake]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 200 once the update is handled, 503 if it must be delivered again, and 401 for a wrong secret."""
        # The bot is looked up only after the secret has shown that the messenger sent the update. Every bot id has a
        # secret, even if no such bot exists.
        number = scope["path"].rpartition("/")[2]
        bot_id = int(number) if number.isascii() and number.isdigit() and len(number) <= _ID_LENGTH else 0
        endpoint = WebhookEndpoint(partial(self._handle, bot_id), partial(self._secrets, bot_id))
        await endpoint(scope, receive, send)

    async def _handle(self, bot_id: int, update: dict[str, Any]) -> Handling:
        """Handle an update once. Return "retry" if the bot is not found, because that may be temporary."""
        try:
            intake = await self.find_intake(bot_id)
        except (StoreUnavailable, DecryptionFailed):
            return "retry"
        return "retry" if intake is None else await intake.handle(update)

    async def find_intake(self, bot_id: int) -> UpdateIntake | None:
        """Return a bot's update handler; None if no project uses the bot any more, or if it is broken.

        Raises:
            StoreUnavailable: the bot cannot be read.
            DecryptionFailed: the bot's token cannot be decrypted.
        """
        bot = await self._bots.read_bot(bot_id)
        if bot is None or bot.broken_at is not None:
            self._intakes.pop(bot_id, None)
            return None
        encrypted, intake = self._intakes.get(bot_id, (b"", None))
        if intake is None or encrypted != bot.encrypted_token:
            intake = self._make_intake(self._bots.open_token(bot))
            self._intakes[bot_id] = (bot.encrypted_token, intake)
        return intake
