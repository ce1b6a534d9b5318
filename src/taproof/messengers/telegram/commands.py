"""The list of commands that a messenger shows next to the text field."""

import structlog

from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError
from taproof.messengers.telegram.types import BotCommand
from taproof.messengers.telegram.user_control_replies import described_commands
from taproof.messengers.texts.catalog import FALLBACK, LANGUAGES

_log = structlog.get_logger(__name__)


async def announce_commands_once(bot: Bot) -> None:
    """Call `announce_commands` unless the bot already has the list. With hundreds of bots, this saves many calls."""
    try:
        listed = await bot.get_my_commands()
    except TelegramAPIError:
        return  # The next start tries again.
    if listed != _commands(FALLBACK):
        await announce_commands(bot)


async def announce_commands(bot: Bot) -> None:
    """Set the list of commands in each language, and in English for all others.

    Nothing depends on the list, so a failure is only logged.
    """
    try:
        for language in (None, *(each for each in LANGUAGES if each != FALLBACK)):
            await bot.set_my_commands(_commands(language or FALLBACK), language_code=language)
    except TelegramAPIError as trouble:
        _log.info("bot_commands_not_listed", reason=trouble.message)


def _commands(language: str) -> list[BotCommand]:
    described = described_commands(LANGUAGES[language].control)
    return [BotCommand(command=name, description=does) for name, does in described.items()]
