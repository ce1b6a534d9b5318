"""A client for the Bot API (https://core.telegram.org/bots/api#making-requests) with the methods that Taproof uses.

The bot's token is part of every URL that the client calls, and the HTTP library's errors may quote the URL. The client
therefore removes the token from every error before raising it. It reads each response through a size limit.
"""

import asyncio
import json
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypeVar

import structlog
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector
from pydantic import TypeAdapter

from taproof.messengers.telegram.outbound import name_failure, name_strange_response, session_options
from taproof.messengers.telegram.types import (
    BotCommand,
    BotFullInfo,
    InlineKeyboardMarkup,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
    Response,
    SentMessage,
    WebhookInfo,
)
from taproof.sdk.environment_proxy import EnvironmentProxy

CONNECT_SECONDS: Final = 10
FLOOD_ATTEMPTS: Final = 3
FLOOD_WAIT_LIMIT: Final = 60
"""Maximum total time, in seconds, that one reply waits because of the flood limit."""

_ADDRESS_SECONDS: Final = 3600
"""The lifetime of the cached DNS answer, which keeps the bot working while the name server fails."""
_ADDRESS: Final = re.compile(r"https?://[^\s{}?#]+")
_TOKEN: Final = re.compile(r"[0-9]{1,18}:[A-Za-z0-9_-]+")
_KEEP_UPDATES: Final = {"drop_pending_updates": False}
_PRIVATE_CHATS: Final = {"scope": {"type": "all_private_chats"}}
"""The scope of the bot's commands: the bot has none in groups."""

Markup = InlineKeyboardMarkup | ReplyKeyboardMarkup | ReplyKeyboardRemove
_Result = TypeVar("_Result")

_log = structlog.get_logger(__name__)


class TelegramAPIError(Exception):
    """The Bot API refused a call or returned no usable answer. The message never contains the token."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TelegramNetworkError(TelegramAPIError):
    """There was no response, or the response did not come from the Bot API."""


class TelegramBadRequest(TelegramAPIError):
    """HTTP status 400."""


class TelegramUnauthorizedError(TelegramAPIError):
    """HTTP status 401, or 404 for a method that exists: no bot has this token."""


class TelegramForbiddenError(TelegramAPIError):
    """HTTP status 403: for example, the user blocked the bot."""


class TelegramConflictError(TelegramAPIError):
    """HTTP status 409: another program receives the updates, or a webhook is set."""


class TelegramRetryAfter(TelegramAPIError):
    """The call exceeded the flood limit. It can be repeated after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TelegramServerError(TelegramAPIError):
    """HTTP status 500 or above."""


_REFUSALS: Final = {
    400: TelegramBadRequest,
    401: TelegramUnauthorizedError,
    403: TelegramForbiddenError,
    404: TelegramUnauthorizedError,
    409: TelegramConflictError,
}


