"""Run the sandbox's Bot API server with its users in a process of the load: the messenger's side of a sign-in."""

import asyncio
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from benchmarks.machine import fail
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.bots import SandboxBots
from taproof.sandbox.telegram.chats import SandboxChat, SandboxMessage
from taproof.sandbox.telegram.faults import Faults
from taproof.sandbox.telegram.messenger import Messenger
from taproof.sandbox.telegram.people import Person
from taproof.sandbox.telegram.server import BotApi

PEOPLE: Final = 4_000
"""Enough that no user gets two messages within a second, which the flood limit would refuse."""
_FIRST: Final = 1_000_000
_REPLY_SECONDS: Final = 30


class Phones:
    """The users, and their replies to the bot's messages."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        people = range(_FIRST, _FIRST + PEOPLE)
        for number, user_id in enumerate(people):
            messenger.people[user_id] = Person(user_id, "Person", str(number), f"person{number}")
        self._chats = [messenger.chat(user_id) for user_id in people]
        self._next = 0

    def take(self) -> SandboxChat:
        """Return the chat of the user whose last sign-in is the oldest."""
        chat = self._chats[self._next % PEOPLE]
        self._next += 1
        chat.messages.clear()
        return chat

    async def open(self, chat: SandboxChat, token: str) -> SandboxMessage:
        """Open a deeplink; return the bot's prompt."""
        self._messenger.write(chat, f"/start {token}")
        await chat.wait_until(lambda: _prompt(chat) is not None, _REPLY_SECONDS)
        prompt = _prompt(chat)
        if prompt is None:
            fail(f"The bot did not answer a deeplink within {_REPLY_SECONDS} s.")
        return prompt

    async def confirm(self, chat: SandboxChat, prompt: SandboxMessage, token: str) -> None:
        """Tap Confirm; return once the bot has answered the tap and replaced the prompt with the outcome."""
        buttons = (button.get("callback_data", "") for row in prompt.keyboard for button in row)
        data = next((each for each in buttons if each.startswith(f"c:{token}")), None)
        if data is None:
            fail("The bot's prompt has no button that confirms this session.")
        tap = self._messenger.tap(chat, prompt, data)
        await chat.wait_until(lambda: tap.is_answered and not prompt.keyboard, _REPLY_SECONDS)
        if not tap.is_answered or prompt.keyboard:
            fail(f"The bot did not answer a tap within {_REPLY_SECONDS} s.")


def _prompt(chat: SandboxChat) -> SandboxMessage | None:
    return next((each for each in reversed(chat.messages.values()) if each.from_bot and each.keyboard), None)


@asynccontextmanager
async def bot_api() -> AsyncIterator[tuple[str, str, Phones]]:
    """Serve the Bot API on loopback; yield its address, the bot's token, and the users."""
    token = f"1234567890:{secrets.token_hex(16)}abc"
    base_url = "http://127.0.0.1"
    bots = SandboxBots(OwnHosts(base_url), system_clock, system_entropy, base_url)
    bot = bots.add("taproof_benchmark_bot", token=token)
    app = BotApi(bots, Faults())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server: Any = Server(
        app,
        address="127.0.0.1",
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        log_level=LogLevels.error,
    )
    logging.getLogger("granian").setLevel(logging.ERROR)
    serving = asyncio.create_task(server.serve())
    try:
        yield f"http://127.0.0.1:{port}/sandbox", token, Phones(bot.messenger)
    finally:
        await bot.webhook.set(None)
        bots.close()
        server.stop()
        await asyncio.wait([serving], timeout=10)
