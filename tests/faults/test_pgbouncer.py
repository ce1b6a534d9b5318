"""Behind PgBouncer in transaction mode, PostgreSQL supports everything except LISTEN."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from tests.conftest import Figure
from tests.databases import NOW, expired_event
from tests.e2e.conftest import StartService
from tests.faults.http_load import generate, verify
from tests.faults.pgbouncer import SERVER_CONNECTIONS, PgBouncer, running_pgbouncer
from tests.faults.place import Place, assert_counters_fit, make_place, rows
from tests.postgres_server import fresh_database
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import DAY, day_number, system_clock
from taproof.core.errors import StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.runtime.store import migrate, open_storage
from taproof.storage.migrate import migrations
from taproof.storage.postgres.connection import find_pooler
from taproof.storage.postgres.store import PostgresStorage

USER = "1001"
POLLERS = 64
ADA = MessengerIdentity(USER, "Ada", "ada")


@pytest.fixture
def bouncer(dsn: str) -> Iterator[PgBouncer]:
    with running_pgbouncer(dsn) as bouncer:
        yield bouncer


@pytest.fixture
def dsn() -> Iterator[str]:
    """Return a database, with its direct DSN."""
    with fresh_database() as dsn:
        yield dsn


@pytest.fixture
async def place(dsn: str, bouncer: PgBouncer) -> Place:
    """Return a project in it, with the DSN through PgBouncer; the schema was created through PgBouncer too."""
    return await make_place(bouncer.dsn(dsn))


@pytest.fixture
async def signin(place: Place) -> AsyncIterator[WholeSignIn]:
    async with place.sign_in() as signin:
        yield signin


@pytest.fixture
async def other_node(place: Place) -> AsyncIterator[WholeSignIn]:
    async with place.sign_in() as signin:
        yield signin


async def opened(signin: WholeSignIn, project_id: str) -> str:
    token = (await signin.create_session(project_id, public=True)).session_token
    assert (await signin.open_session(token, USER)).outcome == "opened"
    return token


@pytest.mark.parametrize("mode", ["session", "transaction"])
async def test_a_pooler_is_recognised(dsn: str, mode: str) -> None:
    """The start detects transaction mode. In session mode, settings persist and notifications arrive."""
    assert await find_pooler(dsn) == "none"
    with running_pgbouncer(dsn, mode) as bouncer:
        assert [await find_pooler(bouncer.dsn(dsn)) for _ in range(5)] == [mode] * 5
        storage = await PostgresStorage.open(bouncer.dsn(dsn), NOW)
        (setting,) = await storage.database.fetch("SELECT current_setting('plan_cache_mode')")
        assert (setting[0] == "force_custom_plan") is (mode == "session")
        assert storage.sessions.hears is (mode == "session")
        await storage.close()


async def test_what_a_pooler_refuses_is_explained(dsn: str, bouncer: PgBouncer) -> None:
    """Unlike the server, PgBouncer has one error for everything, so the sentence lists the causes."""
    url = bouncer.dsn(dsn)
    for wrong, advice in ((f"{url}?options=-c%20jit%3Doff", "ignore_startup_parameters"), (f"{url}x", "its database")):
        with pytest.raises(StoreUnavailable, match=advice):
            await migrate(wrong)


async def test_it_is_transaction_mode(place: Place, dsn: str) -> None:
    """The statements of one client use several server connections, which the tests of this file require."""
    async with place.sign_in() as signin:
        storage = signin.storage
        assert isinstance(storage, PostgresStorage)
        # Statements that take a while overlap, however fast the machine is.
        await asyncio.gather(*(storage.database.fetch("SELECT pg_sleep(0.2)") for _ in range(5)))
        behind = (
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'taproof'"
        )
        ((connections,),) = await rows(dsn, behind)
    assert 1 < connections <= SERVER_CONNECTIONS


async def test_migrations(dsn: str, bouncer: PgBouncer) -> None:
    """Nodes that start at once through PgBouncer run each migration once."""
    latest = len(migrations("postgres"))
    found = await asyncio.gather(*(migrate(bouncer.dsn(dsn)) for _ in range(4)))
    assert [before for before, _ in found].count(0) == 1
    assert {after for _, after in found} == {latest}
    assert await migrate(bouncer.dsn(dsn)) == (latest, latest)


async def test_lives_of_sessions_on_two_nodes(
    place: Place, signin: WholeSignIn, other_node: WholeSignIn, dsn: str
) -> None:
    """100 sessions on two nodes that race for each have one decision and one proof each, and matching counters."""
    tokens = await asyncio.gather(*(opened(signin, place.project_id) for _ in range(100)))
    nodes = (signin, other_node)
    decided = await asyncio.gather(
        *(
            node.cancel_session(token, USER)
            if number % 7 == 0 and node is signin
            else node.confirm_session(token, dataclasses.replace(ADA, messenger_id=USER))
            for number, token in enumerate(tokens)
            for node in nodes
        )
    )
    assert sum(seen.changed for seen in decided) == len(tokens)
    answers = await asyncio.gather(
        *(
            node.verify_session(place.project_id, token, public=True)
            for _ in range(4)
            for token in tokens
            for node in nodes
        )
    )
    proofs = {answer.proof for answer in answers if answer.proof}
    ((confirmed,),) = await rows(dsn, "SELECT COUNT(confirmed_at) FROM sessions")
    assert len(proofs) == sum(answer.proof is not None for answer in answers) == confirmed
    await assert_counters_fit(dsn)


async def test_what_housekeeping_does(place: Place) -> None:
    """Housekeeping works: partitions, expiry, leases, deletion. Some statements must not run in a transaction."""
    storage = await open_storage(place.url)
    async with place.sign_in() as signin:
        await opened(signin, place.project_id)
    now = system_clock()
    today = day_number(now)
    await storage.sessions.prepare_days(today - 3, today + 3)
    assert await storage.leases.hold_lease("bot", "me", now, now + 1_000)
    assert not await storage.leases.hold_lease("bot", "you", now, now + 1_000)
    assert await storage.sessions.expire_sessions(now + DAY, 10, expired_event) == 1
    while await storage.sessions.purge_sessions(today + 1, 100):
        pass
    assert await rows(place.url, "SELECT COUNT(*) FROM sessions") == [(0,)]
    project = await storage.projects.read_project(place.project_id)
    assert project is not None
    assert (project.sessions_count, await storage.projects.delete_project(project.developer_id, project.id)) == (
        1,
        True,
    )
    assert await storage.projects.purge_deleted_projects(100) > 0
    await storage.close()


async def test_64_pollers_and_a_bouncer_that_dies(place: Place, signin: WholeSignIn, bouncer: PgBouncer) -> None:
    """All polls are answered over three connections. When PgBouncer dies, all calls fail, and later they work again."""
    token = await opened(signin, place.project_id)

    async def poll(times: int) -> None:
        for _ in range(times):
            assert (await signin.verify_session(place.project_id, token, public=True)).status == "pending"

    await asyncio.gather(*(poll(20) for _ in range(POLLERS)))
    bouncer.kill()
    outcomes = await asyncio.gather(*(poll(1) for _ in range(POLLERS)), return_exceptions=True)
    assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
    bouncer.start()
    await asyncio.gather(*(poll(20) for _ in range(POLLERS)))


async def test_a_service_through_it(
    place: Place, start_service: StartService, signin: WholeSignIn, figure: Figure
) -> None:
    """A sign-in over HTTP works, and a waiting client notices the tap without LISTEN."""
    service = start_service(place)
    async with httpx.AsyncClient(base_url=service.base_url, timeout=60) as client:
        took = []
        for _ in range(3):
            token = (await generate(client, place.project_id)).json()["session_token"]
            await signin.open_session(token, USER)
            waiting = asyncio.create_task(verify(client, place.project_id, token, wait=30))
            began = time.monotonic()
            await signin.confirm_session(token, ADA)
            answer = (await waiting).json()
            took.append(time.monotonic() - began)
            assert (answer["status"], answer["messenger_id"], "proof" in answer) == ("confirmed", USER, True)
    figure("seconds from the tap to the answer", f"{max(took):.2f}")
    assert service.stop() == 0
    assert '"level": "error"' not in service.log()
