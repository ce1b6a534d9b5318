"""The sandbox under a real HTTP server, with a bot and a plain HTTP client."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.granian_server import serve
from tests.ports import free_port
from tests.sandbox.bot import Bot, InlineKeyboardButton, InlineKeyboardMarkup, Update
from tests.waiting import until

from taproof.core.entropy import system_entropy
from taproof.sandbox.server import Sandbox

TOKEN = "7000000001:AAtestTESTtestTESTtestTESTtestTEST-_x"
USERNAME = "taproof_sandbox_bot"
ADA, BORIS = 1001, 1002
TRUST = ssl.create_default_context()
"""Created once: reading the certificate authorities for every client would take longer than the tests."""


class HandClock:
    """A clock that a test sets by hand."""

    def __init__(self) -> None:
        self.now = 1_795_214_643_127  # 2026-11-20T22:44:03.127Z

    def __call__(self) -> int:
        return self.now


@dataclass
class Running:
    """A running sandbox, and clients of it."""

    sandbox: Sandbox
    base: str
    http: httpx.AsyncClient
    clock: HandClock

    async def until_polled(self, username: str = USERNAME) -> None:
        """Wait until a call of getUpdates for this bot waits."""
        bot = self.sandbox.bots.find(username)
        assert bot is not None
        await until(lambda: bot.messenger.updates.is_polled, f"a poll of {username}")

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the Bot API with JSON; return the whole answer."""
        response = await self.http.post(f"/sandbox/bot{TOKEN}/{method}", json=parameters)
        answer: dict[str, Any] = response.json()
        assert response.status_code == answer.get("error_code", 200)
        return answer

    async def post(self, path: str, body: object, status: int = 200) -> dict[str, Any]:
        """Call the control API."""
        response = await self.http.post(f"/sandbox/{path}", json=body)
        assert response.status_code == status, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def messages(self, user_id: int = ADA) -> list[dict[str, Any]]:
        response = await self.http.get(f"/sandbox/users/{user_id}/messages")
        found: list[dict[str, Any]] = response.json()["messages"]
        return found


@asynccontextmanager
async def run_sandbox(**options: Any) -> AsyncIterator[Running]:
    """Run a sandbox on a free port."""
    port = free_port()
    clock = HandClock()
    base = f"http://127.0.0.1:{port}"
    sandbox = Sandbox(TOKEN, USERNAME, clock, system_entropy, base, **options)
    stop = await serve(sandbox.app, port)
    async with httpx.AsyncClient(base_url=base, timeout=60, verify=TRUST) as http:
        yield Running(sandbox, base, http, clock)
    await sandbox.close()
    await stop()


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with run_sandbox() as running:
        yield running


@pytest.fixture
def bot(running: Running) -> Bot:
    return Bot(running.http, TOKEN)


def buttons(*pairs: tuple[str, str]) -> InlineKeyboardMarkup:
    row = [InlineKeyboardButton(text=text, callback_data=data) for text, data in pairs]
    return InlineKeyboardMarkup(inline_keyboard=[row])


class EchoBot:
    """A small bot for the sandbox's own tests: a prompt for /start, an edit and a notice for a tap."""

    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        self.labels = ("Confirm", "Cancel")
        self.updates: list[Update] = []
        self._task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        offset = 0
        while True:
            for update in await self.bot.get_updates(offset, timeout=20):
                offset = update.update_id + 1
                self.updates.append(update)
                await self._react(update)

    async def _react(self, update: Update) -> None:
        if update.message is not None:
            text = f"You wrote <b>{len(update.message.text or '')}</b> characters"
            keyboard = buttons((self.labels[0], "c:token"), (self.labels[1], "x:token"))
            await self.bot.send_message(update.message.chat.id, text, reply_markup=keyboard)
        if update.callback_query is not None and update.callback_query.message is not None:
            prompt = update.callback_query.message
            await self.bot.edit_message_text(
                f"You chose {update.callback_query.data}", chat_id=prompt.chat.id, message_id=prompt.message_id
            )
            await self.bot.answer_callback_query(update.callback_query.id, text="Done.")

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.fixture
async def echo(bot: Bot) -> AsyncIterator[EchoBot]:
    echo = EchoBot(bot)
    yield echo
    await echo.stop()
