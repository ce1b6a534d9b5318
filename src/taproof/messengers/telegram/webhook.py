"""Webhook delivery: the messenger posts each update to the service (https://core.telegram.org/bots/api#setwebhook)."""

import asyncio
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import structlog
from starlette.types import Receive, Scope, Send

from taproof.http.errors import NO_PAGE
from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError
from taproof.messengers.telegram.bot_settings import missing_updates
from taproof.messengers.telegram.connection import Reconnection
from taproof.messengers.telegram.updates import ALLOWED_UPDATES, Handling

BODY_LIMIT: Final = 1024 * 1024
"""Maximum size of a body, in bytes. Most updates are a few KB, and the largest ones are far below this."""
RETRY_SECONDS: Final = 1
"""The `Retry-After` of a 503. An update of a process that died is asked for again soon after its claim has ended."""
CHECK_SECONDS: Final = 60.0
"""The interval between checks that a bot's webhook is still set. Only this check notices a revoked token."""
SECRET_SECONDS: Final = 5.0
"""The interval between checks of a bot's webhook secret, which changes with the master key."""

_CHANGED_ADVICE: Final = "Another program has set this bot's webhook. It is set again now. Stop that program."
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
_SECRET_HEADER: Final = b"x-telegram-bot-api-secret-token"

_log = structlog.get_logger(__name__)


class WebhookEndpoint:
    """The ASGI application behind `POST /bot/webhook`.

    Args:
        handle: handles an update, as `UpdateIntake.handle` does.
        secret_tokens: returns the valid values of `X-Telegram-Bot-Api-Secret-Token`: one secret, or several during a
            rotation. Without a secret, anybody could post updates in any user's name.

    Raises:
        ValueError: a secret is not in the form that the Bot API accepts: 1 to 256 characters of `A-Z a-z 0-9 _ -`.
    """

    def __init__(
        self, handle: Callable[[dict[str, Any]], Awaitable[Handling]], secret_tokens: Callable[[], Sequence[str]]
    ) -> None:
        for each in secret_tokens():
            _require_secret(each)
        self._handle = handle
        self._secret_tokens = secret_tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 200 once the update is handled, or 503 if it must be delivered again."""
        if scope["method"] != "POST":
            await _refuse(send, 405, "method_not_allowed", "Updates are sent with POST.", (b"allow", b"POST"))
            return
        # Checked before the body is read, so that a stranger's request costs only a comparison or two.
        given = [value for name, value in scope["headers"] if name.lower() == _SECRET_HEADER]
        if len(given) != 1 or not self._is_secret(given[0]):
            await _refuse(send, 401, "invalid_webhook_secret", "Send the secret token that the webhook was set with.")
            return
        body = await _read_body(scope, receive)
        if body is None:
            await _refuse(send, 413, "payload_too_large", "An update is at most 1 MiB.")
            return
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            update = None
        if not isinstance(update, dict):
            await _refuse(send, 400, "invalid_request", "The body must be one update as a JSON object.")
            return
        if await self._handle(update) == "done":
            await _respond(send, 200, {})
            return
        retry_after = (b"retry-after", str(RETRY_SECONDS).encode())
        await _refuse(send, 503, "update_not_handled", "The update could not be handled. Send it again.", retry_after)

    def _is_secret(self, given: bytes) -> bool:
        # Every secret is compared, so that the response time does not reveal which one matches.
        fits = [hmac.compare_digest(given, each.encode()) for each in self._secret_tokens()]
        return any(fits)


async def keep_webhook(
    bot: Bot,
    url: str,
    secret_tokens: Callable[[], Sequence[str]],
    reconnection: Reconnection,
    *,
    check_seconds: float = CHECK_SECONDS,
    secret_seconds: float = SECRET_SECONDS,
) -> None:
    """Keep a bot's webhook set to `url` until cancelled. Set it again when it, its updates or the secret have changed.

    It is set with the first of `secret_tokens`. An error of `reconnection` ends it.
    """
    registered = ""
    while True:
        try:
            info = await bot.get_webhook_info()
        except TelegramAPIError as trouble:
            await reconnection.wait(trouble)
            continue
        reconnection.succeeded()
        secret, missing = secret_tokens()[0], missing_updates(info)
        is_set = info.url == url and not missing
        if registered and not is_set:
            _log.warning("bot_webhook_changed", missing=missing, advice=_CHANGED_ADVICE)
        if not is_set or secret != registered:
            await register_webhook(bot, url, secret, reconnection)
            registered = secret
        clock = asyncio.get_running_loop().time
        next_look = clock() + check_seconds
        while clock() < next_look and secret_tokens()[0] == registered:  # noqa: ASYNC110 — a file changes without an event.
            await asyncio.sleep(min(secret_seconds, check_seconds))


async def register_webhook(bot: Bot, url: str, secret_token: str, reconnection: Reconnection) -> None:
    """Set the messenger's webhook to `url`, and retry until it succeeds. Pending updates are kept.

    Raises ValueError if the secret is not in the form that the Bot API accepts. An error of `reconnection` ends it.
    """
    _require_secret(secret_token)
    while True:
        try:
            await bot.set_webhook(url, secret_token=secret_token, allowed_updates=ALLOWED_UPDATES)
        except TelegramAPIError as trouble:
            await reconnection.wait(trouble)
        else:
            reconnection.succeeded()
            _log.info("bot_webhook_set")
            return


def _require_secret(secret_token: str) -> None:
    if _SECRET.fullmatch(secret_token) is None:
        raise ValueError("The webhook's secret token must have 1 to 256 letters, digits, '_' or '-'.")


async def _read_body(scope: Scope, receive: Receive) -> bytes | None:
    """Return the body, or None as soon as it exceeds the limit."""
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and (not value.isdigit() or len(value) > 18 or int(value) > BODY_LIMIT):
            return None
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT:
            return None
        if not message.get("more_body", False):
            return bytes(body)


async def _refuse(send: Send, status: int, code: str, sentence: str, *headers: tuple[bytes, bytes]) -> None:
    await _respond(send, status, {"error": sentence}, (b"x-error-code", code.encode()), *headers)


async def _respond(send: Send, status: int, answer: dict[str, str], *headers: tuple[bytes, bytes]) -> None:
    body = json.dumps(answer).encode()
    length = str(len(body)).encode()
    standard = [(b"content-type", b"application/json"), (b"content-length", length), *NO_PAGE]
    await send({"type": "http.response.start", "status": status, "headers": [*standard, *headers]})
    await send({"type": "http.response.body", "body": body})
