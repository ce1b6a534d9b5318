"""The list of commands that a messenger shows beside the text field, so that users find what they can do."""

import structlog

from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError
from taproof.messengers.telegram.types import BotCommand
from taproof.messengers.telegram.user_control_replies import described_commands
from taproof.messengers.texts.catalog import FALLBACK, LANGUAGES

_log = structlog.get_logger(__name__)


async def announce_commands_once(bot: Bot) -> None:
    """Do as `announce_commands` for one of hundreds of bots unless it is done: that spares thousands of calls."""
    try:
        listed = await bot.get_my_commands()
    except TelegramAPIError:
        return  # The next start does it.
    if listed != _commands(FALLBACK):
        await announce_commands(bot)


async def announce_commands(bot: Bot) -> None:
    """List the commands in each language, English for all others. Nothing depends on it: a failure is only logged."""
    try:
        for language in (None, *(each for each in LANGUAGES if each != FALLBACK)):
            await bot.set_my_commands(_commands(language or FALLBACK), language_code=language)
    except TelegramAPIError as trouble:
        _log.info("bot_commands_not_listed", reason=trouble.message)


def _commands(language: str) -> list[BotCommand]:
    described = described_commands(LANGUAGES[language].control)
    return [BotCommand(command=name, description=does) for name, does in described.items()]
