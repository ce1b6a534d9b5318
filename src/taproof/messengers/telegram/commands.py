"""The list of commands that a messenger shows beside the text field, so that users find what they can do."""

from typing import Final

import structlog
from aiogram import Bot
from aiogram.exceptions import TelegramAPIError
from aiogram.methods import TelegramMethod

from taproof.messengers.telegram.user_control_replies import described_commands
from taproof.messengers.texts.catalog import FALLBACK, LANGUAGES

_PRIVATE_CHATS: Final = {"type": "all_private_chats"}

_log = structlog.get_logger(__name__)


class SetCommands(TelegramMethod[bool]):
    """https://core.telegram.org/bots/api#setmycommands, for private chats: in a group the bot has no command."""

    __returning__ = bool
    __api_method__ = "setMyCommands"

    commands: list[dict[str, str]]
    scope: dict[str, str] = _PRIVATE_CHATS
    language_code: str | None = None


class GetCommands(TelegramMethod[list[dict[str, str]]]):
    """`getMyCommands`: those for whoever speaks no language that has its own."""

    __returning__ = list[dict[str, str]]
    __api_method__ = "getMyCommands"

    scope: dict[str, str] = _PRIVATE_CHATS


async def announce_commands_once(bot: Bot) -> None:
    """Do as `announce_commands` for one of hundreds of bots unless it is done: that spares thousands of calls."""
    GetCommands.model_rebuild()
    described = described_commands(LANGUAGES[FALLBACK].control)
    try:
        listed = {each.get("command"): each.get("description") for each in await bot(GetCommands())}
    except TelegramAPIError:
        return  # The next start does it.
    if listed != described:
        await announce_commands(bot)


async def announce_commands(bot: Bot) -> None:
    """List the commands in each language, English for all others. Nothing depends on it: a failure is only logged."""
    SetCommands.model_rebuild()
    try:
        for language in (None, *(each for each in LANGUAGES if each != FALLBACK)):
            described = described_commands(LANGUAGES[language or FALLBACK].control)
            commands = [{"command": name, "description": does} for name, does in described.items()]
            await bot(SetCommands(commands=commands, language_code=language))
    except TelegramAPIError as trouble:
        _log.info("bot_commands_not_listed", reason=trouble.message)
