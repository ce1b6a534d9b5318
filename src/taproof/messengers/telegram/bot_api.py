"""A client of the Bot API (https://core.telegram.org/bots/api#making-requests) with the methods that are used here.

The bot's token is part of every address that is called, and an HTTP library's errors may quote the address. So every
error is stripped of the token before it is raised. An answer is read through a size limit.
"""

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import structlog
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector
from pydantic import TypeAdapter

from taproof.messengers.telegram.types import (
    BotCommand,
    InlineKeyboardMarkup,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
    Response,
    User,
    WebhookInfo,
)

REQUEST_SECONDS: Final = 20
"""How long a call may take in all, unless it says otherwise."""
CONNECT_SECONDS: Final = 10
CONNECTIONS: Final = 100
"""Of one bot at a time: as many as it has updates in hand at most."""
ANSWER_LIMIT: Final = 16 * 1024 * 1024
"""Bytes: a hundred updates of the largest kind are far below it."""
FLOOD_ATTEMPTS: Final = 3
FLOOD_WAIT_LIMIT: Final = 60
"""How long one reply is put off in all because of the flood limit."""

_ADDRESS_SECONDS: Final = 3600
"""How long the server's address is remembered, so that the bot outlives a failure of the name server."""
_ADDRESS: Final = re.compile(r"https?://[^\s{}?#]+")
_TOKEN: Final = re.compile(r"[0-9]{1,18}:[A-Za-z0-9_-]+")
_HTML: Final[dict[str, Any]] = {"parse_mode": "HTML", "link_preview_options": {"is_disabled": True}}
_PRIVATE_CHATS: Final = {"type": "all_private_chats"}
"""In a group the bot has no command."""

Markup = InlineKeyboardMarkup | ReplyKeyboardMarkup | ReplyKeyboardRemove
_Result = TypeVar("_Result")

_log = structlog.get_logger(__name__)


class TelegramAPIError(Exception):
    """The Bot API refused a call, or gave no usable answer. The message never holds the token."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TelegramNetworkError(TelegramAPIError):
    """There was no answer, or none of the Bot API's."""


class TelegramBadRequest(TelegramAPIError):
    """HTTP status 400."""


class TelegramMigrateToChat(TelegramBadRequest):
    """The group is a supergroup by now, with another id."""

    def __init__(self, message: str, chat_id: int) -> None:
        super().__init__(message)
        self.chat_id = chat_id


class TelegramUnauthorizedError(TelegramAPIError):
    """HTTP status 401: no bot has this token."""


class TelegramForbiddenError(TelegramAPIError):
    """HTTP status 403: the user blocked the bot, for example."""


class TelegramNotFound(TelegramAPIError):
    """HTTP status 404: for a method that exists, no bot has this token."""


class TelegramConflictError(TelegramAPIError):
    """HTTP status 409: another program receives the updates, or a webhook is set."""


