"""Taproof as a measured provider: the benchmarks' server, a client of its first project, and the user's tap."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from aiohttp import ClientSession
from benchmarks.machine import fail
from benchmarks.openid_provider.flow import REDIRECT_URI, Provider, Start, json_of, published_by, redirect_of
from benchmarks.server import DEVELOPER, bench_settings
from benchmarks.serving import Target, running
from benchmarks.stores import sqlite_copy

from taproof.core.accounts import Actor
from taproof.runtime.services import open_services

_TOKEN: Final = re.compile(r"\?start=([\w-]{43})\"")


async def confirm(session: ClientSession, address: str) -> str:
    """Load the sign-in page, confirm as the bot does, and load the page again, which redirects to the application."""
    async with session.get(address, allow_redirects=False) as answer:
        found = _TOKEN.search(await answer.text())
        if answer.status != 200 or found is None:
            fail(f"{answer.url} was answered {answer.status} and shows no link to the messenger")
    async with session.post(urljoin(address, "/bench/decide"), json={"session_token": found[1]}) as answer:
        await json_of(answer)
    async with session.get(address, allow_redirects=False) as answer:
        return await redirect_of(answer)


def taproof(sessions: int, profile: Path | None = None) -> Start:
    """Return how Taproof is started on SQLite with this many stored sessions.

    With a `profile` it is sampled from SIGUSR1 on, into that file.
    """
    options = () if profile is None else ("--profile", str(profile))

    @asynccontextmanager
    async def start(directory: Path) -> AsyncIterator[Provider]:
        with sqlite_copy(sessions, directory, "openid") as url:
            access_token = await _access_token(url)
            with running(url, *options) as target:
                issuer = f"http://127.0.0.1:{target.port}"
                client_id, client_secret = await _create_client(issuer, target, access_token)
                published, keys = await published_by(issuer)
                name, storage = "Taproof on SQLite", "SQLite, synchronous=FULL"
                yield Provider(name, storage, target.pid, client_id, client_secret, published, keys, confirm)

    return start


async def _access_token(url: str) -> str:
    async with open_services(bench_settings(url, 1)) as services:
        (developer,) = [each for each in await services.developers.list_developers() if each.email == DEVELOPER]
        return (await services.developers.create_access_token(Actor(developer, "command_line"), "benchmark")).plaintext


async def _create_client(issuer: str, target: Target, access_token: str) -> tuple[str, str]:
    path = f"{issuer}/api/v1/dev/projects/{target.projects[0]}/clients"
    body = {"name": "Benchmark", "redirect_uris": [REDIRECT_URI]}
    async with (
        ClientSession(headers={"Authorization": f"Bearer {access_token}"}) as session,
        session.post(path, json=body) as answer,
    ):
        created = await json_of(answer)
    return created["client_id"], created["client_secret"]
