"""The loops on the real store, posting to a real receiver on this machine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.service.conftest import HandClock
from tests.webhooks.shop import Post, Receiver, Scene, Shop

from taproof.core.address_rules import AddressRules
from taproof.core.clock import system_clock
from taproof.storage.sqlite.store import SqliteStorage
from taproof.webhooks.http_client import open_webhook_client

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine on the standard library's event loop, or on the service's own."""

    def run(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(coroutine)

    return run


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    endpoint = Receiver()
    application = web.Application()
    application.router.add_post("/{answer}", endpoint.receive)
    server = TestServer(application, host="127.0.0.1")
    await server.start_server()
    endpoint.base = f"http://127.0.0.1:{server.port}"
    yield endpoint
    endpoint.released.set()
    await server.close()


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def clock() -> HandClock:
    """Start at the real time, because the signature library uses the machine's own clock."""
    return HandClock(system_clock())


@pytest.fixture
async def shop(tmp_path: Path, clock: HandClock) -> AsyncIterator[Shop]:
    store = SqliteStorage.open(tmp_path / "taproof.db", clock())
    yield Shop(store, clock)
    await store.close()


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    """Posts as the sandbox does, where loopback addresses are allowed."""
    async with open_webhook_client(AddressRules(["loopback"]), frozenset({443, 8443}), allow_http=True) as client:
        yield client.post
