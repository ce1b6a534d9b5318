"""The settings that a bot has in the messenger, and which of them prevent sign-ins.

Anybody with the bot's token can change them, with @BotFather or setMySettings (Bot API 10.5).
"""

from typing import Final, NamedTuple

import structlog

from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError
from taproof.messengers.telegram.types import BotFullInfo, WebhookInfo
from taproof.messengers.telegram.updates import ALLOWED_UPDATES

CALLBACK_MODE: Final = "default"
"""The only mode of callback queries in which a tap includes its message, which proves what the user saw."""
ASK_SECONDS: Final = 5
_UNUSED: Final = {
    "can_read_all_group_messages": "it gets all messages of groups",
    "supports_inline_queries": "it can be used inline",
    "supports_guest_queries": "it can be called from any chat",
    "can_connect_to_business": "it can be connected to a business account",
}
"""Abilities that the bot does not use, by the field of getMe."""

_MODE_ADVICE: Final = (
    'taproof serve sets it to "default" when it starts. Find the program that changes it, or revoke the bot\'s token '
    "with @BotFather."
)
_UNUSED_ADVICE: Final = "Turn it off with @BotFather: /mybots, the bot, Bot Settings."

_log = structlog.get_logger(__name__)


class WrongSetting(NamedTuple):
    """A setting that should change. `is_fatal`: it prevents users from signing in."""

    name: str
    detail: str
    advice: str
    is_fatal: bool = False


def wrong_settings(me: BotFullInfo) -> list[WrongSetting]:
    """Return what is wrong with the settings that getMe returns."""
    found = []
    if me.callback_query_mode not in {None, CALLBACK_MODE}:
        detail = "taps come without their message, so Confirm cannot be checked"
        found.append(WrongSetting("callback_query_mode", detail, _MODE_ADVICE, is_fatal=True))
    for name, detail in _UNUSED.items():
        if getattr(me, name):
            found.append(WrongSetting(name, f"{detail}, which Taproof does not use", _UNUSED_ADVICE))
    return found


def missing_updates(info: WebhookInfo) -> list[str]:
    """Return the kinds of updates that the bot needs, but that the messenger does not send to its webhook."""
    allowed = info.allowed_updates or ALLOWED_UPDATES
    return [kind for kind in ALLOWED_UPDATES if kind not in allowed]


async def check_settings(bot: Bot, me: BotFullInfo) -> None:
    """Log what is wrong with a bot's settings, and restore the mode in which taps include their messages."""
    for each in wrong_settings(me):
        log = _log.error if each.is_fatal else _log.warning
        log("bot_setting_wrong", setting=each.name, reason=each.detail, advice=each.advice)
    await restore_callback_mode(bot)


async def restore_callback_mode(bot: Bot) -> None:
    """Make taps include their messages again. getMe does not return the mode, so it is always set.

    A Bot API server before 10.5 refuses the call.
    """
    try:
        await bot.set_callback_query_mode(CALLBACK_MODE, seconds=ASK_SECONDS)
    except TelegramAPIError as trouble:
        _log.info("bot_callback_mode_not_set", reason=trouble.message)
