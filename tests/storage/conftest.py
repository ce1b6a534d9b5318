"""The stores of the conformance suite: every test that uses `storage` runs once per driver, on a real database.

A driver is added to `tests.databases.DRIVERS`; no test may then skip it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.databases import DRIVERS, NOW, Database, OpenStore, copied_postgres, migrated_sqlite
from tests.postgres_server import fresh_database
from tests.storage.seed import Seed

from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage


@pytest.fixture(scope="session", params=sorted(DRIVERS))
def new_database(request: pytest.FixtureRequest) -> Database:
    """Return a function that makes a database, for tests that need many, such as those of Hypothesis."""
    return DRIVERS[request.param]


@pytest.fixture
def quick(new_database: Database) -> Iterator[tuple[Seed, asyncio.Runner]]:
    """Yield a seed and a runner for a test that Hypothesis runs many times on one database without durability."""
    with new_database(quick=True) as open_store, asyncio.Runner() as runner:
        seed = Seed(runner.run(open_store()))
        yield seed, runner
        runner.run(seed.storage.close())


@pytest.fixture
def open_store(new_database: Database) -> Iterator[OpenStore]:
    """Return a function that opens the test's one database, each time as another node would."""
    with new_database() as opener:
        yield opener


@pytest.fixture
async def storage(open_store: OpenStore) -> AsyncIterator[Storage]:
    store = await open_store()
    yield store
    await store.close()


@pytest.fixture
async def other_node(open_store: OpenStore, storage: Storage) -> AsyncIterator[Storage]:
    """A second store on the database of `storage`."""
    store = await open_store()
    yield store
    await store.close()


@pytest.fixture
def seed(storage: Storage) -> Seed:
    return Seed(storage)


@pytest.fixture
def new_seed() -> type[Seed]:
    return Seed


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    """The SQLite driver itself, for behaviour of SQLite only."""
    store = SqliteStorage.open(migrated_sqlite(tmp_path / "taproof.db"), NOW)
    yield store
    await store.close()


@pytest.fixture
def sqlite_seed(sqlite: SqliteStorage) -> Seed:
    return Seed(sqlite)


@pytest.fixture
def dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """The DSN of a separate PostgreSQL database: migrated and without rows, or a new one (`new_postgres`)."""
    with fresh_database() if hasattr(request, "param") else copied_postgres() as dsn:
        yield dsn


@pytest.fixture
async def postgres(dsn: str) -> AsyncIterator[PostgresStorage]:
    """The PostgreSQL driver itself, for behaviour of PostgreSQL only."""
    store = await PostgresStorage.open(dsn, NOW)
    yield store
    await store.close()
