"""Start the measured server on one core: the service as `taproof serve` composes it, or the bare app.

Usage: python -m benchmarks.server --database URL --cores LIST [--bare asgi|rsgi] [--profile FILE]. Listens on a free
port of 127.0.0.1, then prints one line of JSON, and stops when its standard input ends, so it never outlives its
parent.

It differs from `taproof serve` in two ways. No bot runs; the link base is a setting. In three added routes a simulated
user acts through the use cases that the bot calls: /bench/open opens a deeplink, /bench/confirm taps Confirm, and
/bench/decide does both.
"""

import argparse
import asyncio
import base64
import gc
import json
import os
import platform
import socket
import sys
import zlib
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import apsw
import uvloop
from benchmarks.bare import bare, bare_rsgi
from benchmarks.sampling import sampled
from granian.constants import Interfaces

from taproof.api.sessions import Send
from taproof.config.logging import configure_logging
from taproof.config.settings import Settings, load_settings
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.http.body import Receive, Scope, read_json_object
from taproof.jobs.housekeeping import sweep_until
from taproof.runtime.app import build_app
from taproof.runtime.listener import create_server, raise_file_limit, until_listening
from taproof.runtime.pages import Pages
from taproof.runtime.services import Services, open_services
from taproof.service.housekeeping import Housekeeping
from taproof.service.sessions.decide import Decisions
from taproof.webhooks.sender import WebhookSender

MASTER_KEY: Final = base64.b64encode(b"a key for made-up sessions only!").decode()
DEVELOPER: Final = "benchmark@localhost"
_USERS: Final = 100_000
"""The number of simulated users who decide. Some of them sign in again, as real users do."""


def bench_settings(database_url: str, port: int) -> Settings:
    """Return the settings of a service on loopback without a bot."""
    return load_settings(
        {
            "host": "127.0.0.1",
            "port": port,
            "database_url": database_url,
            "master_key": MASTER_KEY,
            "messenger_link_base": "https://t.me/benchmark_bot",
            "generate_limit_project": "off",
            "developer_limit": "off",
        }
    )


class Decide:
    """POST {session_token}: a simulated user opens the deeplink, taps Confirm, or does both."""

    def __init__(self, decisions: Decisions, *, opens: bool, confirms: bool) -> None:
        self._decisions = decisions
        self._opens = opens
        self._confirms = confirms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Return {messenger_id} of the user, or 409 if the session refused them."""
        token = str((await read_json_object(scope, receive))["session_token"])
        user = str(1_000_000_000 + zlib.crc32(token.encode()) % _USERS)
        try:
            done = await self._act(token, user)
        except StoreUnavailable:  # The load may end in the middle of a request, while the store closes.
            done = False
        body = json.dumps({"messenger_id": user}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200 if done else 409, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _act(self, token: str, user: str) -> bool:
        if self._opens and (await self._decisions.open_session(token, user)).outcome != "opened":
            return False
        if not self._confirms:
            return True
        seen = await self._decisions.confirm_session(token, MessengerIdentity(user, f"User {user}", f"user{user}"))
        return seen.outcome == "confirmed" and seen.changed


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def serve(database_url: str, interface: str | None) -> None:
    """Serve until standard input ends; with an interface, the bare app for it."""
    settings = bench_settings(database_url, free_port())
    raise_file_limit()
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stopping.set)
    async with open_services(settings) as services:
        pages = Pages(settings, services)
        app = build_app(
            settings,
            services,
            {
                "/bench/open": Decide(services.decisions, opens=True, confirms=False),
                "/bench/confirm": Decide(services.decisions, opens=False, confirms=True),
                "/bench/decide": Decide(services.decisions, opens=True, confirms=True),
            },
            pages,
        )
        await pages.build()
        server: Any = create_server(settings, app)
        if interface is not None:
            server.target = {"asgi": bare, "rsgi": bare_rsgi}[interface]
        if interface == "rsgi":
            server.interface = Interfaces.RSGI
        # `serve` leaves this to the leader; here it runs before the first request, which needs today's partition.
        housekeeping = Housekeeping(
            services.storage, services.encryptor, system_clock, system_entropy, settings.session_retention_days
        )
        await housekeeping.sweep()
        serving = asyncio.create_task(server.serve())
        await until_listening(settings, serving)
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)  # These three, as `taproof serve` does.
        projects = await _project_ids(services)
        print(json.dumps({"port": settings.port, "projects": projects, "versions": versions()}), flush=True)
        post = services.webhook_client.post
        sender = WebhookSender(services.webhooks, post, services.recorded, services.metrics)
        await asyncio.gather(
            _stop_when(stopping, server),
            services.waiting.run_until(stopping),
            sweep_until(stopping, housekeeping),
            sender.run_until(stopping),
            serving,
        )


async def _project_ids(services: Services) -> list[str]:
    developers = {developer.email: developer for developer in await services.developers.list_developers()}
    if DEVELOPER not in developers:
        return []
    return [project.id for project in await services.projects.list_projects(developers[DEVELOPER])]


async def _stop_when(stopping: asyncio.Event, server: Any) -> None:
    await stopping.wait()
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    server.stop()


def versions() -> dict[str, str]:
    """Return the versions that the figures depend on."""
    packages = {"Granian": "granian", "uvloop": "uvloop", "asyncpg": "asyncpg", "Taproof": "taproof"}
    return {
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        **{name: version(package) for name, package in packages.items()},
    }


def main() -> None:
    """Read the arguments, pin the process, serve."""
    parser = argparse.ArgumentParser(description="Start what is measured; see benchmarks/README.md.")
    parser.add_argument("--database", required=True, metavar="URL")
    parser.add_argument("--cores", required=True, help="such as 0 or 0,1")
    parser.add_argument("--bare", choices=["asgi", "rsgi"])
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write down where the CPU time went")
    given = parser.parse_args()
    os.sched_setaffinity(0, {int(core) for core in given.cores.split(",")})  # Before any thread: threads inherit it.
    configure_logging("warning", "console")
    sampling = sampled(given.profile) if given.profile else nullcontext()
    with sampling, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(given.database, given.bare))


if __name__ == "__main__":
    main()
