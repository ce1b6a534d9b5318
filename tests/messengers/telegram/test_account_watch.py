"""The account of the service's own bot: changes in @BotFather reach the links of every process."""

from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.bots_server import BotsServer
from tests.messengers.telegram.conftest import in_background
from tests.waiting import until

from taproof.core.errors import MessengerUnavailable, StoreUnavailable
from taproof.core.service_bot import ServiceBot
from taproof.messengers.telegram.account_watch import REFUSALS, ServiceBotWatch, WatchTimes
from taproof.messengers.telegram.bot_api import Bot, BotApiClient
from taproof.runtime.deeplinks import Deeplinks
from taproof.service.bots import Bots
from taproof.storage.protocol import Storage


@pytest.fixture
def bots(storage: Storage) -> Bots:
    no = cast("Any", None)
    return Bots(storage, no, no, no, projects=no, ask=no, is_service_bot=no, limited=no)


def watching(bot: Bot, token: str, bots: Bots, links: Deeplinks) -> AbstractAsyncContextManager[None]:
    """Watch a bot as a process with its token does."""
    times = WatchTimes(0.02, 0.02, 0.02)
    watch = ServiceBotWatch(bot, token, bots, links.know, lambda: links.is_known, times=times)
    return in_background(watch.run())


def link(links: Deeplinks) -> str:
    """Return the address of the service's bot, or the code of the error."""
    try:
        return links.of_bot(None)
    except MessengerUnavailable as error:
        return error.code


async def test_the_life_of_a_bot(bots: Bots) -> None:
    """A new name, a refused token, and its recovery reach the links of every process, with and without the token."""
    async with BotsServer().serving() as server:
        served = server.add("Old_Bot")
        token, bot = served.token, Bot(BotApiClient(server.base), served.token)
        links, elsewhere = Deeplinks(None), Deeplinks("https://t.me/Older_Bot")

        async def both() -> list[str]:
            """Return the link of the process with the token, and that of a process that reads the store."""
            if (account := await bots.read_service_bot()) is not None:
                elsewhere.know(account)
            return [link(links), link(elsewhere)]

        async def reach(expected: str) -> None:
            async def reached() -> bool:
                return await both() == [expected] * 2

            await until(reached, expected)

        with capture_logs() as logs:
            async with watching(bot, token, bots, links):
                await reach("https://t.me/Old_Bot")
                served.username = "New_Bot"
                await reach("https://t.me/New_Bot")
                assert await bot.read_username() == "New_Bot", "commands that name the bot follow"
                served.revoke()
                await reach("messenger_unavailable")
                served.token = token
                await reach("https://t.me/New_Bot")
        await bot.api.close()
    told = [entry["event"] for entry in logs if entry["event"] != "bot_watch_failed"]
    assert [told.count(event) for event in ("bot_known", "bot_broken", "bot_recovered")] == [1, 2, 2], told
    assert told.count("bot_renamed") == 3, told
    assert token.partition(":")[2] not in repr(logs)


async def test_a_newer_token_outlives_the_refusal_of_the_old_one(bots: Bots) -> None:
    """While nodes restart with a new token, one that still has the revoked token does not stop the others."""
    async with BotsServer().serving() as server:
        served = server.add("Sign_In_Bot")
        old, api = served.token, BotApiClient(server.base)
        links, old_links = Deeplinks(None), Deeplinks(None)
        async with watching(Bot(api, old), old, bots, old_links):
            await until(lambda: old_links.is_known)
            new = served.revoke()
            async with watching(Bot(api, new), new, bots, links):
                await until(lambda: links.is_known and link(old_links) == "messenger_unavailable")
        account = await bots.read_service_bot()
        await api.close()
    assert account is not None
    assert not account.is_refused


async def test_a_refusal_is_recorded_when_the_store_is_back(bots: Bots, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store is unavailable when the token counts as refused, the refusal is recorded later.

    Processes without the token see it too.
    """
    failures, record = [StoreUnavailable(), StoreUnavailable()], bots.record_refusal

    async def record_later(token_hash: str) -> None:
        if failures:
            raise failures.pop()
        await record(token_hash)

    monkeypatch.setattr(bots, "record_refusal", record_later)
    async with BotsServer().serving() as server:
        served = server.add("Sign_In_Bot")
        bot, links = Bot(BotApiClient(server.base), served.token), Deeplinks(None)
        async with watching(bot, served.token, bots, links):
            await until(lambda: links.is_known)
            served.revoke()

            async def recorded() -> bool:
                account = await bots.read_service_bot()
                return account is not None and account.is_refused

            await until(recorded)
        await bot.api.close()


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        ((401, "Unauthorized"), "TAPROOF_BOT_TOKEN"),
        ((404, "Not Found"), "TAPROOF_BOT_TOKEN"),
        ((400, "Logged out"), "TAPROOF_BOT_API_URL"),
        ((500, "Internal Server Error"), "refuses the call"),
    ],
)
async def test_an_unknown_name_is_logged_once_with_its_reason(bots: Bots, fault: tuple[int, str], advice: str) -> None:
    """No link is made before the name is known; the log has the reason and the advice once."""
    async with BotsServer().serving() as server:
        served = server.add()
        calls: list[int] = []
        served.faults["getMe"] = lambda: calls.append(1) or fault  # type: ignore[func-returns-value]
        bot, links = Bot(BotApiClient(server.base), served.token), Deeplinks(None)
        with capture_logs() as logs:
            async with watching(bot, served.token, bots, links):
                await until(lambda: len(calls) > REFUSALS)
        await bot.api.close()
    unknown = [entry for entry in logs if entry["event"] == "bot_username_unknown"]
    assert [(entry["reason"], link(links)) for entry in unknown] == [(fault[1], "messenger_unavailable")]
    assert advice in unknown[0]["advice"]


def test_which_addresses_follow_the_username() -> None:
    """The name in an address of Telegram's follows the bot; an operator's own address stays."""
    account = ServiceBot(7, "New_Bot", "")
    for given, expected in {
        None: "https://t.me/New_Bot",
        "https://t.me/old_bot": "https://t.me/New_Bot",
        "https://telegram.me/old_bot": "https://telegram.me/New_Bot",
        "https://sign-in.example/bot": "https://sign-in.example/bot",
        "https://t.me/some/path": "https://t.me/some/path",
    }.items():
        links = Deeplinks(given)
        links.know(account)
        assert links.of_bot(None) == expected
        assert links.is_service_bot(7, "any")
        assert links.find_manager() is None
