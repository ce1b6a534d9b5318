"""Concurrent calls share PostgreSQL statements, as the server itself counts them.

The count comes from pg_stat_statements if the server has it (Debian's has; TAPROOF_TEST_POSTGRES_BIN names it). The
wheel's server does not, so the lines of its statement log are counted.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.conftest import Figure
from tests.faults.place import Place, make_place
from tests.postgres_server import PostgresServer, execute
from tests.signals import unheard

from taproof.core.clock import system_clock
from taproof.messengers.telegram.bot_api import Bot, BotApiClient
from taproof.messengers.telegram.updates import UpdateIntake

CLIENTS = 64
TURNS = 50
AIM = 0.1
"""Statements per call with 64 connections (the issue's figure)."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    server = PostgresServer(log_statement="all", log_line_prefix="%d ")
    yield server
    server.close()


@pytest.fixture(scope="module")
def has_extension(server: PostgresServer) -> bool:
    """Return whether this server counts statements itself."""
    found = execute(server.dsn(), "SELECT name FROM pg_available_extensions WHERE name = 'pg_stat_statements'")
    return bool(found.strip())


@pytest.fixture
async def place(server: PostgresServer, request: pytest.FixtureRequest, *, has_extension: bool) -> Place:
    name = re.sub(r"\W", "_", request.node.name)
    execute(server.dsn(), f"CREATE DATABASE {name} TEMPLATE template0")
    if has_extension:
        execute(server.dsn(name), "CREATE EXTENSION pg_stat_statements")
    return await make_place(server.dsn(name))


@pytest.fixture
def count(server: PostgresServer, place: Place, *, has_extension: bool) -> Callable[[], int]:
    """Return a function that returns the number of statements executed in this database."""

    def count() -> int:
        if has_extension:
            calls = "SELECT COALESCE(SUM(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid"
            where = "WHERE d.datname = current_database() AND s.query NOT LIKE '%pg_stat_statements%'"
            return int(execute(place.url, f"{calls} {where}"))
        # psql, which reads the count, does not prepare its statements, so they are not counted.
        log = (server._data / "log").read_text("utf-8", errors="replace")
        return len(re.findall(rf"^{place.url.rpartition('/')[2]} LOG:  execute ", log, re.MULTILINE))

    return count


async def together(call: Callable[[], Awaitable[object]]) -> None:
    """Let all clients repeat the call, each as soon as it gets its answer."""

    async def client() -> None:
        for _ in range(TURNS):
            await call()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


async def test_polls(place: Place, count: Callable[[], int], figure: Figure) -> None:
    """64 polling clients cost at most a tenth of a statement per poll."""
    async with place.sign_in() as signin:
        tokens = [(await signin.create_session(place.project_id, public=True)).session_token for _ in range(CLIENTS)]
        turn = iter(tokens * TURNS)
        before = count()
        await together(lambda: signin.verify_session(place.project_id, next(turn), public=True))
        statements = count() - before
    assert 0 < statements <= AIM * CLIENTS * TURNS
    figure("statements per poll", f"{statements / (CLIENTS * TURNS):.4f}")


async def test_creates(place: Place, count: Callable[[], int], figure: Figure) -> None:
    """64 clients that start sign-ins cost at most a tenth of a statement per session."""
    async with place.sign_in() as signin:
        before = count()
        await together(lambda: signin.create_session(place.project_id, public=True))
        statements = count() - before
    assert 0 < statements <= AIM * CLIENTS * TURNS
    assert execute(place.url, "SELECT COUNT(*) FROM sessions").strip() == str(CLIENTS * TURNS)
    figure("statements per create", f"{statements / (CLIENTS * TURNS):.4f}")


async def test_a_tap(place: Place, count: Callable[[], int]) -> None:
    """An update that is handled quickly costs two statements besides its effect: its claim and its end."""
    update = {"update_id": 1, "message": {"message_id": 1, "date": 1, "chat": {"id": 1, "type": "private"}}}
    async with place.sign_in() as signin:
        bot = Bot(BotApiClient("http://127.0.0.1:9"), "123456789:AAabcdefghijklmnopqrstuvwxyz0123456")
        intake = UpdateIntake(
            bot,
            lambda *_: asyncio.sleep(0),
            signin.storage.bots,
            system_clock,
            observe_tap=unheard,
            count_refused_tap=unheard,
        )
        assert await intake.handle(update) == "done"  # It opens the connections.
        before = count()
        for number in range(2, 12):
            assert await intake.handle({**update, "update_id": number}) == "done"
        assert count() == before + 20


async def test_a_lone_client(place: Place, count: Callable[[], int]) -> None:
    """For a single client, a poll is one statement and a create two, so the counts can be trusted."""
    async with place.sign_in() as signin:
        token = (await signin.create_session(place.project_id, public=True)).session_token
        before = count()
        for _ in range(10):
            await signin.verify_session(place.project_id, token, public=True)
        assert count() == before + 10
        for _ in range(10):
            await signin.create_session(place.project_id, public=True)
        assert count() == before + 30
