"""Checks the keyboards that a bot sends (https://core.telegram.org/bots/api#sendmessage, `reply_markup`).

The checks and their texts are those of the real server and of its messenger library. One real rule is not
needed: outside private chats, a button that asks for a contact is refused. The sandbox has only private chats.
"""

import re
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

from taproof.sandbox.telegram.html import utf16_length
from taproof.sandbox.telegram.request import bad_request, read_json, required_field

CALLBACK_DATA_LIMIT: Final = 64
"""Maximum size of callback data, in bytes of UTF-8, not characters."""
PLACEHOLDER_LIMIT: Final = 64
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
_REPLY_FLAGS: Final = ("resize_keyboard", "one_time_keyboard", "is_persistent", "selective")
_REQUESTS: Final = ("request_location", "request_poll", "request_users", "request_chat", "web_app")
"""The other requests that a button of a reply keyboard can make. The sandbox's phone supports only contacts."""

_OWN_LINK: Final = re.compile(r"(?:tg|ton)://[A-Za-z0-9_-]\S*", re.IGNORECASE)
_HTTP_LINK: Final = re.compile(
    r"(?:(https?)://)?(\[[0-9a-f:.]+\]|[^\s/?#:@\[\]]+)(:[0-9]{1,5})?([/?#]\S*)?", re.IGNORECASE
)
_TEXT: Final = str | int | float
"""The types that the real server accepts as text."""

_Button = TypeVar("_Button")
InlineKeyboard = list[list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class ReplyButton:
    """A button below the message field: it sends its text, or the person's own contact."""

    text: str
    request_contact: bool = False


@dataclass(frozen=True, slots=True)
class ReplyKeyboard:
    """A keyboard below the message field. `flags` are the four flags of the Bot API's ReplyKeyboardMarkup."""

    rows: list[list[ReplyButton]]
    flags: dict[str, bool]
    placeholder: str

    def shown(self) -> dict[str, Any]:
        """Return the keyboard in the control API's format."""
        buttons = [[asdict(button) for button in row] for row in self.rows]
        return {"buttons": buttons, **self.flags, "input_field_placeholder": self.placeholder or None}


@dataclass(frozen=True, slots=True)
class SandboxMarkup:
    """The keyboards in a call: the buttons of the message, or a change of the keyboard below the message field."""

    inline: InlineKeyboard
    keyboard: ReplyKeyboard | None = None
    ends_keyboard: bool = False
    """True if it removes the keyboard: for ReplyKeyboardRemove, and for ForceReply, which replaces the keyboard."""

    @property
    def is_inline(self) -> bool:
        """True if a message with this markup can be edited, and an edited message can have this markup."""
        return self.keyboard is None and not self.ends_keyboard


def parse_reply_markup(text: str) -> SandboxMarkup:
    """Return the keyboards that the parameter `reply_markup` describes; "" means none.

    Raises:
        ApiError: the Bot API does not accept the keyboard.
    """
    if not text:
        return SandboxMarkup([])
    try:
        markup = read_json(text)
    except ValueError:
        raise bad_request("can't parse reply keyboard markup JSON object") from None
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    reply_rows = _rows(markup, "keyboard", 'field "keyboard" must be an Array of Arrays')
    replies = [[_reply_button(button) for button in row] for row in reply_rows]
    # A button without text is dropped, not refused.
    keyboard = _first_buttons([[button for button in row if button.text] for row in replies])
    inline_rows = _rows(
        markup, "inline_keyboard", 'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays'
    )
    inline = _first_buttons([[_inline_button(button) for button in row] for row in inline_rows])
    flags = {name: _flag(markup, name) for name in _REPLY_FLAGS}
    placeholder = markup.get("input_field_placeholder")
    if placeholder is not None and not isinstance(placeholder, str):
        raise bad_request('field "input_field_placeholder" must be of type String')
    if utf16_length(placeholder or "") > PLACEHOLDER_LIMIT:
        raise bad_request("REPLY_MARKUP_INVALID")
    # If an object has several of these kinds, the first applies, as on the real server.
    if keyboard:
        return SandboxMarkup([], ReplyKeyboard(keyboard, flags, placeholder or ""))
    if inline:
        return SandboxMarkup(inline)
    ends = [_flag(markup, name) for name in ("remove_keyboard", "hide_keyboard", "force_reply")]
    return SandboxMarkup([], ends_keyboard=any(ends))


def _rows(markup: dict[str, Any], name: str, problem: str) -> list[list[Any]]:
    rows = markup.get(name)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise bad_request(f'field "{name}" must be of type Array')
    if not all(isinstance(row, list) for row in rows):
        raise bad_request(problem)
    return rows


def _flag(markup: dict[str, Any], name: str) -> bool:
    value = markup.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise bad_request(f'field "{name}" must be of type Boolean')


def _reply_button(button: object) -> ReplyButton:
    kind = "keyboard button"
    if isinstance(button, str):
        return ReplyButton(button)
    if not isinstance(button, dict):
        raise bad_request(f"can't parse {kind}: KeyboardButton must be a String or an Object")
    text = required_field(button, "text", kind, _TEXT)
    asks = button.get("request_contact")
    if asks is not None and not isinstance(asks, bool):
        raise bad_request(f'can\'t parse {kind}: Field "request_contact" must be of type Boolean')
    if not asks and any(button.get(request) for request in _REQUESTS):
        raise bad_request(f"the sandbox knows no {kind} that asks for anything but a contact")
    return ReplyButton(text, bool(asks))


def _inline_button(button: object) -> dict[str, Any]:
    kind = "inline keyboard button"
    if not isinstance(button, dict):
        raise bad_request(f"can't parse {kind}: InlineKeyboardButton must be an Object")
    text = required_field(button, "text", kind, _TEXT)
    if not text.strip():
        raise bad_request("BUTTON_TEXT_INVALID")
    if url := _optional_field(button, "url", kind):
        return {"text": text, "url": _checked_url(url)}
    if data := _optional_field(button, "callback_data", kind):
        if len(data.encode()) > CALLBACK_DATA_LIMIT:
            raise bad_request("BUTTON_DATA_INVALID")
        return {"text": text, "callback_data": data}
    for action in _BARE_ACTIONS:
        if button.get(action) is not None:
            return {"text": text, action: button[action]}
    raise bad_request(f"can't parse {kind}: Text buttons are unallowed in the inline keyboard")


def _checked_url(url: str) -> str:
    """Return a button's link as the messenger stores it: the scheme and the host in lower case, and a path.

    The messenger opens no host without a dot, such as `localhost`. It also knows links of its own (tg:, ton:).
    """
    if _OWN_LINK.fullmatch(url):
        return url
    found = _HTTP_LINK.fullmatch(url)
    if found is None:
        problem = "Unsupported URL protocol" if "://" in url else "Wrong HTTP URL"
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: {problem}")
    scheme, host, port, rest = found.groups(default="")
    if "." not in host and not host.startswith("["):
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
    path = rest if rest.startswith("/") else f"/{rest}"
    return f"{(scheme or 'http').lower()}://{host.lower()}{port}{path}"


def _optional_field(button: dict[str, Any], name: str, kind: str) -> str:
    return "" if button.get(name) is None else required_field(button, name, kind, _TEXT)


def _first_buttons(rows: list[list[_Button]]) -> list[list[_Button]]:
    """Return at most 12 buttons of each row and 300 in total. The rest is dropped, not refused."""
    kept: list[list[_Button]] = []
    room = _BUTTON_LIMIT
    for row in rows:
        if row and room > 0:
            kept.append(row[: min(_ROW_LIMIT, room)])
            room -= len(kept[-1])
    return kept
