"""The connection to the Bot API: clear errors, patience, and the token in none of them."""

import asyncio
import socket
import traceback
from collections.abc import Callable

import pytest
from aiogram import Bot
from aiogram.exceptions import (
    TelegramAPIError,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.methods import GetMe
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import TOKEN, Fault, ScriptedApi

from taproof.messengers.telegram import connection
from taproof.messengers.telegram.connection import (
    BotApiUnreachableError,
    BotTokenRefusedError,
    Reconnection,
    create_bot,
    fetch_username,
    waiting_out_floods,
)


def assert_no_token(error: BaseException) -> None:
    """Check everything that a log could make of an error, its causes and contexts included."""
    seen: BaseException | None = error
    while seen is not None:
        for text in [str(seen), repr(seen), str(seen.__dict__), "".join(traceback.format_exception(seen))]:
            assert TOKEN not in text
            assert TOKEN.partition(":")[2] not in text
        seen = seen.__cause__ or seen.__context__


@pytest.mark.parametrize(
    "token", ["", "x", "123", "123:", ":abc", "1 2:abc", "123:a/b", "123:a?b", "１２:abc", "1:a\n"]
)
def test_malformed_token_is_refused_unrepeated(token: str) -> None:
    """A token that cannot be one is refused at start, with its setting's name and without itself."""
    with pytest.raises(ValueError, match="TAPROOF_BOT_TOKEN") as refusal:
        create_bot(token, "https://api.telegram.org")
    secret = token.partition(":")[2]
    assert not secret or secret not in str(refusal.value)


@pytest.mark.parametrize(
    "api_url", ["", "api.telegram.org", "ftp://x", "https://", "https://a b", "https://{token}", "https://x?y"]
)
def test_malformed_address_is_refused(api_url: str) -> None:
    """An address that cannot be called is refused at start, with its setting's name."""
    with pytest.raises(ValueError, match="TAPROOF_BOT_API_URL"):
        create_bot(TOKEN, api_url)


async def test_address_may_have_a_path(api: ScriptedApi) -> None:
    """The Bot API may hang below a path, with or without a slash at the end."""
    for api_url in ["http://localhost:1/sandbox", "http://localhost:1/sandbox/"]:
        bot = create_bot(TOKEN, api_url)
        assert bot.session.api.api_url(TOKEN, "getMe") == f"http://localhost:1/sandbox/bot{TOKEN}/getMe"


async def test_username_is_fetched(bot: Bot) -> None:
    """The link base is made of the username that getMe tells."""
    assert await fetch_username(bot) == "Sign_In_Bot"


@pytest.mark.parametrize("fault", [Fault(401, "Unauthorized"), Fault(404, "Not Found")])
async def test_refused_token_is_told_apart(fault: Fault, bot: Bot, api: ScriptedApi) -> None:
    """A wrong token is the operator's to correct, and the error says where."""
    api.fail("getMe", Fault(fault.status, fault.description))
    with pytest.raises(BotTokenRefusedError, match="TAPROOF_BOT_TOKEN") as refusal:
        await fetch_username(bot)
    assert_no_token(refusal.value)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500, "Internal Server Error"),
        Fault(502, raw=f"<html>/bot{TOKEN}/getMe could not be reached</html>"),
        Fault(200, raw=f'{{"ok": true, "result": "{TOKEN}"}}'),
        Fault(200, raw="[]"),
        Fault(200, raw='{"ok": true}'),
        Fault(200, raw='{"ok": true, "result": null}'),
        Fault(200, raw="[" * 100_000),
        Fault(500, raw='{"ok": false}'),
        Fault(400, f"Bad Request: no such path /bot{TOKEN}/getMe"),
        Fault(429, "Too Many Requests: retry after 1", {"retry_after": 1}),
        Fault(302, raw=""),
    ],
)
async def test_unusable_answer_does_not_leak_the_token(fault: Fault, bot: Bot, api: ScriptedApi) -> None:
    """Whatever answers in the Bot API's place and quotes the address, the token is in no error; asked only once."""
    api.fail("getMe", Fault(fault.status, fault.description, fault.parameters, raw=fault.raw))
    with pytest.raises(BotApiUnreachableError, match="TAPROOF_BOT_API_URL") as trouble:
        await fetch_username(bot)
    assert_no_token(trouble.value)
    assert len(api.calls) == 1


