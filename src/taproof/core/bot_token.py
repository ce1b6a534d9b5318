"""The format of a bot token: the bot's id, a colon, and a secret (core.telegram.org/bots/api#authorizing-your-bot)."""

import re
from typing import Final

_TOKEN: Final = re.compile(r"([1-9][0-9]{0,15}):[A-Za-z0-9_-]{30,100}")
# At least 30 characters, so that log redaction matches every token: see `logging.py`.
_LARGEST_ID: Final = 2**52 - 1
"""core.telegram.org/bots/api#user: an id has at most 52 significant bits."""


def bot_id_of(token: str) -> int | None:
    """Return the id of the bot that a token belongs to; None if the token is malformed."""
    found = _TOKEN.fullmatch(token)
    bot_id = int(found[1]) if found else 0
    return bot_id if 0 < bot_id <= _LARGEST_ID else None
