"""Clients that sign in over HTTP continuously, with decisions made as a bot on another node would make them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
from tests.e2e.conftest import Service
from tests.faults.load import Ledger
from tests.faults.place import Place
from tests.waiting import until
from tests.whole_sign_in import WholeSignIn

from taproof.core.errors import StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.service.sessions.seen import SeenSession

USERS = 8
USER = "1001"


async def generate(client: httpx.AsyncClient, project_id: str) -> httpx.Response:
    return await client.post("/api/v1/generate/public", json={"project_id": project_id})


async def verify(client: httpx.AsyncClient, project_id: str, token: str, *, wait: int = 0) -> httpx.Response:
    body = {"project_id": project_id, "session_token": token, "wait": wait}
    return await client.post("/api/v1/verify/public", json=body, timeout=wait + 30)


class HttpLoad:
    """Signs in through a service. An answer of 200 acknowledges a step."""

    def __init__(self, place: Place, client: httpx.AsyncClient, signin: WholeSignIn) -> None:
        self.place = place
        self.ledger = Ledger()
        self.refused = 0
        self.lost = 0
        self._client = client
        self._signin = signin
        self._signed_in = 0

    async def run(self) -> None:
        while True:
            token = (await self.insist(generate))["session_token"]
            self.ledger.note("created", token)
            await self._insist_on_store(lambda token=token: self._signin.open_session(token, USER))  # type: ignore[misc]
            await self.confirm(token)
            for answer in await asyncio.gather(self.insist(verify, token), self.insist(verify, token)):
                assert answer["status"] in {"confirmed", "used"}
                if "proof" in answer:
                    self.ledger.note("proof", token)
            self._signed_in += 1

    async def insist(self, ask: Callable[..., Awaitable[httpx.Response]], *arguments: str) -> dict[str, Any]:
        """Repeat a call until it is answered; the only allowed refusal is 503 with Retry-After."""
        while True:
            try:
                response = await ask(self._client, self.place.project_id, *arguments)
            except httpx.TransportError:
                self.lost += 1
            else:
                if response.status_code == 200:
                    answer: dict[str, Any] = response.json()
                    return answer
                assert (response.status_code, response.headers["x-error-code"]) == (503, "store_unavailable")
                assert int(response.headers["retry-after"]) > 0
                self.refused += 1
            await asyncio.sleep(0.02)

    async def opened(self) -> str:
        """Return a session that a user has opened."""
        token = (await self._signin.create_session(self.place.project_id, public=True)).session_token
        await self._signin.open_session(token, USER)
        return token

    async def confirm(self, token: str) -> None:
        if (
            await self._insist_on_store(lambda: self._signin.confirm_session(token, MessengerIdentity(USER, "Ada", "")))
        ).changed:
            self.ledger.note("confirmed", token)

    async def until_signed_in(self, times: int) -> None:
        aim = self._signed_in + times
        await until(lambda: self._signed_in >= aim, f"{times} more sign-ins")

    async def _insist_on_store(self, call: Callable[[], Awaitable[SeenSession]]) -> SeenSession:
        while True:
            try:
                return await call()
            except StoreUnavailable:
                await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def http_loaded(place: Place, service: Service) -> AsyncIterator[HttpLoad]:
    """Yield running clients; then stop the service, and compare the store with the answers."""
    # A new connection for each call: a kept one would always reach the same process.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with (
        place.sign_in() as signin,
        httpx.AsyncClient(base_url=service.base_url, timeout=60, limits=limits) as client,
    ):
        load = HttpLoad(place, client, signin)
        users = [asyncio.create_task(load.run()) for _ in range(USERS)]
        try:
            yield load
        finally:
            for user in users:
                user.cancel()
            outcomes = await asyncio.gather(*users, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes), outcomes
    assert await asyncio.to_thread(service.stop) == 0
    await load.ledger.check(place)
