"""Bot updates by webhook: an update whose node is killed takes effect at another node when its claim has ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.responses import Response
from tests.conftest import Figure
from tests.e2e.conftest import Service, launch
from tests.faults.place import Place, rows
from tests.granian_server import serve
from tests.ports import free_port

from taproof.core.clock import SECOND, system_clock
from taproof.core.entropy import system_entropy
from taproof.messengers.telegram.updates import LEASE
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.bots import SandboxBots
from taproof.sandbox.telegram.faults import Faults
from taproof.sandbox.telegram.server import BotApi

PATIENCE = 120.0
USER = 1001
NAMES = ("first", "second")


class Telegram:
    """The sandbox's Bot API server. Each node calls it below a path of its own, and calls of one node can be held."""

    def __init__(self) -> None:
        base_url = "http://127.0.0.1"
        self.bots = SandboxBots(OwnHosts(base_url), system_clock, system_entropy, base_url)
        self.bot = self.bots.add("shop_bot")
        self.held_node = ""
        self.is_holding = asyncio.Event()
        self._ended = asyncio.Event()
        self._api = BotApi(self.bots, Faults())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        _, node, path = scope["path"].split("/", 2)
        if node == self.held_node and path.endswith("/sendMessage"):
            self.is_holding.set()
            await self._ended.wait()
            await Response(status_code=500)(scope, receive, send)
            return
        await self._api({**scope, "path": f"/{path}"}, receive, send)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Yield the server's address."""
        port = free_port()
        stop = await serve(self, port)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            self._ended.set()
            await self.bot.webhook.set(None)
            self.bots.close()
            await stop()


@asynccontextmanager
async def balancer(nodes: Sequence[Service]) -> AsyncIterator[int]:
    """Yield a port whose connections go to the first node that accepts them; `nodes` may be filled later."""

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
        target.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for node in nodes:
            with contextlib.suppress(OSError):
                to_reader, to_writer = await asyncio.open_connection("127.0.0.1", node.port)
                await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))
                return
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def read_claim(place: Place) -> int:
    """Return the time (ms) of the claim of the only unfinished update."""
    ((claimed_at,),) = await rows(place.url, "SELECT claimed_at FROM bot_updates WHERE done = 0")
    return int(claimed_at)


async def test_an_update_of_a_killed_node(place: Place, tmp_path: Path, figure: Figure) -> None:
    """A node renews its claim while it works. After `kill -9`, the update takes effect at the other node.

    That is at the messenger's first attempt after the claim's end. The user gets one prompt, and signs in with it.
    """
    telegram = Telegram()
    nodes: list[Service] = []
    async with telegram.serving() as bot_api, balancer(nodes) as port, contextlib.AsyncExitStack() as stack:
        for name in NAMES:
            directory = tmp_path / name
            directory.mkdir()
            node = await asyncio.to_thread(
                launch,
                directory,
                *("--database", place.url, "--bot-updates", "webhook"),
                sandbox=False,
                TAPROOF_BASE_URL=f"http://127.0.0.1:{port}",
                TAPROOF_BOT_TOKEN=telegram.bot.token,
                TAPROOF_BOT_API_URL=f"{bot_api}/{name}/sandbox",
                TAPROOF_MASTER_KEY=place.master_key,
            )
            stack.push_async_callback(asyncio.to_thread, node.stop)
            nodes.append(node)
        async with asyncio.timeout(PATIENCE):
            while telegram.bot.webhook.webhook is None:  # noqa: ASYNC110 — another process sets it.
                await asyncio.sleep(0.05)
        signin = await stack.enter_async_context(place.sign_in())
        token = (await signin.create_session(place.project_id, public=True)).session_token

        # The first node claims the update, and its reply hangs for longer than one renewal takes.
        telegram.held_node = NAMES[0]
        chat = telegram.bot.messenger.chat(USER)
        telegram.bot.messenger.write(chat, f"/start {token}")
        async with asyncio.timeout(PATIENCE):
            await telegram.is_holding.wait()
            begun = await read_claim(place)
            while await read_claim(place) <= begun:  # noqa: ASYNC110 — the store tells only those who ask.
                await asyncio.sleep(0.1)
        nodes[0].process.kill()
        killed_at = system_clock()
        await asyncio.to_thread(nodes[0].process.wait)
        last_renewal = await read_claim(place)

        def prompts() -> list[Any]:
            return [message for message in chat.messages.values() if message.from_bot]

        assert await chat.wait_until(lambda: bool(prompts()), PATIENCE)
        ((taken_over,),) = await rows(place.url, "SELECT claimed_at FROM bot_updates")
        # By the nodes' clocks, not before the claim's end. The limit is generous: one attempt is made every second.
        assert LEASE <= taken_over - last_renewal < LEASE + 12 * SECOND
        figure("seconds from the kill to the takeover", (taken_over - killed_at) / SECOND)

        (prompt,) = prompts()
        buttons = [button["callback_data"] for row in prompt.keyboard for button in row]
        (confirm,) = [data for data in buttons if data.startswith("c:")]
        tap = telegram.bot.messenger.tap(chat, prompt, confirm)
        assert await chat.wait_until(lambda: tap.is_answered, PATIENCE)
        assert (await signin.verify_session(place.project_id, token, public=True)).proof
        assert len(prompts()) == 1
