"""The account of a bot token, as the messenger returns it. No error contains the token."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession
from tests.messengers.telegram.bots_server import BotsServer

from taproof.core.errors import BotTokenRefused, MessengerUnavailable
from taproof.messengers.telegram import bot_api
from taproof.messengers.telegram.accounts import fetch_account
from taproof.messengers.telegram.bot_api import BotApiClient
from taproof.service.bots import BotAccount

SECRET = "AAsecretSECRETsecretSECRETsecretSECRET0"


@asynccontextmanager
async def asking(api_url: str) -> AsyncIterator[BotApiClient]:
    """Yield a client of the Bot API at this address."""
    api = BotApiClient(api_url)
    yield api
    await api.close()


async def test_a_token_that_is_known_names_its_bot() -> None:
    """The id and the username are those that the messenger returns."""
    async with BotsServer().serving() as server, asking(server.base) as api:
        bot = server.add("Shop_Bot")
        assert await fetch_account(api, bot.token) == BotAccount(bot.id, "Shop_Bot")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((401, "Unauthorized"), BotTokenRefused),
        ((404, "Not Found"), BotTokenRefused),
        ((500, "Internal"), MessengerUnavailable),
        ((502, "Bad Gateway"), MessengerUnavailable),
        ((429, "Too Many Requests: retry after 9"), MessengerUnavailable),
        (None, BotTokenRefused),
    ],
)
async def test_a_token_without_an_account(
    answer: tuple[int, str] | None, error: type[BotTokenRefused | MessengerUnavailable]
) -> None:
    """401 and 404 mean that no bot has it. A bot without a username makes no links. Other errors refuse no token."""
    async with BotsServer().serving() as server, asking(server.base) as api:
        bot = server.add("x")
        if answer is None:
            bot.username = ""
        else:
            bot.faults["getMe"] = lambda: answer
        with pytest.raises(error) as caught:
            await fetch_account(api, bot.token)
    if error is MessengerUnavailable:
        assert "nothing was changed" in caught.value.sentence
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


async def test_all_calls_share_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each checked token costs at most one call."""
    opened = []

    def counting(**options: Any) -> ClientSession:
        opened.append(options)
        return ClientSession(**options)

    monkeypatch.setattr(bot_api, "ClientSession", counting)
    async with BotsServer().serving() as server, asking(server.base) as api:
        bots = [server.add() for _ in range(5)]
        found = await asyncio.gather(*(fetch_account(api, bot.token) for bot in bots))
        with pytest.raises(BotTokenRefused):
            await fetch_account(api, f"7000000001:{SECRET}")
        assert [account.id for account in found] == [bot.id for bot in bots]
        assert len(opened) == 1
