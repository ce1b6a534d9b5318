"""The bot's own settings: what it reads when it starts, and what it restores."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.bots_server import BotsServer
from tests.messengers.telegram.conftest import Fault, ScriptedApi
from tests.signals import unheard
from tests.waiting import until

from taproof.messengers.telegram.bot_api import Bot, BotApiClient
from taproof.messengers.telegram.bot_settings import check_settings
from taproof.messengers.telegram.connection import Reconnection
from taproof.messengers.telegram.updates import ALLOWED_UPDATES
from taproof.messengers.telegram.webhook import keep_webhook

ME = {"id": 7000000001, "is_bot": True, "first_name": "Sign in", "username": "Sign_In_Bot"}


@pytest.mark.parametrize(
    ("settings", "logged"),
    [
        ({}, []),
        ({"callback_query_mode": "default", "can_join_groups": True}, []),
        ({"callback_query_mode": "inline"}, [("error", "callback_query_mode")]),
        (
            {"supports_inline_queries": True, "can_connect_to_business": True},
            [("warning", "supports_inline_queries"), ("warning", "can_connect_to_business")],
        ),
    ],
)
async def test_the_start_says_what_is_wrong(
    settings: dict[str, Any], logged: list[tuple[str, str]], bot: Bot, api: ScriptedApi
) -> None:
    """Each wrong setting is logged with its advice; the mode in which taps include their messages is set."""
    api.results["getMe"] = ME | settings
    with capture_logs() as logs:
        await check_settings(bot, await bot.get_me())
    wrong = [each for each in logs if each["event"] == "bot_setting_wrong"]
    assert [(each["log_level"], each["setting"]) for each in wrong] == logged
    assert all("@BotFather" in each["advice"] for each in wrong)
    assert api.of("setMySettings") == [{"callback_query_mode": "default"}]


async def test_a_messenger_that_refuses_stops_nothing(bot: Bot, api: ScriptedApi) -> None:
    """The bot also starts with a server before Bot API 10.5, which has no setMySettings, or an unavailable one."""
    me = await bot.get_me()
    for status in (400, 401, 404, 429, 502):
        api.fail("setMySettings", Fault(status, "Not Found: method not found"))
        await check_settings(bot, me)


@pytest.mark.parametrize("change", [{"allowed_updates": ["message"]}, {"url": "https://other.example/hook"}])
async def test_a_webhook_that_another_program_changes(change: dict[str, Any]) -> None:
    """A changed webhook is set again with all kinds of updates, and the change is logged."""
    url = "https://signin.example.com/bot/webhook"
    async with BotsServer().serving() as server:
        served = server.add()
        bot = Bot(BotApiClient(server.base), served.token)
        webhook = keep_webhook(bot, url, lambda: ["s3cret"], Reconnection(unheard), check_seconds=0.01)
        keeping = asyncio.create_task(webhook)
        await until(lambda: served.webhook)
        with capture_logs() as logs:
            served.webhook = served.webhook | change
            await until(lambda: len(served.of("setWebhook")) == 2)
        keeping.cancel()
        assert (served.webhook["url"], served.webhook["allowed_updates"]) == (url, ALLOWED_UPDATES)
        assert "bot_webhook_changed" in [each["event"] for each in logs]
        await bot.api.close()
