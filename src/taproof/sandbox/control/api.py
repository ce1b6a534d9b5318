"""The JSON API that acts as the simulated users, so that an application's tests can sign in without a phone.

The phone page uses it too. Answers are JSON. An error is `{"error": sentence}` with the code in `X-Error-Code`.
"""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.sandbox.control.errors import (
    BotBlocked,
    ButtonNotFound,
    ButtonNotTappable,
    InvalidSandboxRequest,
    MessageNotFound,
    ReplyButtonNotFound,
    TooManyFaults,
    TooManyUsers,
    UsernameTaken,
)
from taproof.sandbox.control.request import (
    LINK_LIMIT,
    LONGEST_WAIT,
    PERSON_FIELDS,
    find_bot,
    find_person,
    integer_field,
    json_response,
    number_parameter,
    optional_text,
    read_bot,
    read_data,
    read_deeplink,
    read_object,
    read_person,
    read_share,
    text_field,
    wait_field,
)
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.bots import SandboxBot, SandboxBots
from taproof.sandbox.telegram.chats import SandboxChat, SandboxMessage
from taproof.sandbox.telegram.faults import Faults
from taproof.sandbox.telegram.html import clean_text
from taproof.sandbox.telegram.init_data import CHAT_TYPES, InitDataSigner
from taproof.sandbox.telegram.people import PEOPLE_LIMIT

REPLY_SECONDS: Final = 15
"""The longest wait of `open` and `tap` for the bot, which may start slowly on a busy machine."""
_AS_TYPED: Final = {0x2019: "'"} | dict.fromkeys(range(0x2066, 0x206A))
_CHOICES: Final = {"Confirm": "c:", "Cancel": "x:"}
"""The prefix of the callback data for each of the bot's two choices, whose labels depend on the language."""
_START_PARAM: Final = re.compile(r"[A-Za-z0-9_-]{1,512}")
_TEXT_LIMIT: Final = 4_096


