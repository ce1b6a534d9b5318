"""PostgreSQL stops, crashes, or cuts all connections while processes work on it; nothing acknowledged is lost."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Final

import httpx
import pytest
from tests.conftest import Figure
from tests.e2e.conftest import StartService
from tests.faults.http_load import generate, http_loaded, verify
from tests.faults.load import loaded
from tests.faults.place import Place, make_place
from tests.postgres_server import PostgresServer, execute

BACK_WITHIN: Final = 10.0
"""Seconds from the server's return until every process works again (the issue's figure)."""
AWAY: Final = 0.7
THROW_OUT: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
async def place(server: PostgresServer) -> Place:
    """Return a database on a separate server, which the test stops."""
    name = f"taproof_{time.monotonic_ns()}"
    execute(server.dsn(), f"CREATE DATABASE {name} TEMPLATE template0")
    return await make_place(server.dsn(name))


async def go_away(server: PostgresServer, stop: Callable[[], None]) -> float:
    """Stop the server and start it after a while; return when it was back, on the monotonic clock."""
    await asyncio.to_thread(stop)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(server.start)
    return time.monotonic()


async def test_a_server_that_stops_and_comes_back(
    place: Place, server: PostgresServer, figure: Figure, *, soak: bool
) -> None:
    """After a stop, a crash or a kill, all calls end as StoreUnavailable, work resumes soon, and nothing is lost."""
    stops = [server.stop, lambda: server.stop("immediate"), server.kill] * (10 if soak else 1)
    async with loaded(place) as load:
        took = []
        for stop in stops:
            for worker in load.workers:
                await worker.until_acknowledged(100)
            load.ledger.unavailable.clear()
            took.append(await load.until_all_work(await go_away(server, stop)))
            assert load.ledger.unavailable
            assert max(seconds for _, seconds in load.ledger.unavailable) < BACK_WITHIN
        assert max(took) < BACK_WITHIN
    figure("stops", len(stops))
    figure("seconds until all work again, at most", f"{max(took):.2f}")
    figure("sessions", len(load.ledger.steps))


async def test_connections_that_are_all_cut(place: Place, *, soak: bool) -> None:
    """After a failover that cuts all connections, calls in flight fail, the next call works, and nothing is lost."""
    async with loaded(place) as load:
        for _ in range(60 if soak else 6):
            for worker in load.workers:
                await worker.until_acknowledged(20)
            since = time.monotonic()
            await asyncio.to_thread(execute, place.url, THROW_OUT)
            assert await load.until_all_work(since) < BACK_WITHIN
        assert load.ledger.unavailable


async def test_a_service_whose_database_goes_away(
    place: Place, server: PostgresServer, start_service: StartService, figure: Figure
) -> None:
    """The service answers only 503 with Retry-After, recovers by itself, and waiting clients get the tap."""
    service = start_service(place)
    async with (
        http_loaded(place, service) as load,
        httpx.AsyncClient(base_url=service.base_url, timeout=60) as client,
    ):
        token = await load.opened()
        for stop in (server.stop, lambda: server.stop("immediate")):
            await load.until_signed_in(15)
            await asyncio.to_thread(stop)
            for response in (await generate(client, place.project_id), await verify(client, place.project_id, token)):
                assert (response.status_code, response.headers["x-error-code"]) == (503, "store_unavailable")
                assert int(response.headers["retry-after"]) > 0
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()) == (503, {"error": "The store does not answer, or is read-only."})
            assert (await client.get("/healthz")).status_code == 200
            await asyncio.sleep(AWAY)
            await asyncio.to_thread(server.start)
            back = time.monotonic()
            await load.until_signed_in(1)
            assert time.monotonic() - back < BACK_WITHIN
            figure("seconds until the service works again", f"{time.monotonic() - back:.2f}")
        assert (await client.get("/readyz")).status_code == 200
        waiting = asyncio.create_task(verify(client, place.project_id, token, wait=20))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        began = time.monotonic()
        await load.confirm(token)
        assert (await waiting).json()["status"] == "confirmed"
        assert time.monotonic() - began < 2
    # Callers learn that the database is unavailable; it is not logged as a bug.
    assert '"level": "error"' not in service.log()
