"""The connection to the Bot API (https://core.telegram.org/bots/api#making-requests).

The bot's token is part of every address that is called, so an HTTP library's errors may carry it. Here every error
is stripped of it before anybody can log it, and an answer is read through a cap.
"""

import asyncio
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Final

import structlog
from aiogram import Bot
from aiogram.client.default import DefaultBotProperties
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.enums import ParseMode
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramConflictError,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.methods import TelegramMethod
from aiogram.methods.base import TelegramType
from aiohttp import ClientError, ClientResponse, ClientTimeout

REQUEST_SECONDS: Final = 20
"""How long a call may take in all; a long poll adds the time that it asks the server to wait."""
CONNECT_SECONDS: Final = 10
CONNECTIONS: Final = 100
"""Of one bot at a time: as many as it has updates in hand at most."""
ANSWER_LIMIT: Final = 16 * 1024 * 1024
"""Bytes: a hundred updates of the largest kind are far below it."""
FLOOD_ATTEMPTS: Final = 3
FLOOD_WAIT_LIMIT: Final = 60
"""How long one reply is put off in all because of the flood limit."""
LONGEST_DELAY: Final = 30
LONGEST_SILENCE: Final = 3600
"""How long a call that is not a reply is put off at most, whatever the Bot API asks for."""

_TOKEN: Final = re.compile(r"[0-9]{1,18}:[A-Za-z0-9_-]+")
_patience: Final[ContextVar[asyncio.Event | None]] = ContextVar("patience", default=None)

_log = structlog.get_logger(__name__)


class BotTokenRefusedError(Exception):
    """The Bot API does not know this token. The sentence says what to check."""


class BotApiUnreachableError(Exception):
    """The Bot API gave no usable answer. The sentence says why."""


@contextmanager
def waiting_out_floods(hurry: asyncio.Event) -> Iterator[None]:
    """Let the calls made in this block wait when they meet the flood limit, until `hurry` is set; others fail at once.

    Waiting is the exception: whoever makes the bot answer too often must not keep it from answering others.
    """
    before = _patience.set(hurry)
    try:
        yield
    finally:
        _patience.reset(before)


class BotApiSession(AiohttpSession):
    """Calls the Bot API without leaking the token, and waits out the flood limit where the caller wants that.

    Args:
        api_url: where `/bot<token>/<method>` hangs, such as `https://api.telegram.org`.
        tls: what to trust instead of the public certificate authorities; for a Bot API server of one's own.
        limit: connections at a time, over which calls wait; 0 is any number.
    """

    def __init__(self, api_url: str, tls: ssl.SSLContext | None, limit: int = CONNECTIONS) -> None:
        super().__init__(api=TelegramAPIServer.from_base(api_url), limit=limit, timeout=REQUEST_SECONDS)
        if tls is not None:
            self._connector_init["ssl"] = tls

    async def make_request(
        self,
        bot: Bot,
        method: TelegramMethod[TelegramType],
        timeout: int | None = None,  # noqa: ASYNC109 — the signature is aiogram's.
    ) -> TelegramType:
        """Call a method; within `waiting_out_floods` it is called again after a wait, 60 s in all at most."""
        hurry = _patience.get()
        if hurry is None:
            return await self._request(bot, method, timeout)
        left = FLOOD_WAIT_LIMIT
        for _ in range(FLOOD_ATTEMPTS - 1):
            try:
                return await self._request(bot, method, timeout)
            except TelegramRetryAfter as flood:
                if left <= 0 or hurry.is_set():
                    raise
                wait = min(max(flood.retry_after, 1), left)
            left -= wait
            _log.info("bot_flood_wait", seconds=wait)
            await _pause(wait, hurry)
        return await self._request(bot, method, timeout)

    async def _request(self, bot: Bot, method: TelegramMethod[TelegramType], seconds: int | None) -> TelegramType:
        client = await self.create_session()
        address = self.api.api_url(token=bot.token, method=method.__api_method__)
        status = 0
        try:
            async with client.post(
                address,
                data=self.build_form_data(bot=bot, method=method),
                timeout=ClientTimeout(total=seconds or REQUEST_SECONDS, sock_connect=CONNECT_SECONDS),
                allow_redirects=False,  # The address holds the token: it is not taken to wherever an answer points.
            ) as answer:
                status = answer.status
                content = await _read_answer(answer)
            response = self.check_response(bot=bot, method=method, status_code=status, content=content)
            if response.result is not None:
                return response.result
            # Every method has a result: without one, aiogram's promise of its type would be broken.
            trouble = f"an answer with HTTP status {status} that is not the Bot API's"
        except TelegramAPIError as refusal:
            refusal.message = _without_token(str(refusal.message), bot)
            raise
        except TimeoutError:
            trouble = "no answer in time"
        except (ClientError, OSError) as error:
            trouble = _without_token(f"{type(error).__name__}: {error}", bot)
        except (ClientDecodeError, TypeError, ValueError, RecursionError):
            # A proxy's error page, for example. Its text is not repeated: it may quote the address.
            trouble = f"an answer with HTTP status {status} that is not the Bot API's"
        # Raised out here so that it does not carry the original error, which may hold the address, as its context.
        raise TelegramNetworkError(method=method, message=trouble)


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