class TelegramRetryAfter(TelegramAPIError):
    """The flood limit is met. The call may be made again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TelegramServerError(TelegramAPIError):
    """HTTP status 500 or above."""


_REFUSALS: Final = {
    400: TelegramBadRequest,
    401: TelegramUnauthorizedError,
    403: TelegramForbiddenError,
    404: TelegramNotFound,
    409: TelegramConflictError,
}


class BotApiClient:
    """Calls the Bot API for any number of bots, over one pool of connections. Close it at the end.

    Args:
        api_url: where `/bot<token>/<method>` hangs, such as `https://api.telegram.org`.
        tls: what to trust instead of the public certificate authorities; for a Bot API server of one's own.
        limit: connections at a time, over which calls wait; 0 is any number.

    Raises:
        ValueError: the address does not have its form.
    """

    def __init__(self, api_url: str, *, tls: ssl.SSLContext | None = None, limit: int = CONNECTIONS) -> None:
        if _ADDRESS.fullmatch(api_url) is None:
            raise ValueError("The Bot API address must look like https://api.telegram.org. Check TAPROOF_BOT_API_URL.")
        self._base = api_url.rstrip("/")
        self._tls = tls
        self._limit = limit
        self._client: ClientSession | None = None

    async def call(
        self,
        token: str,
        method: str,
        returns: Callable[[Any], _Result],
        parameters: dict[str, Any] | None = None,
        *,
        seconds: float | None = None,
        hurry: asyncio.Event | None = None,
    ) -> _Result:
        """Call a method and return its result.

        Args:
            token: of the bot.
            method: its name.
            returns: reads the result; it raises ValueError for one of another type.
            parameters: those that are None are left out.
            seconds: how long the call may take in all.
            hurry: until it is set, a call that meets the flood limit is made again after a wait, 60 s in all at most.
                Without it, such a call fails at once: waiting is the exception, since a user who makes the bot answer
                too often must not keep it from answering others.

        Raises:
            TelegramAPIError: one of its kinds, without the token.
        """
        body = {name: value for name, value in (parameters or {}).items() if value is not None}
        left = FLOOD_WAIT_LIMIT
        for _ in range(FLOOD_ATTEMPTS - 1):
            try:
                return await self._call(token, method, returns, body, seconds or REQUEST_SECONDS)
            except TelegramRetryAfter as flood:
                if hurry is None or left <= 0 or hurry.is_set():
                    raise
                wait = min(max(flood.retry_after, 1), left)
            left -= wait
            _log.info("bot_flood_wait", seconds=wait)
            await _pause(wait, hurry)
        return await self._call(token, method, returns, body, seconds or REQUEST_SECONDS)

    async def _call(
        self, token: str, method: str, returns: Callable[[Any], _Result], body: dict[str, Any], seconds: float
    ) -> _Result:
        status = 0
        try:
            async with self._open().post(
                f"{self._base}/bot{token}/{method}",
                json=body,
                timeout=ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS),
                allow_redirects=False,  # The address holds the token: it is not taken to wherever an answer points.
            ) as answer:
                status = answer.status
                content = await _read_answer(answer)
            response = Response.model_validate(json.loads(content))
            if not (200 <= status < 300 and response.ok):
                raise _refusal(status, response, token)
            # Every method has a result: null would break the promise of its type.
            if response.result is not None:
                return returns(response.result)
            trouble = f"an answer with HTTP status {status} that is not the Bot API's"
        except TimeoutError:
            trouble = "no answer in time"
        except (ClientError, OSError) as error:
            trouble = _without_token(f"{type(error).__name__}: {error}", token)
        except (ValueError, RecursionError):
            # A proxy's error page, for example. Its text is not repeated: it may quote the address.
            trouble = f"an answer with HTTP status {status} that is not the Bot API's"
        # Raised out here so that it does not carry the original error, which may hold the address, as its context.
        raise TelegramNetworkError(trouble)

    def _open(self) -> ClientSession:
        if self._client is None:
            # Not made in the constructor, since it belongs to the event loop that runs.
            connector = TCPConnector(ssl=self._tls or True, limit=self._limit, ttl_dns_cache=_ADDRESS_SECONDS)
            self._client = ClientSession(connector=connector)
        return self._client

    async def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            await self._client.close()
            self._client = None


def _refusal(status: int, response: Response, token: str) -> TelegramAPIError:
    description = _without_token(response.description or f"HTTP status {status}", token)
    parameters = response.parameters
    if parameters is not None and parameters.retry_after:
        return TelegramRetryAfter(description, parameters.retry_after)
    if parameters is not None and parameters.migrate_to_chat_id:
        return TelegramMigrateToChat(description, parameters.migrate_to_chat_id)
    return _REFUSALS.get(status, TelegramServerError if status >= 500 else TelegramAPIError)(description)


async def _pause(seconds: float, hurry: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await hurry.wait()


async def _read_answer(answer: ClientResponse) -> str:
    content = bytearray()
    async for chunk in answer.content.iter_any():
        content += chunk
        if len(content) > ANSWER_LIMIT:
            raise ValueError("too long")
    return content.decode(errors="replace")


def _without_token(text: str, token: str) -> str:
    """Return `text` without the bot's token and without its secret half."""
    return text.replace(token, "<token>").replace(token.partition(":")[2], "<token>")


_is_done: Final = TypeAdapter(bool).validate_python
_is_object: Final = TypeAdapter(dict[str, Any]).validate_python
_are_objects: Final = TypeAdapter(list[dict[str, Any]]).validate_python
_are_commands: Final = TypeAdapter(list[BotCommand]).validate_python