class BotApiClient:
    """Calls the Bot API for any number of bots, over one connection pool. Close it at the end.

    Args:
        api_url: the base of `/bot<token>/<method>`, such as `https://api.telegram.org`.
        environment: "test" calls `/bot<token>/test/<method>`
            (https://core.telegram.org/bots/webapps#using-bots-in-the-test-environment).
        tls: the certificates to trust instead of the public authorities, for a self-hosted Bot API server.
        proxy: the HTTP proxy through which the address is reached, if any.
        request_seconds: the default time limit of one attempt at a call.
        answer_limit: the maximum size of a response in bytes. A hundred updates of maximum size are far below it.
        pause: waits for the flood limit to end, or until there is a hurry.

    Raises:
        ValueError: the address is malformed.
    """

    def __init__(
        self,
        api_url: str,
        *,
        environment: Literal["production", "test"] = "production",
        tls: ssl.SSLContext | None = None,
        proxy: EnvironmentProxy | None = None,
        request_seconds: float = 20,
        answer_limit: int = 16 * 1024 * 1024,
        pause: Callable[[float, asyncio.Event], Awaitable[None]] | None = None,
    ) -> None:
        if _ADDRESS.fullmatch(api_url) is None:
            raise ValueError("The Bot API address must look like https://api.telegram.org. Check TAPROOF_BOT_API_URL.")
        self._base = api_url.rstrip("/")
        self._folder = "test/" if environment == "test" else ""
        self._tls = tls
        self._proxy = proxy
        self._request_seconds = request_seconds
        self._answer_limit = answer_limit
        self._pause = pause or _pause
        self._client: ClientSession | None = None

    async def call(
        self,
        token: str,
        method: str,
        returns: Callable[[Any], _Result],
        parameters: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
        hurry: asyncio.Event | None = None,
    ) -> _Result:
        """Call a method and return its result.

        Args:
            token: the bot's token.
            method: such as `getMe`.
            returns: parses the result; it raises ValueError for a result of another type.
            parameters: those that are None are omitted.
            seconds: the time limit of each attempt.
            hurry: until it is set, a call that exceeds the flood limit is repeated after a wait, at most 60 s in total.
                Without it, such a call fails immediately. Only a few calls wait, because a user who makes the bot
                answer too often must not prevent it from answering others.

        Raises:
            TelegramAPIError: the call failed. Each subclass is one reason; no message contains the token.
        """
        body = {name: value for name, value in (parameters or {}).items() if value is not None}
        seconds = seconds or self._request_seconds
        left = FLOOD_WAIT_LIMIT
        for _ in range(FLOOD_ATTEMPTS - 1):
            try:
                return await self._call(token, method, returns, body, seconds)
            except TelegramRetryAfter as flood:
                if hurry is None or left <= 0 or hurry.is_set():
                    raise
                wait = min(max(flood.retry_after, 1), left)
            left -= wait
            _log.info("bot_flood_wait", seconds=wait)
            await self._pause(wait, hurry)
        return await self._call(token, method, returns, body, seconds)

    async def _call(
        self, token: str, method: str, returns: Callable[[Any], _Result], body: dict[str, Any], seconds: float
    ) -> _Result:
        status = 0
        try:
            async with self._open().post(
                f"{self._base}/bot{token}/{self._folder}{method}",
                json=body,
                timeout=ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS),
                allow_redirects=False,  # The URL contains the token, which must not follow a redirect elsewhere.
            ) as answer:
                status = answer.status
                content = await _read_answer(answer, self._answer_limit)
            response = Response.model_validate(json.loads(content))
            if not (200 <= status < 300 and response.ok):
                raise _refusal(status, response, token)
            # Every method has a result; null would violate its type.
            if response.result is not None:
                return returns(response.result)
            trouble = name_strange_response(status, self._proxy)
        except (ClientError, OSError) as error:
            trouble = _without_token(name_failure(error, self._proxy), token)
        except (ValueError, RecursionError):
            # For example, a proxy's error page. Its text may quote the URL, so the error does not include it.
            trouble = name_strange_response(status, self._proxy)
        # Raised outside the handlers: the original error may contain the URL and must not become the context.
        raise TelegramNetworkError(trouble)

    def _open(self) -> ClientSession:
        if self._client is None:
            # Not created in the constructor, because a session belongs to the running event loop.
            # No call waits for a connection.
            connector = TCPConnector(ssl=self._tls or True, limit=0, ttl_dns_cache=_ADDRESS_SECONDS)
            self._client = ClientSession(connector=connector, **session_options(self._proxy))
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
    return _REFUSALS.get(status, TelegramServerError if status >= 500 else TelegramAPIError)(description)


