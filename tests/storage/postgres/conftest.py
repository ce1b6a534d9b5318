"""Fixtures for tests of behaviour of PostgreSQL only: its stores, and a separate connection."""

from collections.abc import AsyncIterator
from typing import Final

import asyncpg
import pytest
from tests.databases import NOW
from tests.storage.seed import Seed

from taproof.storage.postgres import database
from taproof.storage.postgres.store import PostgresStorage

_PLANNER: Final = {name: database.SETTINGS[name] for name in ("plan_cache_mode", "random_page_cost", "jit")}


@pytest.fixture
async def other_node(dsn: str, postgres: PostgresStorage) -> AsyncIterator[PostgresStorage]:
    """A second store on the database of `postgres`."""
    store = await PostgresStorage.open(dsn, NOW)
    yield store
    await store.close()


@pytest.fixture
async def connection(dsn: str, postgres: PostgresStorage) -> AsyncIterator[asyncpg.Connection]:
    """A separate connection with the store's planner settings."""
    connection = await asyncpg.connect(dsn, server_settings=_PLANNER, statement_cache_size=0)
    yield connection
    await connection.close()


@pytest.fixture
def seed(postgres: PostgresStorage) -> Seed:
    return Seed(postgres)