def closed_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("address", [closed_port, lambda: "http://127.0.0.1:99999"])
async def test_unreachable_server_does_not_leak_the_token(address: Callable[[], str]) -> None:
    """Nothing listens, or there is no such port: a network error without the token, its context included."""
    async with create_bot(TOKEN, address()) as bot:
        with pytest.raises(TelegramNetworkError) as trouble:
            await bot.get_me()
    assert_no_token(trouble.value)


async def test_endless_answer_is_not_read_whole(bot: Bot, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is read through a cap."""
    monkeypatch.setattr(connection, "ANSWER_LIMIT", 100_000)
    api.fail("getMe", Fault(200, raw=" " * 1_000_000))
    with pytest.raises(TelegramNetworkError):
        await bot.get_me()


async def test_slow_server_is_given_up(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that accepts and says nothing does not hold the bot for ever."""
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.1)

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        gone.set()

    gone = asyncio.Event()
    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, create_bot(TOKEN, f"http://127.0.0.1:{port}") as silent:
        with pytest.raises(TelegramNetworkError, match="no answer in time"):
            await silent.get_me()
        await gone.wait()


async def test_flood_wait_is_bounded(bot: Bot, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call waits as told, at most 60 s in all, in a hurry not at all; then the update comes again later."""
    waits: list[float] = []

    async def pause(seconds: float, _: asyncio.Event) -> None:
        waits.append(seconds)

    monkeypatch.setattr(connection, "_pause", pause)
    hurry = asyncio.Event()
    for seconds in [10, 25, 10**400]:
        api.fail("sendMessage", Fault(429, "Too Many Requests: retry later", {"retry_after": seconds}))
    with pytest.raises(TelegramRetryAfter), waiting_out_floods(hurry):
        await bot.send_message(11, "text")
    assert waits == [10, 25]
    api.fail("sendMessage", Fault(429, "Too Many Requests: retry later", {"retry_after": 10**400}, times=4))
    with pytest.raises(TelegramRetryAfter), waiting_out_floods(hurry):
        await bot.send_message(11, "text")
    hurry.set()
    with pytest.raises(TelegramRetryAfter), waiting_out_floods(hurry):
        await bot.send_message(11, "text")
    with pytest.raises(TelegramRetryAfter):
        await bot.send_message(11, "text")
    assert waits == [10, 25, 60]
    assert len(api.of("sendMessage")) == 3 + 2 + 1 + 1


async def test_hurry_ends_a_wait(bot: Bot, api: ScriptedApi) -> None:
    """A call that waits out the flood limit is made once more, and no longer waits, as soon as there is a hurry."""
    hurry = asyncio.Event()
    api.fail("sendMessage", Fault(429, "Too Many Requests: retry later", {"retry_after": 3600}, times=9))

    def soon(*_: object) -> None:
        asyncio.get_running_loop().call_later(0.02, hurry.set)

    api.on_call = soon
    async with asyncio.timeout(10):
        with pytest.raises(TelegramRetryAfter), waiting_out_floods(hurry):
            await bot.send_message(11, "text")
    assert len(api.of("sendMessage")) == 2


async def test_delays_grow_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts to reconnect come after 1, 2, 4, … seconds, never more than 30, and start anew after a success."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("taproof.messengers.telegram.connection.asyncio.sleep", sleep)
    reconnection = Reconnection()
    trouble = TelegramNetworkError(GetMe(), "away")
    with capture_logs() as logs:
        for _ in range(8):
            await reconnection.wait(trouble)
        reconnection.succeeded()
        await reconnection.wait(trouble)
        await reconnection.wait(TelegramUnauthorizedError(GetMe(), "Unauthorized"))
        await reconnection.wait(TelegramRetryAfter(GetMe(), "wait", 45))
        await reconnection.wait(TelegramAPIError(GetMe(), "odd"))
        await reconnection.wait(TelegramRetryAfter(GetMe(), "wait", 10**400))
        await reconnection.wait(TelegramRetryAfter(GetMe(), "wait", -1))
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30, 1, 30, 45, 8, 3600, 1]
    assert [entry["event"] for entry in logs] == [
        "bot_api_unreachable",
        "bot_api_reached",
        "bot_api_unreachable",
        "bot_token_refused",
        "bot_flood_wait",
        "bot_api_error",
        "bot_flood_wait",
    ]
