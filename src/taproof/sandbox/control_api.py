"""The JSON API that plays the people: it lets an application's own tests sign in without a phone.

The phone page uses it too. Answers are JSON; failures are `{"error": sentence}` with the code in `X-Error-Code`.
"""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from taproof.sandbox.chats import Chat, Message
from taproof.sandbox.control_errors import (
    BotBlocked,
    ButtonNotFound,
    ButtonNotTappable,
    InvalidSandboxRequest,
    TooManyFaults,
    TooManyUsers,
    UsernameTaken,
    UserNotFound,
)
from taproof.sandbox.control_request import (
    LONGEST_WAIT,
    integer_field,
    link_field,
    number_parameter,
    person_fields,
    read_object,
    read_payload,
    read_person,
    text_field,
)
from taproof.sandbox.faults import Faults
from taproof.sandbox.html_text import clean_text
from taproof.sandbox.messenger import PEOPLE_LIMIT, Messenger
from taproof.sandbox.own_hosts import OwnHosts

REPLY_SECONDS: Final = 15
"""How long `open` and `tap` wait for the bot, which on a busy machine has only just started."""
_CHOICES: Final = {"Confirm": "c:", "Cancel": "x:"}
"""What the callback data of the bot's two choices begins with, whatever language their labels are in."""
_TEXT_LIMIT: Final = 4_096