class ControlApi:
    """The control API routes that act as the simulated users. Deeplinks to `own_hosts` belong to this sandbox."""

    def __init__(
        self, bots: SandboxBots, faults: Faults, own_hosts: OwnHosts, signer: InitDataSigner, reply_seconds: float
    ) -> None:
        self._bots = bots
        self._people = bots.people
        self._faults = faults
        self._own_hosts = own_hosts
        self._signer = signer
        self._reply_seconds = reply_seconds
        actions: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "open": self._open,
            "send": self._send,
            "press": self._press,
            "share": self._share,
            "tap": self._tap,
            "mini-app": self._open_mini_app,
            "block": partial(self._set_blocked, blocked=True),
            "unblock": partial(self._set_blocked, blocked=False),
        }
        self.routes: Final = [
            Route("/sandbox/users", self._users, methods=["GET", "POST"]),
            *(Route(f"/sandbox/users/{{user_id}}/{name}", act, methods=["POST"]) for name, act in actions.items()),
            Route("/sandbox/users/{user_id}/messages", self._messages, methods=["GET"]),
            Route("/sandbox/faults", self._set_faults, methods=["POST", "DELETE"]),
        ]

    async def _users(self, request: Request) -> Response:
        first = self._bots.first.messenger
        if request.method != "POST":
            return json_response({"users": [first.chat(user_id).shown() for user_id in self._people]})
        person = read_person(await read_object(request, *PERSON_FIELDS), free_id=max(self._people) + 1)
        if person.id in self._bots.by_id:
            raise InvalidSandboxRequest("Choose another id: this one belongs to a bot.")
        if person.id not in self._people and len(self._people) >= PEOPLE_LIMIT:
            raise TooManyUsers
        if person.username is not None and self._bots.has_name(person.username, but_not=person.id):
            raise UsernameTaken
        self._people[person.id] = person
        return json_response(first.chat(person.id).shown())

    async def _open(self, request: Request) -> Response:
        """Open a deeplink, as if the person sent `/start TOKEN`. Answer once the bot has replied, or after 15 s."""
        person = find_person(request, self._people)
        deeplink = text_field(await read_object(request, "deeplink"), "deeplink", LINK_LIMIT)
        bot, payload = read_deeplink(deeplink, self._bots, self._own_hosts)
        chat = bot.messenger.chat(person.id)
        _check_writable(chat)
        started = bot.messenger.write(chat, f"/start {payload}")

        def has_reply() -> bool:
            return any(
                message.from_bot and message.message_id > started.message_id for message in chat.messages.values()
            )

        answered = await chat.wait_until(lambda: has_reply() or bot.messenger.is_closed, self._reply_seconds)
        return json_response({"answered": answered and has_reply()} | _conversation(bot, chat))

    async def _send(self, request: Request) -> Response:
        """Send a typed message to the bot."""
        fields, bot, chat = await self._read(request, "text", "bot", "wait")
        text = clean_text(text_field(fields, "text", _TEXT_LIMIT)).strip()
        if not text:
            raise InvalidSandboxRequest("text must contain something visible.")
        return await _sent(fields, bot, chat, lambda: bot.messenger.write(chat, text))

    async def _press(self, request: Request) -> Response:
        """Press a button of the reply keyboard."""
        fields, bot, chat = await self._read(request, "button", "bot", "wait")
        label = text_field(fields, "button", _TEXT_LIMIT)

        def press() -> SandboxMessage:
            if chat.open_keyboard is None:
                raise ReplyButtonNotFound
            buttons = [button for row in chat.open_keyboard.keyboard.rows for button in row]
            for button in buttons:
                if button.text == label:
                    return bot.messenger.press(chat, button)
            there = ", ".join(button.text for button in buttons)
            sentence = f"There is no such button on the keyboard below the message field. Its buttons are: {there}."
            raise ReplyButtonNotFound(sentence)

        return await _sent(fields, bot, chat, press)

    async def _share(self, request: Request) -> Response:
        """Share a contact from the attachment menu, or forward one."""
        fields, bot, chat = await self._read(request, "contact", "forwarded_from", "hide_sender", "bot", "wait")
        contact, forwarded_from = read_share(fields, chat.person, self._people)
        return await _sent(fields, bot, chat, lambda: bot.messenger.share(chat, contact, forwarded_from))

    async def _tap(self, request: Request) -> Response:
        """Tap a button. Answer once the bot has answered the callback query, or after 15 s."""
        fields, bot, chat = await self._read(request, "button", "data", "message_id", "inaccessible", "bot")
        inaccessible = fields.get("inaccessible", False)
        if not isinstance(inaccessible, bool):
            raise InvalidSandboxRequest("inaccessible must be true or false.")
        message_id = integer_field(fields, "message_id", 1, 2**31)
        messages = [
            message
            for message in chat.messages.values()
            if message.from_bot and message_id in {None, message.message_id}
        ]
        data = read_data(fields)
        if data is not None:
            message = _find_message(messages, data)
        else:
            message, button = _find_button(messages, text_field(fields, "button", 256))
            if "callback_data" not in button:
                raise ButtonNotTappable
            data = button["callback_data"]
        tap = bot.messenger.tap(chat, message, data, inaccessible=inaccessible)
        await chat.wait_until(lambda: tap.is_answered or bot.messenger.is_closed, self._reply_seconds)
        return json_response({"answered": tap.is_answered, "alert": tap.notice or None, "show_alert": tap.shows_alert})

    async def _open_mini_app(self, request: Request) -> Response:
        """Return `Telegram.WebApp.initData`, as the Mini App of the bot receives it."""
        fields, bot, chat = await self._read(request, "bot", "start_param", "chat_type", "auth_date")
        start_param = optional_text(fields, "start_param", 512)
        if start_param is not None and _START_PARAM.fullmatch(start_param) is None:
            raise InvalidSandboxRequest("start_param must be 1 to 512 of A-Z a-z 0-9 _ -.")
        chat_type = optional_text(fields, "chat_type", 10) or "private"
        if chat_type not in CHAT_TYPES:
            raise InvalidSandboxRequest(f"chat_type must be one of: {', '.join(CHAT_TYPES)}.")
        auth_date = integer_field(fields, "auth_date", 10**8, 10**11 - 1)
        data = self._signer.sign(chat.person, bot, chat_type, start_param, auth_date)
        return json_response({"bot": bot.username, "init_data": data})

    async def _set_blocked(self, request: Request, *, blocked: bool) -> Response:
        _, bot, chat = await self._read(request, "bot")
        bot.messenger.set_blocked(chat, blocked=blocked)
        return json_response(chat.shown())

    async def _messages(self, request: Request) -> Response:
        """Return the chat. With `wait` and `after`, wait up to `wait` seconds for a version other than `after`."""
        person = find_person(request, self._people)
        wait = number_parameter(request, "wait", LONGEST_WAIT)
        after = number_parameter(request, "after", 10**15)
        bot = find_bot(self._bots, request.query_params.get("bot"))
        chat = bot.messenger.chat(person.id)
        if wait:
            await chat.wait_until(lambda: chat.version != after or bot.messenger.is_closed, wait)
        return json_response(_conversation(bot, chat))

    async def _set_faults(self, request: Request) -> Response:
        if request.method == "DELETE":
            return json_response({"cleared": self._faults.clear()})
        fields = await read_object(request, "method", "error_code", "description", "retry_after", "times", "bot")
        error_code = integer_field(fields, "error_code", 400, 599)
        if error_code is None:
            raise InvalidSandboxRequest("error_code must be an integer from 400 to 599.")
        is_added = self._faults.add(
            text_field(fields, "method", 64),
            error_code,
            description=text_field(fields, "description", 500) if fields.get("description") is not None else None,
            retry_after=integer_field(fields, "retry_after", 0, 86_400),
            times=integer_field(fields, "times", 1, 1_000) or 1,
            bot_id=None if fields.get("bot") is None else read_bot(fields, self._bots).id,
        )
        if not is_added:
            raise TooManyFaults
        return json_response({"added": True})

    async def _read(self, request: Request, *allowed: str) -> tuple[dict[str, Any], SandboxBot, SandboxChat]:
        """Return the fields of the body, the bot that they name, and its chat with the person."""
        person = find_person(request, self._people)
        fields = await read_object(request, *allowed)
        bot = read_bot(fields, self._bots)
        return fields, bot, bot.messenger.chat(person.id)


