"""The JSON API that acts as the pretend users, so that an application's tests can sign in without a phone.

The phone page uses it too. Answers are JSON. An error is `{"error": sentence}` with the code in `X-Error-Code`.
"""

from collections.abc import Callable
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
    UserNotFound,
)
from taproof.sandbox.control.request import (
    LONGEST_WAIT,
    find_bot,
    integer_field,
    json_response,
    link_field,
    number_parameter,
    person_fields,
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
from taproof.sandbox.telegram.people import PEOPLE_LIMIT, Person

REPLY_SECONDS: Final = 15
"""The longest wait of `open` and `tap` for the bot, which may start slowly on a busy machine."""
_AS_TYPED: Final = {0x2019: "'"} | dict.fromkeys(range(0x2066, 0x206A))
_CHOICES: Final = {"Confirm": "c:", "Cancel": "x:"}
"""The prefix of the callback data of the bot's two choices, whose labels depend on the language."""
_TEXT_LIMIT: Final = 4_096


class ControlApi:
    """The routes of the control API that act as the pretend users.

    Args:
        bots: the bots and the people.
        faults: the list to which requested faults are added.
        own_hosts: the hosts whose deeplinks belong to this sandbox.
    """

    def __init__(self, bots: SandboxBots, faults: Faults, own_hosts: OwnHosts) -> None:
        self._bots = bots
        self._people = bots.people
        self._faults = faults
        self._own_hosts = own_hosts
        user = "/sandbox/users/{user_id}"
        self.routes: Final = [
            Route("/sandbox/users", self._users, methods=["GET", "POST"]),
            Route(f"{user}/open", self._open, methods=["POST"]),
            Route(f"{user}/send", self._send, methods=["POST"]),
            Route(f"{user}/press", self._press, methods=["POST"]),
            Route(f"{user}/share", self._share, methods=["POST"]),
            Route(f"{user}/tap", self._tap, methods=["POST"]),
            Route(f"{user}/block", self._block, methods=["POST"]),
            Route(f"{user}/unblock", self._unblock, methods=["POST"]),
            Route(f"{user}/messages", self._messages, methods=["GET"]),
            Route("/sandbox/faults", self._set_faults, methods=["POST", "DELETE"]),
        ]

    async def _users(self, request: Request) -> Response:
        first = self._bots.first.messenger
        if request.method != "POST":
            return json_response({"users": [first.chat(person.id).shown() for person in self._people]})
        fields = await read_object(request, person_fields())
        person = read_person(fields, self._people.free_id())
        if self._bots.is_id(person.id):
            raise InvalidSandboxRequest("id must be another one: this is a bot's.")
        if person.id not in self._people and len(self._people) >= PEOPLE_LIMIT:
            raise TooManyUsers
        if person.username is not None and self._is_taken(person.username, person.id):
            raise UsernameTaken
        self._people.put(person)
        return json_response(first.chat(person.id).shown())

    def _is_taken(self, username: str, user_id: int) -> bool:
        others = {(person.username or "").lower() for person in self._people if person.id != user_id}
        return username.lower() in others or self._bots.find(username) is not None

    async def _open(self, request: Request) -> Response:
        """Open a deeplink, as if the person sent `/start TOKEN`. Answer once the bot has replied, or after 15 s."""
        person = self._person(request)
        deeplink = link_field(await read_object(request, ["deeplink"]))
        bot, payload = read_deeplink(deeplink, self._bots, self._own_hosts)
        chat = _writable(bot, person)
        started = bot.messenger.write(chat, f"/start {payload}")

        def has_reply() -> bool:
            return any(
                message.from_bot and message.message_id > started.message_id for message in chat.messages.values()
            )

        answered = await chat.wait_until(lambda: has_reply() or bot.messenger.is_closed, REPLY_SECONDS)
        return json_response({"answered": answered and has_reply()} | _conversation(bot, chat))

    async def _send(self, request: Request) -> Response:
        """Send a typed message to the bot."""
        person = self._person(request)
        fields = await read_object(request, ["text", "bot", "wait"])
        text = clean_text(text_field(fields, "text", _TEXT_LIMIT)).strip()
        if not text:
            raise InvalidSandboxRequest("text must contain something visible.")
        bot = read_bot(fields, self._bots)
        wait, chat = wait_field(fields), _writable(bot, person)
        return await _sent(bot, chat, lambda: bot.messenger.write(chat, text), wait)

    async def _press(self, request: Request) -> Response:
        """Press a button of the reply keyboard."""
        person = self._person(request)
        fields = await read_object(request, ["button", "bot", "wait"])
        label = text_field(fields, "button", _TEXT_LIMIT)
        bot = read_bot(fields, self._bots)
        wait, chat = wait_field(fields), _writable(bot, person)
        button = chat.find_reply_button(label)
        if button is None:
            rows = chat.open_keyboard.keyboard.rows if chat.open_keyboard is not None else []
            raise ReplyButtonNotFound(each.text for row in rows for each in row)
        return await _sent(bot, chat, lambda: bot.messenger.press(chat, button), wait)

    async def _share(self, request: Request) -> Response:
        """Share a contact from the attachment menu, or forward one."""
        person = self._person(request)
        fields = await read_object(request, ["contact", "forwarded_from", "hide_sender", "bot", "wait"])
        contact, forwarded_from = read_share(fields, person, self._people)
        bot = read_bot(fields, self._bots)
        wait, chat = wait_field(fields), _writable(bot, person)
        return await _sent(bot, chat, lambda: bot.messenger.share(chat, contact, forwarded_from), wait)

    async def _tap(self, request: Request) -> Response:
        """Tap a button. Answer once the bot has answered the callback query, or after 15 s."""
        person = self._person(request)
        fields = await read_object(request, ["button", "data", "message_id", "bot"])
        bot = read_bot(fields, self._bots)
        chat = bot.messenger.chat(person.id)
        message_id = integer_field(fields, "message_id", 1, 2**31)
        data = read_data(fields)
        if data is not None:
            message = _find_message(chat, data, message_id)
        else:
            message, button = _find_button(chat, text_field(fields, "button", 256), message_id)
            if "callback_data" not in button:
                raise ButtonNotTappable
            data = button["callback_data"]
        tap = bot.messenger.tap(chat, message, data)
        await chat.wait_until(lambda: tap.is_answered or bot.messenger.is_closed, REPLY_SECONDS)
        return json_response(
            {"answered": tap.is_answered, "alert": tap.notice or None, "show_alert": tap.shows_alert},
        )

    async def _block(self, request: Request) -> Response:
        return await self._set_blocked(request, blocked=True)

    async def _unblock(self, request: Request) -> Response:
        return await self._set_blocked(request, blocked=False)

    async def _set_blocked(self, request: Request, *, blocked: bool) -> Response:
        person = self._person(request)
        bot = read_bot(await read_object(request, ["bot"]), self._bots)
        chat = bot.messenger.chat(person.id)
        bot.messenger.set_blocked(chat, blocked=blocked)
        return json_response(chat.shown())

    async def _messages(self, request: Request) -> Response:
        """Return the chat. With `wait` and `after`, first wait until its version is not `after`, or `wait` is over."""
        person = self._person(request)
        wait = number_parameter(request, "wait", LONGEST_WAIT)
        after = number_parameter(request, "after", 10**15)
        username = request.query_params.get("bot")
        bot = find_bot(self._bots, username) if username else self._bots.first
        chat = bot.messenger.chat(person.id)
        if wait:
            await chat.wait_until(lambda: chat.version != after or bot.messenger.is_closed, wait)
        return json_response(_conversation(bot, chat))

    async def _set_faults(self, request: Request) -> Response:
        if request.method == "DELETE":
            return json_response({"cleared": self._faults.clear()})
        fields = await read_object(request, ["method", "error_code", "description", "retry_after", "times", "bot"])
        error_code = integer_field(fields, "error_code", 400, 599)
        if error_code is None:
            raise InvalidSandboxRequest("error_code must be an integer from 400 to 599.")
        times = integer_field(fields, "times", 1, 1_000)
        waits = self._faults.add(
            text_field(fields, "method", 64),
            error_code,
            description=text_field(fields, "description", 500) if fields.get("description") is not None else None,
            retry_after=integer_field(fields, "retry_after", 0, 86_400),
            times=1 if times is None else times,
            bot_id=None if fields.get("bot") is None else read_bot(fields, self._bots).id,
        )
        if not waits:
            raise TooManyFaults
        return json_response({"added": True})

    def _person(self, request: Request) -> Person:
        user_id = request.path_params["user_id"]
        # Sixteen digits at most: Python refuses to parse very long numbers.
        number = int(user_id) if user_id.isdecimal() and len(user_id) <= 16 else 0
        if number not in self._people:
            raise UserNotFound
        return self._people[number]


def _writable(bot: SandboxBot, person: Person) -> SandboxChat:
    chat = bot.messenger.chat(person.id)
    if chat.has_blocked:
        raise BotBlocked
    return chat


async def _sent(bot: SandboxBot, chat: SandboxChat, send: Callable[[], SandboxMessage], wait: float) -> Response:
    """Call `send` and answer once the bot has acted in the chat, or when `wait` is over."""
    before = chat.bot_acts
    message = send()
    if wait:
        await chat.wait_until(lambda: chat.bot_acts != before or bot.messenger.is_closed, wait)
    return json_response({"message": message.shown(), "answered": chat.bot_acts != before})


def _find_message(chat: SandboxChat, data: str, message_id: int | None) -> SandboxMessage:
    """Return the bot's message on which a modified app taps.

    It is the message with the given id. Without an id, it is the newest one with a button that has this data, else with
    any button, else the newest one.
    """
    messages = [message for message in chat.messages.values() if message.from_bot]
    if message_id is not None:
        messages = [message for message in messages if message.message_id == message_id]
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


def _find_button(chat: SandboxChat, label: str, message_id: int | None) -> tuple[SandboxMessage, dict[str, Any]]:
    """Return the button with this label, and its message: the newest with buttons, unless `message_id` names one."""
    messages = [message for message in chat.messages.values() if message.keyboard]
    if message_id is not None:
        messages = [message for message in messages if message.message_id == message_id]
    if not messages:
        raise ButtonNotFound([])
    message = messages[-1]
    buttons = _buttons(message)
    if label in _CHOICES:
        for button in buttons:
            if button.get("callback_data", "").startswith(_CHOICES[label]):
                return message, button
    for button in buttons:
        if _as_typed(button["text"]) == _as_typed(label):
            return message, button
    raise ButtonNotFound(button["text"] for button in buttons)


def _conversation(bot: SandboxBot, chat: SandboxChat) -> dict[str, Any]:
    return {
        "bot": bot.username,
        "messages": [message.shown() for message in chat.messages.values()],
        "reply_keyboard": None if chat.open_keyboard is None else chat.open_keyboard.shown(),
        "version": chat.version,
        "has_started": chat.has_started,
        "has_blocked": chat.has_blocked,
    }
