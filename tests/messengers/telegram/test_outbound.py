"""The Bot API behind the HTTP proxy of a network: every call uses it, and failures name it without its password."""

import asyncio

import pytest
from structlog.testing import capture_logs
from tests.http_proxy import HttpProxy, http_proxy
from tests.messengers.telegram.bots_server import BotsServer
from tests.ports import free_port
from tests.signals import unheard
from tests.waiting import until

from taproof.messengers.telegram.bot_api import Bot, BotApiClient, TelegramNetworkError
from taproof.messengers.telegram.connection import Reconnection
from taproof.messengers.telegram.polling import LongPolling, PollTimes
from taproof.sdk.environment_proxy import EnvironmentProxy, find_proxy

ADDRESS = "http://api.only-through-the-proxy.example"


def environment_proxy(proxy: HttpProxy, url: str = ADDRESS, password: str = "") -> EnvironmentProxy:
    found = find_proxy(url, {"ALL_PROXY": proxy.url.replace("secret@", f"{password or 'secret'}@")})
    assert found is not None
    return found


async def call(proxy: EnvironmentProxy, token: str, url: str = ADDRESS) -> str:
    """Call getMe; return the username or the error."""
    bot = Bot(BotApiClient(url, proxy=proxy), token)
    try:
        return (await bot.get_me(seconds=5)).username or ""
    except TelegramNetworkError as error:
        return error.message
    finally:
        await bot.api.close()


async def test_calls_go_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that only the proxy knows is reached, also with a password. A client without a proxy goes directly."""
    async with BotsServer().serving() as server:
        served = server.add("Sign_In_Bot")
        with http_proxy(int(server.base.rpartition(":")[2]), login="ada:secret") as proxy:
            assert await call(environment_proxy(proxy), served.token) == "Sign_In_Bot"
            assert proxy.asked == [f"POST {ADDRESS}"]
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            direct = Bot(BotApiClient(server.base), served.token)
            await direct.get_me()
            await direct.api.close()
            assert len(proxy.asked) == 1


async def test_what_a_failing_proxy_is_called() -> None:
    """The message names the proxy's failure and the variable, without the proxy's password."""
    secure = "https://api.telegram.org"
    token = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"
    with http_proxy(free_port(), login="ada:secret") as asks, http_proxy(free_port(), refusal=403) as refuses:
        gone = HttpProxy(0, login="ada:secret", port=free_port())
        for proxy, url, password, expected in [
            (asks, secure, "wrong", "HTTP status 407, so it asks for a user and password"),
            (asks, ADDRESS, "wrong", "HTTP status 407"),
            (refuses, secure, "", "refuses the connection with HTTP status 403"),
            (refuses, ADDRESS, "", "HTTP status 403"),
            (gone, secure, "", "cannot be reached"),
            (gone, ADDRESS, "", "cannot be reached"),
        ]:
            trouble = await call(environment_proxy(proxy, url, password), token, url)
            assert expected in trouble
            assert f"the proxy http://127.0.0.1:{proxy.port} (ALL_PROXY)" in trouble
            assert not any(each in trouble for each in ("secret", "wrong", token.partition(":")[2])), trouble


@pytest.mark.parametrize("login", ["ada:P%21SEC%40RET", "SECRET", "ada:SECRET"])
async def test_a_proxy_that_answers_no_http(login: str) -> None:
    """The error contains the URL, in which some characters of a password are escaped and others are not."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\x15\x03\x01\r\n\r\n")  # A TLS alert.
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        proxy = find_proxy("https://api.telegram.org", {"HTTPS_PROXY": f"http://{login}@127.0.0.1:{port}"})
        assert proxy is not None
        trouble = await call(proxy, "123456789:AAabcdefghijklmnopqrstuvwxyz0123456", "https://api.telegram.org")
    assert f"the proxy http://127.0.0.1:{port} (HTTPS_PROXY)" in trouble
    assert "SEC" not in trouble


async def test_a_proxy_that_cuts_idle_connections() -> None:
    """Long polls become shorter until they are answered before the proxy cuts them, and no update waits for that."""
    times = PollTimes(poll=8, shortest_poll=1)
    async with BotsServer().serving() as server:
        served = server.add()
        with http_proxy(int(server.base.rpartition(":")[2]), idle=2.5) as proxy, capture_logs() as logs:
            bot = Bot(BotApiClient(ADDRESS, proxy=environment_proxy(proxy)), served.token)
            polls = LongPolling(bot, None, 0, Reconnection(unheard), times=times)  # type: ignore[arg-type]
            task = asyncio.create_task(polls.run())
            await until(lambda: "bot_api_reached" in [entry["event"] for entry in logs])
            task.cancel()
            await asyncio.wait([task])
            await bot.api.close()
    assert [entry["seconds"] for entry in logs if entry["event"] == "bot_poll_shortened"] == [4, 2]
