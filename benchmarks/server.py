"""Starts what is measured, on one core: the service as `taproof serve` composes it, or the bare app in its place.

Usage: python -m benchmarks.server --database FILE --core N [--bare]. Listens on a free port of 127.0.0.1, prints one
line of JSON with the port when it does, and stops when its standard input ends: so it never outlives what started it.

Two things differ from `taproof serve`. No bot runs: the link base is given. And /bench/decide is added, where a
deeplink is opened and confirmed in one call, through the same use cases that the bot calls when a user taps.
"""

import argparse
import asyncio
import base64
import contextlib
import gc
import json
import os
import platform
import socket
import sys
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import apsw
from benchmarks.bare import bare

from taproof.app import build_server, open_services
from taproof.core.clock import system_clock
from taproof.core.model import Identity
from taproof.logs import configure_logging
from taproof.service.housekeeping import Housekeeping
from taproof.service.signin import SignIn
from taproof.service.webhooks import Webhooks
from taproof.settings import Settings, load_settings
from taproof.web.json_body import Receive, Scope, read_json_object
from taproof.web.session_api import Send
from taproof.worker.housekeeping import sweep_until
from taproof.worker.webhooks import WebhookSender, open_client

_MASTER_KEY: Final = base64.b64encode(b"a key for made-up sessions only!").decode()
_USERS: Final = 100_000
"""How many pretend users decide, so that some of them come again, as users do."""


def bench_settings(database: Path, port: int) -> Settings:
    """Return the settings of a service on loopback without a bot."""
    return load_settings(
        {
            "host": "127.0.0.1",
            "port": port,
            "database_url": f"sqlite:///{database.absolute()}",
            "master_key": _MASTER_KEY,
            "messenger_link_base": "https://t.me/benchmark_bot",
        }
    )


class Decide:
    """POST /bench/decide {session_token}: a pretend user opens the deeplink and taps Confirm."""

    def __init__(self, signin: SignIn) -> None:
        self._signin = signin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer {messenger_id} of who confirmed, with 409 when the session did not let them."""
        token = str((await read_json_object(scope, receive))["session_token"])
        user = str(1_000_000_000 + zlib.crc32(token.encode()) % _USERS)
        opened = await self._signin.open_session(token, user)
        confirmed = await self._signin.confirm_session(token, Identity(user, f"User {user}", f"user{user}"))
        status = 200 if (opened.outcome, confirmed.outcome, confirmed.changed) == ("opened", "confirmed", True) else 409
        body = json.dumps({"messenger_id": user}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def free_port() -> int:
    """Return a port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def serve(database: Path, *, is_bare: bool) -> None:
    """Serve until standard input ends."""
    settings = bench_settings(database, free_port())
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stopping.set)
    async with open_services(settings) as services, open_client() as client:
        server: Any = build_server(settings, services, {"/bench/decide": Decide(services.signin)})
        if is_bare:
            server.target = bare
        serving = asyncio.create_task(server.serve())
        await _until_listening(settings.port, serving)
        gc.collect()
        gc.freeze()  # As `taproof serve` does.
        print(json.dumps({"port": settings.port, **versions()}), flush=True)
        webhooks = Webhooks(services.storage, services.sealer, system_clock, "Taproof/benchmark")
        await asyncio.gather(
            _stop_when(stopping, server),
            sweep_until(stopping, Housekeeping(services.storage, system_clock)),
            WebhookSender(webhooks, client).run_until(stopping),
            serving,
        )


async def _until_listening(port: int, serving: asyncio.Task[None]) -> None:
    while not serving.done():
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.01)
    await serving


async def _stop_when(stopping: asyncio.Event, server: Any) -> None:
    await stopping.wait()
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    server.stop()


def versions() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        "Granian": version("granian"),
        "Taproof": version("taproof"),
    }


def main() -> None:
    """Read the arguments, take one core, serve."""
    parser = argparse.ArgumentParser(description="Start what is measured; see benchmarks/README.md.")
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--core", type=int, required=True)
    parser.add_argument("--bare", action="store_true")
    given = parser.parse_args()
    os.sched_setaffinity(0, {given.core})  # Before any thread is started: threads inherit it.
    configure_logging("warning", "console")
    asyncio.run(serve(given.database, is_bare=given.bare))


if __name__ == "__main__":
    main()