class ControlApi:
    """The routes of the control API.

    Args:
        messenger: the state.
        faults: where failures are asked for.
        own_hosts: whose deeplinks are this sandbox's.
    """

    def __init__(self, messenger: Messenger, faults: Faults, own_hosts: OwnHosts) -> None:
        self._messenger = messenger
        self._faults = faults
        self._own_hosts = own_hosts
        user = "/sandbox/users/{user_id}"
        self.routes: Final = [
            Route("/sandbox/users", self._users, methods=["GET", "POST"]),
            Route(f"{user}/open", self._open, methods=["POST"]),
            Route(f"{user}/send", self._send, methods=["POST"]),
            Route(f"{user}/tap", self._tap, methods=["POST"]),
            Route(f"{user}/block", self._block, methods=["POST"]),
            Route(f"{user}/unblock", self._unblock, methods=["POST"]),
            Route(f"{user}/messages", self._messages, methods=["GET"]),
            Route("/sandbox/faults", self._set_faults, methods=["POST", "DELETE"]),
        ]

    async def _users(self, request: Request) -> Response:
        if request.method != "POST":
            return _json({"users": [chat.shown() for chat in self._messenger.chats.values()]})
        fields = await read_object(request, person_fields())
        person = read_person(fields, self._messenger.free_id())
        if person.id == self._messenger.bot["id"]:
            raise InvalidSandboxRequest("id must be another one: this is the bot's.")
        if person.id not in self._messenger.chats and len(self._messenger.chats) >= PEOPLE_LIMIT:
            raise TooManyUsers
        taken = {
            (chat.person.username or "").lower()
            for chat in self._messenger.chats.values()
            if chat.person.id != person.id
        }
        if person.username is not None and person.username.lower() in {*taken, self._messenger.bot["username"].lower()}:
            raise UsernameTaken
        return _json(self._messenger.put_person(person).shown())

    async def _open(self, request: Request) -> Response:
        """Open a deeplink: the person sends `/start TOKEN`. Answers when the bot has replied, or after 15 s."""
        chat = self._chat(request)
        deeplink = link_field(await read_object(request, ["deeplink"]))
        payload = read_payload(deeplink, self._messenger.bot["username"], self._own_hosts)
        started = self._write(chat, f"/start {payload}")

        def has_reply() -> bool:
            return any(
                message.from_bot and message.message_id > started.message_id for message in chat.messages.values()
            )

        answered = await chat.wait_until(lambda: has_reply() or self._messenger.is_closed, REPLY_SECONDS)
        return _json({"answered": answered and has_reply()} | _conversation(chat))

    async def _send(self, request: Request) -> Response:
        """Type a message to the bot."""
        chat = self._chat(request)
        text = clean_text(text_field(await read_object(request, ["text"]), "text", _TEXT_LIMIT)).strip()
        if not text:
            raise InvalidSandboxRequest("text must contain something visible.")
        return _json({"message": self._write(chat, text).shown()})

    def _write(self, chat: Chat, text: str) -> Message:
        if chat.has_blocked:
            raise BotBlocked
        return self._messenger.write(chat, text)

    async def _tap(self, request: Request) -> Response:
        """Tap a button. Answers when the bot has answered the callback query, or after 15 s."""
        chat = self._chat(request)
        fields = await read_object(request, ["button", "message_id"])
        label = text_field(fields, "button", 256)
        message, button = _find_button(chat, label, integer_field(fields, "message_id", 1, 2**31))
        if "callback_data" not in button:
            raise ButtonNotTappable
        tap = self._messenger.tap(chat, message, button["callback_data"])
        await chat.wait_until(lambda: tap.is_answered or self._messenger.is_closed, REPLY_SECONDS)
        return _json(
            {"answered": tap.is_answered, "alert": tap.notice or None, "show_alert": tap.shows_alert},
        )

    async def _block(self, request: Request) -> Response:
        return await self._set_blocked(request, blocked=True)

    async def _unblock(self, request: Request) -> Response:
        return await self._set_blocked(request, blocked=False)

    async def _set_blocked(self, request: Request, *, blocked: bool) -> Response:
        chat = self._chat(request)
        await read_object(request, [])
        self._messenger.set_blocked(chat, blocked=blocked)
        return _json(chat.shown())

    async def _messages(self, request: Request) -> Response:
        """Return the chat; with `wait` and `after` only once its version is not `after`, or when `wait` is over."""
        chat = self._chat(request)
        wait = number_parameter(request, "wait", LONGEST_WAIT)
        after = number_parameter(request, "after", 10**15)
        if wait:
            await chat.wait_until(lambda: chat.version != after or self._messenger.is_closed, wait)
        return _json(_conversation(chat))

    async def _set_faults(self, request: Request) -> Response:
        if request.method == "DELETE":
            return _json({"cleared": self._faults.clear()})
        fields = await read_object(request, ["method", "error_code", "description", "retry_after", "times"])
        error_code = integer_field(fields, "error_code", 400, 599)
        if error_code is None:
            raise InvalidSandboxRequest("error_code must be an integer from 400 to 599.")
        times = integer_field(fields, "times", 1, 1_000)
        waits = self._faults.add(
            text_field(fields, "method", 64),
            error_code,
            text_field(fields, "description", 500) if fields.get("description") is not None else None,
            integer_field(fields, "retry_after", 0, 86_400),
            1 if times is None else times,
        )
        if not waits:
            raise TooManyFaults
        return _json({"added": True})

    def _chat(self, request: Request) -> Chat:
        user_id = request.path_params["user_id"]
        # Sixteen digits at most: Python refuses to read a number of very many.
        chat = self._messenger.chats.get(int(user_id)) if user_id.isdecimal() and len(user_id) <= 16 else None
        if chat is None:
            raise UserNotFound
        return chat


def _find_button(chat: Chat, label: str, message_id: int | None) -> tuple[Message, dict[str, Any]]:
    """Return the button that is meant, and its message: the newest with buttons, unless one is named."""
    messages = [message for message in chat.messages.values() if message.keyboard]
    if message_id is not None:
        messages = [message for message in messages if message.message_id == message_id]
    if not messages:
        raise ButtonNotFound([])
    message = messages[-1]
    buttons = [button for row in message.keyboard for button in row]
    if label in _CHOICES:
        for button in buttons:
            if button.get("callback_data", "").startswith(_CHOICES[label]):
                return message, button
    for button in buttons:
        if button["text"] == label:
            return message, button
    raise ButtonNotFound(button["text"] for button in buttons)


def _conversation(chat: Chat) -> dict[str, Any]:
    return {
        "messages": [message.shown() for message in chat.messages.values()],
        "version": chat.version,
        "has_started": chat.has_started,
        "has_blocked": chat.has_blocked,
    }


def _json(content: dict[str, Any]) -> JSONResponse:
    return JSONResponse(content, headers={"Cache-Control": "no-store"})