class Bot:
    """One bot. Messages are HTML and show no link previews.

    Args:
        api: what its calls go through; several bots may share it.
        token: the bot's token.

    Raises:
        ValueError: the token does not have its form. The message does not repeat it.
    """

    def __init__(self, api: BotApiClient, token: str) -> None:
        if _TOKEN.fullmatch(token) is None:
            raise ValueError(
                "The bot token must look like 123456789:AbC… Copy it from @BotFather into TAPROOF_BOT_TOKEN."
            )
        self.api = api
        self.id = int(token.partition(":")[0])
        self._token = token
        self._username: str | None = None

    def __repr__(self) -> str:
        """Return the bot's id, without the token."""
        return f"Bot({self.id})"

    async def get_me(self, *, seconds: float | None = None) -> User:
        """https://core.telegram.org/bots/api#getme."""
        return await self.api.call(self._token, "getMe", User.model_validate, seconds=seconds)

    async def read_username(self) -> str:
        """Return the bot's username, "" if it has none. It is asked for once."""
        if self._username is None:
            self._username = (await self.get_me()).username or ""
        return self._username

    async def get_updates(
        self,
        *,
        offset: int | None,
        allowed_updates: Sequence[str],
        seconds: float,
        limit: int | None = None,
        timeout: int = 0,  # noqa: ASYNC109 — how long the server waits.
    ) -> list[dict[str, Any]]:
        """https://core.telegram.org/bots/api#getupdates; unread, so that a malformed update does not spoil the rest."""
        parameters = {"offset": offset, "limit": limit, "timeout": timeout, "allowed_updates": allowed_updates}
        return await self.api.call(self._token, "getUpdates", _are_objects, parameters, seconds=seconds)

    async def send_message(
        self, chat_id: int, text: str, markup: Markup | None = None, *, hurry: asyncio.Event | None = None
    ) -> None:
        """https://core.telegram.org/bots/api#sendmessage; see `BotApiClient.call` for `hurry`."""
        parameters = {"chat_id": chat_id, "text": text, **_HTML, "reply_markup": _as_json(markup)}
        await self.api.call(self._token, "sendMessage", _is_object, parameters, hurry=hurry)

    async def edit_message_text(
        self,
        chat_id: int,
        message_id: int,
        text: str,
        markup: InlineKeyboardMarkup | None = None,
        *,
        hurry: asyncio.Event | None = None,
    ) -> None:
        """https://core.telegram.org/bots/api#editmessagetext; the message's buttons go unless given."""
        parameters = {
            "chat_id": chat_id,
            "message_id": message_id,
            "text": text,
            **_HTML,
            "reply_markup": _as_json(markup),
        }
        await self.api.call(self._token, "editMessageText", _is_object, parameters, hurry=hurry)

    async def answer_callback_query(self, query_id: str, text: str, *, alert: bool = False) -> None:
        """https://core.telegram.org/bots/api#answercallbackquery."""
        parameters = {"callback_query_id": query_id, "text": text, "show_alert": alert}
        await self.api.call(self._token, "answerCallbackQuery", _is_done, parameters)

    async def set_webhook(self, url: str, *, secret_token: str, allowed_updates: Sequence[str]) -> None:
        """https://core.telegram.org/bots/api#setwebhook; updates that wait are kept."""
        parameters = {
            "url": url,
            "secret_token": secret_token,
            "allowed_updates": allowed_updates,
            "drop_pending_updates": False,
        }
        await self.api.call(self._token, "setWebhook", _is_done, parameters)

    async def delete_webhook(self) -> None:
        """https://core.telegram.org/bots/api#deletewebhook; updates that wait are kept."""
        await self.api.call(self._token, "deleteWebhook", _is_done, {"drop_pending_updates": False})

    async def get_webhook_info(self) -> WebhookInfo:
        """https://core.telegram.org/bots/api#getwebhookinfo."""
        return await self.api.call(self._token, "getWebhookInfo", WebhookInfo.model_validate)

    async def set_my_commands(self, commands: Sequence[BotCommand], *, language_code: str | None = None) -> None:
        """https://core.telegram.org/bots/api#setmycommands, for private chats."""
        parameters = {
            "commands": [each.model_dump() for each in commands],
            "scope": _PRIVATE_CHATS,
            "language_code": language_code,
        }
        await self.api.call(self._token, "setMyCommands", _is_done, parameters)

    async def get_my_commands(self) -> list[BotCommand]:
        """https://core.telegram.org/bots/api#getmycommands: those for whoever's language has none of its own."""
        return await self.api.call(self._token, "getMyCommands", _are_commands, {"scope": _PRIVATE_CHATS})


def _as_json(markup: Markup | None) -> dict[str, Any] | None:
    return None if markup is None else markup.model_dump(exclude_none=True)
