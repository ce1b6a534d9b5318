"""Nodes of `taproof serve --sandbox` on one database, and an application that its users sign in to through them."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from aiohttp import web
from tests.e2e.conftest import Service, launch
from tests.faults.conftest import new_database

from taproof.core.clock import system_clock
from taproof.core.encryption import new_master_key
from taproof.core.entropy import system_entropy

PATIENCE = 60.0


@dataclass(frozen=True)
class Node:
    """One of the services, and how to reach its database."""

    service: Service
    url: str
    master_key: str


@contextlib.contextmanager
def running_nodes(driver: str, count: int, directory: Path) -> Iterator[list[Node]]:
    """Yield this many services on one new database."""
    master_key = new_master_key(system_entropy)
    with ExitStack() as stack:
        url = stack.enter_context(new_database(driver, directory))
        nodes = []
        for number in range(count):
            own = directory / f"node{number}"
            own.mkdir()
            service = launch(own, "--database", url, TAPROOF_MASTER_KEY=master_key)
            stack.callback(service.stop)
            nodes.append(Node(service, url, master_key))
        yield nodes


@dataclass(frozen=True)
class Came:
    """A webhook or a proof: when its content was requested, and when it arrived, in ms."""

    began: int
    came: int
    proof: str = ""
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Application:
    """An application's server with one project: it records all webhooks and all proofs."""

    def __init__(self, clients: list[httpx.AsyncClient], access_token: str) -> None:
        self.webhooks: list[Came] = []
        self.proofs: list[Came] = []
        self._clients = clients
        self._turns = itertools.cycle(clients)
        self._headers = {"Authorization": f"Bearer {access_token}"}
        self.project: dict[str, Any] = {}

    async def receive(self, request: web.Request) -> web.Response:
        now = system_clock()
        body = await request.read()
        event = json.loads(body)
        decided = event.get("confirmed_at") or event.get("cancelled_at")
        began = now if decided is None else round(datetime.fromisoformat(decided).timestamp() * 1_000)
        self.webhooks.append(Came(began, now, body=body, headers=dict(request.headers)))
        return web.Response(status=204)

    async def manage(self, method: str, path: str, **body: Any) -> Any:
        """Call the developer API, on each node in turn."""
        response = await next(self._turns).request(
            method, f"/api/v1/dev{path}", headers=self._headers, json=body if method == "POST" else None
        )
        assert response.status_code == 200, response.text
        return response.json()

    async def new_phone(self, name: str) -> "Phone":
        """Create a user; the phones are spread over the nodes."""
        client = next(self._turns)
        user = await _post(client, "/sandbox/users", first_name=name)
        return Phone(self, client, user["id"])

    async def start_session(self) -> dict[str, Any]:
        return await _post(next(self._turns), "/api/v1/generate/public", project_id=self.project["id"])

    async def read_proof(self, token: str) -> None:
        began = system_clock()
        answer = await _post(
            next(self._turns), "/api/v1/verify/public", project_id=self.project["id"], session_token=token
        )
        self.proofs.append(Came(began, system_clock(), proof=answer["proof"]))


@dataclass
class Phone:
    """A simulated user who signs in to the application."""

    application: Application
    client: httpx.AsyncClient
    user_id: int

    async def decide(self, button: str) -> str:
        """Start a session and tap a button; return the session's token."""
        session = await self.application.start_session()
        path = f"/sandbox/users/{self.user_id}"
        assert (await _post(self.client, f"{path}/open", deeplink=session["deeplink"]))["answered"]
        assert (await _post(self.client, f"{path}/tap", button=button))["answered"]
        token: str = session["session_token"]
        return token

    async def sign_in(self) -> None:
        await self.application.read_proof(await self.decide("Confirm"))


@contextlib.asynccontextmanager
async def running_application(nodes: list[Node]) -> AsyncIterator[Application]:
    """Yield an application whose webhooks reach this process."""
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=node.service.base_url, timeout=60))
            for node in nodes
        ]
        # All nodes share one developer, whose access token each start replaces.
        application = Application(clients, nodes[-1].service.access_token)
        server = web.Application()
        server.router.add_post("/hooks", application.receive)
        runner = web.AppRunner(server)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/hooks"
        application.project = await application.manage("POST", "/projects", name="Shop", webhook_url=url)
        yield application


@contextlib.asynccontextmanager
async def signing_in(application: Application, users: int) -> AsyncIterator[None]:
    """Let this many users sign in continuously during the block; every sign-in must succeed."""

    async def sign_in_without_end(phone: Phone) -> None:
        while True:
            await phone.sign_in()

    phones = [await application.new_phone(f"User {number}") for number in range(users)]
    tasks = [asyncio.create_task(sign_in_without_end(phone)) for phone in phones]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends


async def _post(client: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer
