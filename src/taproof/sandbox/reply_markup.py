"""Checks the keyboards that a bot sends (https://core.telegram.org/bots/api#inlinekeyboardmarkup)."""

import re
from typing import Any, Final

from taproof.sandbox.bot_request import bad_request, read_json

CALLBACK_DATA_LIMIT: Final = 64
"""Bytes of UTF-8, not characters."""
_ROW_LIMIT: Final = 12
_BUTTON_LIMIT: Final = 300
_BARE_ACTIONS: Final = (
    "callback_game",
    "pay",
    "switch_inline_query",
    "switch_inline_query_chosen_chat",
    "switch_inline_query_current_chat",
    "login_url",
    "web_app",
    "copy_text",
)
_OTHER_KEYBOARDS: Final = ("remove_keyboard", "hide_keyboard", "force_reply", "force_reply_keyboard")

InlineKeyboard = list[list[dict[str, Any]]]


def parse_reply_markup(text: str, *, inline_only: bool = False) -> InlineKeyboard:
    """Return the rows of an inline keyboard; none for the other kinds, which change nothing that the sandbox shows.

    Args:
        text: the parameter `reply_markup`, "" when there is none.
        inline_only: refuse the other kinds, as editing a message does.

    Raises:
        ApiError: the keyboard is not one that the Bot API takes.
    """
    if not text:
        return []
    try:
        markup = read_json(text)
    except ValueError:
        raise bad_request("can't parse reply keyboard markup JSON object") from None
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    keyboard = _rows(markup, "keyboard", 'field "keyboard" must be an Array of Arrays')
    for row in keyboard:
        for button in row:
            _check_reply_button(button)
    inline = _rows(
        markup, "inline_keyboard", 'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays'
    )
    rows = [[_inline_button(button) for button in row[:_ROW_LIMIT]] for row in inline]
    if inline_only and (keyboard or any(markup.get(kind) for kind in _OTHER_KEYBOARDS)):
        raise bad_request("inline keyboard expected")
    return _first_buttons([row for row in rows if row]) if not keyboard else []


def _rows(markup: dict[str, Any], name: str, problem: str) -> list[list[Any]]:
    rows = markup.get(name)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise bad_request(f'field "{name}" must be of type Array')
    if not all(isinstance(row, list) for row in rows):
        raise bad_request(problem)
    return rows


def _check_reply_button(button: object) -> None:
    if isinstance(button, dict):
        _field(button, "text", "keyboard button", required=True)
    elif not isinstance(button, str):
        raise bad_request("can't parse keyboard button: KeyboardButton must be a String or an Object")


def _inline_button(button: object) -> dict[str, Any]:
    kind = "inline keyboard button"
    if not isinstance(button, dict):
        raise bad_request(f"can't parse {kind}: InlineKeyboardButton must be an Object")
    text = _field(button, "text", kind, required=True)
    if not text.strip():
        raise bad_request("BUTTON_TEXT_INVALID")
    if url := _field(button, "url", kind):
        if re.fullmatch(r"(?:https?|tg|ton)://[^\s/?#]+\S*|[^\s/?#:]+\.[^\s/?#:]+\S*", url) is None:
            raise bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
        return {"text": text, "url": url}
    if data := _field(button, "callback_data", kind):
        if len(data.encode()) > CALLBACK_DATA_LIMIT:
            raise bad_request("BUTTON_DATA_INVALID")
        return {"text": text, "callback_data": data}
    for action in _BARE_ACTIONS:
        if button.get(action) is not None:
            return {"text": text, action: button[action]}
    raise bad_request(f"can't parse {kind}: Text buttons are unallowed in the inline keyboard")


def _field(button: dict[str, Any], name: str, kind: str, *, required: bool = False) -> str:
    value = button.get(name)
    if value is None:
        if required:
            raise bad_request(f"can't parse {kind}: Can't find field \"{name}\"")
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise bad_request(f'can\'t parse {kind}: Field "{name}" must be of type String')
    return str(value)


def _first_buttons(rows: InlineKeyboard) -> InlineKeyboard:
    """Return the first 300 buttons: the rest is dropped, not refused."""
    kept: InlineKeyboard = []
    room = _BUTTON_LIMIT
    for row in rows:
        if room > 0:
            kept.append(row[:room])
            room -= len(row)
    return kept
