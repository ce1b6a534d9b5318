"""The sandbox on the event loop of the browser, which all tests share."""

from collections.abc import AsyncIterator

import pytest_asyncio
from tests.sandbox.bot import Bot
from tests.sandbox.conftest import EchoBot, Running, run_sandbox


@pytest_asyncio.fixture(loop_scope="session")
async def running() -> AsyncIterator[Running]:
    async with run_sandbox() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def echo(bot: Bot) -> AsyncIterator[EchoBot]:
    echo = EchoBot(bot)
    yield echo
    await echo.stop()
