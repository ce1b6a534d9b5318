"""Run an application in this process under the real HTTP server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from granian.constants import Interfaces
from granian.server.embed import Server
from tests.waiting import PATIENCE, until


async def serve(app: Any, port: int) -> Callable[[], Awaitable[None]]:
    """Start an ASGI application, wait until it listens, and return a function that stops it."""
    server = Server(
        app,
        address="127.0.0.1",
        port=port,
        interface=Interfaces.ASGINL,
        websockets=False,
        # As many requests at once as the service takes: the default would let no more than 128 bots poll.
        backlog=1024,
        backpressure=4096,
        log_enabled=False,
        log_access=False,
    )
    serving = asyncio.create_task(server.serve())

    async def listens() -> bool:
        assert not serving.done(), serving
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    async def stop() -> None:
        server.stop()  # type: ignore[no-untyped-call]
        async with asyncio.timeout(PATIENCE):
            await serving

    await until(listens)
    return stop