def _check_writable(chat: SandboxChat) -> None:
    if chat.has_blocked:
        raise BotBlocked


async def _sent(
    fields: dict[str, Any], bot: SandboxBot, chat: SandboxChat, send: Callable[[], SandboxMessage]
) -> Response:
    """Call `send`. Answer once the bot has acted in the chat, or after the number of seconds in the field `wait`."""
    wait = wait_field(fields)
    _check_writable(chat)
    before = chat.bot_acts
    message = send()
    if wait:
        await chat.wait_until(lambda: chat.bot_acts != before or bot.messenger.is_closed, wait)
    return json_response({"message": message.shown(), "answered": chat.bot_acts != before})


def _find_message(messages: list[SandboxMessage], data: str) -> SandboxMessage:
    """Return the message whose button a modified app taps.

    It is the newest one with a button that has this data, else with any button, else the newest one.
    """
    if not messages:
        raise MessageNotFound
    with_buttons = [message for message in messages if message.keyboard]
    with_data = [
        message for message in with_buttons if data in {button.get("callback_data") for button in _buttons(message)}
    ]
    return (with_data or with_buttons or messages)[-1]


def _buttons(message: SandboxMessage) -> list[dict[str, Any]]:
    return [button for row in message.keyboard for button in row]


def _as_typed(label: str) -> str:
    """Return a label as people type it: with straight apostrophes, and without the isolates around names."""
    return label.translate(_AS_TYPED)


def _find_button(messages: list[SandboxMessage], label: str) -> tuple[SandboxMessage, dict[str, Any]]:
    """Return the button with this label on the newest message that has buttons, and the message."""
    message = next((message for message in reversed(messages) if message.keyboard), None)
    if message is None:
        raise ButtonNotFound
    buttons = _buttons(message)
    if label in _CHOICES:
        for button in buttons:
            if button.get("callback_data", "").startswith(_CHOICES[label]):
                return message, button
    for button in buttons:
        if _as_typed(button["text"]) == _as_typed(label):
            return message, button
    there = ", ".join(button["text"] for button in buttons)
    raise ButtonNotFound(f"There is no such button. The buttons are: {there}.")


def _conversation(bot: SandboxBot, chat: SandboxChat) -> dict[str, Any]:
    return {
        "bot": bot.username,
        "messages": [message.shown() for message in chat.messages.values()],
        "reply_keyboard": None if chat.open_keyboard is None else chat.open_keyboard.shown(),
        "version": chat.version,
        "has_started": chat.has_started,
        "has_blocked": chat.has_blocked,
    }
