"""The list of commands that a messenger shows next to the text field."""

import structlog

from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError
from taproof.messengers.telegram.types import BotCommand
from taproof.messengers.telegram.user_control_replies import described_commands
from taproof.messengers.texts.catalog import FALLBACK, LANGUAGES

_log = structlog.get_logger(__name__)


async def announce_commands(bot: Bot) -> None:
    """Set the list of commands in each language, and in English for all others, unless the bot has the list.

    Nothing depends on the list, so a failure is only logged, and the next start tries again.
    """
    try:
        if await bot.get_my_commands() == _commands(FALLBACK):
            return  # With hundreds of bots, this saves many calls.
        for language in (None, *(each for each in LANGUAGES if each != FALLBACK)):
            await bot.set_my_commands(_commands(language or FALLBACK), language_code=language)
    except TelegramAPIError as trouble:
        _log.info("bot_commands_not_listed", reason=trouble.message)


def _commands(language: str) -> list[BotCommand]:
    described = described_commands(LANGUAGES[language].control)
    return [BotCommand(command=name, description=does) for name, does in described.items()]
