"""Taproof as a measured provider: the benchmarks' server, a client of its first project, and the user's tap."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from aiohttp import ClientSession
from benchmarks.machine import fail
from benchmarks.openid_provider.flow import REDIRECT_URI, Provider, SignIn, Start, json_of, published_by, redirect_of
from benchmarks.server import DEVELOPER, bench_settings
from benchmarks.serving import Target, running
from benchmarks.stores import sqlite_copy

from taproof.core.accounts import Actor
from taproof.core.identity import MessengerIdentity
from taproof.runtime.services import Services, open_services
from taproof.service.sessions.decide import Decisions

Confirm = Callable[[ClientSession, str, str], Awaitable[None]]
"""Let the user confirm. Takes the load's session, the address of the sign-in page, and the session's token."""

_USER: Final = MessengerIdentity("1000000001", "User 1000000001", "user1000000001")
_TOKEN: Final = re.compile(r"\?start=([\w-]{43})\"")


async def confirm_by_route(session: ClientSession, page: str, session_token: str) -> None:
    """Confirm as the bot does, in the server."""
    async with session.post(urljoin(page, "/bench/decide"), json={"session_token": session_token}) as answer:
        await json_of(answer)


def confirm_in_store(decisions: Decisions) -> Confirm:
    """Return how a user confirms in this process, on the server's database, at no cost to the server."""

    async def confirm(_session: ClientSession, _page: str, session_token: str) -> None:
        opened = await decisions.open_session(session_token, _USER.messenger_id)
        confirmed = await decisions.confirm_session(session_token, _USER)
        if opened.outcome != "opened" or not confirmed.changed:
            fail(f"The store refused a user: {opened.outcome}, {confirmed.outcome}")

    return confirm


def through_page(confirm: Confirm) -> SignIn:
    """Return how a user signs in: load the page, confirm, and load it again, which redirects to the application."""

    async def sign_in(session: ClientSession, address: str) -> str:
        async with session.get(address, allow_redirects=False) as answer:
            found = _TOKEN.search(await answer.text())
            if answer.status != 200 or found is None:
                fail(f"{answer.url} was answered {answer.status} and shows no link to the messenger")
        await confirm(session, address, found[1])
        async with session.get(address, allow_redirects=False) as answer:
            return await redirect_of(answer)

    return sign_in


def taproof(sessions: int, profile: Path | None = None, *, confirms_elsewhere: bool = False) -> Start:
    """Return how Taproof is started on SQLite with this many stored sessions.

    With a `profile` it is sampled from SIGUSR1 on, into that file. `confirms_elsewhere` makes the users confirm in the
    load's process, as if another process served the bot.
    """
    options = () if profile is None else ("--profile", str(profile))

    @asynccontextmanager
    async def start(directory: Path) -> AsyncIterator[Provider]:
        with sqlite_copy(sessions, directory, "openid") as url:
            async with open_services(bench_settings(url, 1)) as services:
                developer_token = await access_token(services)
                with running(url, *options) as target:
                    issuer = f"http://127.0.0.1:{target.port}"
                    client_id, client_secret = await _create_client(issuer, target, developer_token)
                    published, keys = await published_by(issuer)
                    confirm = confirm_in_store(services.decisions) if confirms_elsewhere else confirm_by_route
                    name = f"Taproof on SQLite{', confirmed elsewhere' if confirms_elsewhere else ''}"
                    secrets = (client_id, client_secret)
                    storage = "SQLite, synchronous=FULL"
                    yield Provider(name, storage, target.pid, *secrets, published, keys, through_page(confirm))

    return start


async def access_token(services: Services) -> str:
    """Create an access token of the developer of all projects; return it in plain text."""
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
