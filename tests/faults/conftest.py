"""Rules that hold when processes, servers and connections die: briefly here, longer in tests/slow and `make soak`."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.conftest import Service, StartService, launch, loop_is_never_held
from tests.faults.place import Place, make_place
from tests.postgres_server import fresh_database

__all__ = ["loop_is_never_held"]  # A fixture, active for every test of this folder.


@contextmanager
def new_database(driver: str, directory: Path) -> Iterator[str]:
    """Yield the URL of an empty database of that kind."""
    if driver == "sqlite":
        yield f"sqlite:///{directory / 'taproof.db'}"
        return
    with fresh_database() as dsn:
        yield dsn


@pytest.fixture(params=["sqlite", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Return a database on each kind of store, with a project."""
    with new_database(request.param, tmp_path) as url:
        yield await make_place(url)


@pytest.fixture
def start_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartService]:
    """Return a function that starts `taproof serve` without a messenger; the test decides in place of the bot."""
    started: list[Service] = []

    def start(place: Place, *arguments: str) -> Service:
        service = launch(
            tmp_path_factory.mktemp("service"),
            # No limit, because a fast machine must not be refused.
            *("--database", place.url, "--role", "api", "--generate-limit-project", "off", *arguments),
            sandbox=False,
            TAPROOF_BOT_TOKEN="123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
            TAPROOF_MESSENGER_LINK_BASE="https://t.me/shop_bot",
            TAPROOF_MASTER_KEY=place.master_key,
        )
        started.append(service)
        return service

    yield start
    for each in started:
        each.stop()