async def _pause(seconds: float, hurry: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await hurry.wait()


async def _read_answer(answer: ClientResponse, limit: int) -> str:
    content = bytearray()
    async for chunk in answer.content.iter_any():
        content += chunk
        if len(content) > limit:
            raise ValueError("too long")
    return content.decode(errors="replace")


def _without_token(text: str, token: str) -> str:
    """Return `text` without the bot's token and without its secret half."""
    return text.replace(token, "<token>").replace(token.partition(":")[2], "<token>")


_is_done: Final = TypeAdapter(bool).validate_python
_are_objects: Final = TypeAdapter(list[dict[str, Any]]).validate_python
_are_commands: Final = TypeAdapter(list[BotCommand]).validate_python


class Bot:
    """One bot. Messages are HTML and show no link previews. Several bots may share one client.

    Raises:
        ValueError: the token is malformed. The message does not repeat it.
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

    async def get_me(self, *, seconds: float | None = None) -> BotFullInfo:
        """Return the bot's own account: https://core.telegram.org/bots/api#getme."""
        me = await self.api.call(self._token, "getMe", BotFullInfo.model_validate, seconds=seconds)
        self._username = me.username or ""
        return me

    async def set_callback_query_mode(self, mode: str, *, seconds: float | None = None) -> None:
        """Set how taps on the bot's messages are delivered: https://core.telegram.org/bots/api#setmysettings."""
        await self.api.call(self._token, "setMySettings", _is_done, {"callback_query_mode": mode}, seconds=seconds)

    async def get_managed_bot_token(self, user_id: int) -> str:
        """Return the token of a bot that this bot manages: https://core.telegram.org/bots/api#getmanagedbottoken."""
        return await self.api.call(self._token, "getManagedBotToken", _text, {"user_id": user_id})

    async def read_username(self) -> str:
        """Return the username that `get_me` returned last, or "" if it has none. Call it first if nobody has."""
        if self._username is None:
            return (await self.get_me()).username or ""
        return self._username

    async def get_updates(
        self,
        *,
        offset: int | None,
        allowed_updates: Sequence[str],
        seconds: float,
        limit: int | None = None,
        timeout: int = 0,  # noqa: ASYNC109 — the server waits this long.
    ) -> list[dict[str, Any]]:
        """Return updates: https://core.telegram.org/bots/api#getupdates.

        They are not parsed here, so that one malformed update does not fail the others.
        """
        parameters = {"offset": offset, "limit": limit, "timeout": timeout, "allowed_updates": allowed_updates}
        return await self.api.call(self._token, "getUpdates", _are_objects, parameters, seconds=seconds)

    async def send_message(
        self,
        chat_id: int,
        text: str,
        markup: Markup | None = None,
        *,
        is_protected: bool = False,
        thread_id: int | None = None,
        hurry: asyncio.Event | None = None,
    ) -> SentMessage:
        """Send a message and return it: https://core.telegram.org/bots/api#sendmessage.

        Apps do not forward a protected message, before or after it is edited. `thread_id` is a topic of the chat. See
        `BotApiClient.call` for `hurry`.
        """
        parameters = {"chat_id": chat_id, "message_thread_id": thread_id, **_html(text, markup)}
        parameters["protect_content"] = is_protected or None
        return await self.api.call(self._token, "sendMessage", SentMessage.read, parameters, hurry=hurry)

    async def edit_message_text(
        self,
        chat_id: int,
        message_id: int,
        text: str,
        markup: InlineKeyboardMarkup | None = None,
        *,
        hurry: asyncio.Event | None = None,
    ) -> SentMessage:
        """Replace a message's text and buttons: https://core.telegram.org/bots/api#editmessagetext.

        Without `markup`, the message loses its buttons. See `BotApiClient.call` for `hurry`.
        """
        parameters = {"chat_id": chat_id, "message_id": message_id, **_html(text, markup)}
        return await self.api.call(self._token, "editMessageText", SentMessage.read, parameters, hurry=hurry)

    async def edit_buttons(
        self, chat_id: int, message_id: int, buttons: InlineKeyboardMarkup, *, hurry: asyncio.Event | None = None
    ) -> SentMessage:
        """Replace a message's buttons only: https://core.telegram.org/bots/api#editmessagereplymarkup."""
        markup = buttons.model_dump(exclude_none=True)
        parameters = {"chat_id": chat_id, "message_id": message_id, "reply_markup": markup}
        return await self.api.call(self._token, "editMessageReplyMarkup", SentMessage.read, parameters, hurry=hurry)

    async def answer_callback_query(self, query_id: str, text: str, *, alert: bool = False) -> None:
        """Answer a tap on a button: https://core.telegram.org/bots/api#answercallbackquery."""
        parameters = {"callback_query_id": query_id, "text": text, "show_alert": alert}
        await self.api.call(self._token, "answerCallbackQuery", _is_done, parameters)

    async def set_webhook(self, url: str, *, secret_token: str, allowed_updates: Sequence[str]) -> None:
        """Set the webhook and keep pending updates: https://core.telegram.org/bots/api#setwebhook."""
        parameters = {"url": url, "secret_token": secret_token, "allowed_updates": allowed_updates}
        await self.api.call(self._token, "setWebhook", _is_done, {**parameters, **_KEEP_UPDATES})

    async def delete_webhook(self) -> None:
        """Delete the webhook and keep pending updates: https://core.telegram.org/bots/api#deletewebhook."""
        await self.api.call(self._token, "deleteWebhook", _is_done, _KEEP_UPDATES)

    async def get_webhook_info(self) -> WebhookInfo:
        """Return the current webhook: https://core.telegram.org/bots/api#getwebhookinfo."""
        return await self.api.call(self._token, "getWebhookInfo", WebhookInfo.model_validate)

    async def set_my_commands(self, commands: Sequence[BotCommand], *, language_code: str | None = None) -> None:
        """Set the commands for private chats: https://core.telegram.org/bots/api#setmycommands."""
        listed = [each.model_dump() for each in commands]
        parameters = {"commands": listed, "language_code": language_code, **_PRIVATE_CHATS}
        await self.api.call(self._token, "setMyCommands", _is_done, parameters)

    async def get_my_commands(self) -> list[BotCommand]:
        """Return the commands for private chats: https://core.telegram.org/bots/api#getmycommands.

        This is the list for users whose language has no list of its own.
        """
        return await self.api.call(self._token, "getMyCommands", _are_commands, _PRIVATE_CHATS)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("The result is not a text.")  # noqa: TRY004 — as for every result of another type.
    return value


def _html(text: str, markup: Markup | None) -> dict[str, Any]:
    """Return the parameters that show `text` as HTML without link previews, above these buttons."""
    return {
        "text": text,
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
        "reply_markup": None if markup is None else markup.model_dump(exclude_none=True),
    }
