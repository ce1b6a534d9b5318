"""Reads the commands that users write, and the links that they paste instead of opening them.

Some apps open the chat of a link and lose its payload. Pages show the command, and people copy it in many ways: with
quotes, as a link, without `/start`, or with the line breaks of a terminal.
"""

import re
from typing import Final, NamedTuple

from taproof.messengers.telegram.types import Message

_COMMAND: Final = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{1,64}))?(?:\s+(.*))?", re.DOTALL)
_SESSION_TOKEN: Final = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")
_LINK: Final = re.compile(r"[?&]start=([A-Za-z0-9_-]{43})(?![A-Za-z0-9_-])")
_AROUND: Final = " \t\r\n\"'`“”„«»‘’<>()[].,\u200e\u200f\u2066\u2067\u2068\u2069"
"""The characters around copied text: quotes, brackets, and marks of the writing direction."""


class Command(NamedTuple):
    """A command in lower case, the bot that it mentions (or None), and its payload (or "")."""

    name: str | None
    mention: str | None = None
    payload: str = ""


def read_command(message: Message) -> Command:
    """Return the command of a message. A link in a private chat counts as the `/start` that it stands for.

    A forwarded message is not a command, and neither is one that another bot wrote in the user's name: only the user
    may open a link.
    """
    if message.forward_origin is not None or message.via_bot is not None:
        return Command(None)
    text = (message.text or "").strip(_AROUND)
    found = _COMMAND.fullmatch(text)
    if found is not None:
        name, payload = found[1].lower(), (found[3] or "").strip()
        return Command(name, found[2], _token_in(payload) if name == "start" else payload)
    if message.chat.type == "private":
        link = _LINK.search(text)
        if link is not None or _SESSION_TOKEN.fullmatch(text) is not None:
            return Command("start", None, link[1] if link is not None else text)
    return Command(None)


def _token_in(payload: str) -> str:
    """Return the session token in a payload, or the payload if there is none."""
    for text in (payload, "".join(payload.split())):
        link = _LINK.search(text)
        token = _SESSION_TOKEN.search(text)
        if link is not None or token is not None:
            return link[1] if link is not None else token[0] if token is not None else ""
    return payload