def _without_token(text: str, bot: Bot) -> str:
    """Return `text` without the bot's token and without its secret half."""
    return text.replace(bot.token, "<token>").replace(bot.token.partition(":")[2], "<token>")


def create_bot(token: str, api_url: str, *, tls: ssl.SSLContext | None = None) -> Bot:
    """Return a bot with a connection of its own. Nothing is sent yet; close `bot.session` at the end.

    Raises:
        ValueError: the token or the address does not have its form. The message does not repeat the token.
    """
    if _TOKEN.fullmatch(token) is None:
        raise ValueError("The bot token must look like 123456789:AbC… Copy it from @BotFather into TAPROOF_BOT_TOKEN.")
    return bot_on(open_session(api_url, tls=tls), token)


def open_session(api_url: str, *, tls: ssl.SSLContext | None = None, limit: int = CONNECTIONS) -> BotApiSession:
    """Return a connection to the Bot API, for as many bots as share it; see `BotApiSession`. Close it at the end.

    Raises:
        ValueError: the address does not have its form.
    """
    if re.fullmatch(r"https?://[^\s{}?#]+", api_url) is None:
        raise ValueError("The Bot API address must look like https://api.telegram.org. Check TAPROOF_BOT_API_URL.")
    return BotApiSession(api_url, tls, limit)


def bot_on(session: BotApiSession, token: str) -> Bot:
    """Return a bot that writes HTML and shows no link previews, and calls over `session`."""
    defaults = DefaultBotProperties(parse_mode=ParseMode.HTML, link_preview_is_disabled=True)
    return Bot(token, session=session, default=defaults)


async def fetch_username(bot: Bot) -> str:
    """Ask the Bot API once for the bot's username, which its links are made of: `https://t.me/<username>`.

    Raises:
        BotTokenRefusedError: no bot has this token.
        BotApiUnreachableError: there is no usable answer just now.
    """
    try:
        me = await bot.get_me()
    except (TelegramUnauthorizedError, TelegramNotFound):
        raise BotTokenRefusedError(
            "The Bot API does not know this bot token. Check TAPROOF_BOT_TOKEN; @BotFather shows the right one.",
        ) from None
    except TelegramAPIError as trouble:
        raise BotApiUnreachableError(
            f"The Bot API cannot be asked ({trouble.message}). Check the network and TAPROOF_BOT_API_URL.",
        ) from None
    if not me.username:
        raise BotTokenRefusedError("TAPROOF_BOT_TOKEN belongs to an account that is not a bot.")
    return me.username


class Reconnection:
    """Waits between attempts to reach the Bot API, and says once what is wrong and once that it is over."""

    def __init__(self) -> None:
        self._failures = 0
        self._told = ""

    async def wait(self, trouble: TelegramAPIError) -> None:
        """Wait as long as this trouble calls for: what the Bot API asks for, up to an hour; or 1 to 30 s, growing."""
        delay = min(2**self._failures, LONGEST_DELAY)
        self._failures = min(self._failures + 1, 10)
        if isinstance(trouble, TelegramUnauthorizedError | TelegramNotFound):
            delay = LONGEST_DELAY
            self._tell("bot_token_refused", trouble, "Check TAPROOF_BOT_TOKEN: the Bot API does not know this token.")
        elif isinstance(trouble, TelegramConflictError):
            self._tell("bot_conflict", trouble, "Another program receives this bot's updates. Stop it.")
        elif isinstance(trouble, TelegramRetryAfter):
            delay = min(max(trouble.retry_after, 1), LONGEST_SILENCE)
            self._tell("bot_flood_wait", trouble, f"The Bot API asks for {delay} s of silence.")
        elif isinstance(trouble, TelegramNetworkError):
            self._tell("bot_api_unreachable", trouble, "Check the network and TAPROOF_BOT_API_URL. Still trying.")
        else:
            self._tell("bot_api_error", trouble, "The Bot API refuses the call. Still trying.")
        await asyncio.sleep(delay)

    def succeeded(self) -> None:
        """Note that the Bot API answered."""
        if self._told:
            _log.info("bot_api_reached")
        self._failures = 0
        self._told = ""

    def _tell(self, event: str, trouble: TelegramAPIError, advice: str) -> None:
        if self._told != event:
            _log.error(event, reason=trouble.message, advice=advice)
        self._told = event
