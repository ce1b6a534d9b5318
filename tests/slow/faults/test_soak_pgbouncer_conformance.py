"""The whole conformance suite of the stores also passes on PostgreSQL behind PgBouncer in transaction mode."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.databases import NOW, OpenStore
from tests.faults.pgbouncer import running_pgbouncer
from tests.postgres_server import fresh_database
from tests.storage.conftest import other_node, seed, storage

from taproof.storage.postgres.store import PostgresStorage

__all__ = ["other_node", "seed", "storage"]

# Tests of LISTEN, which needs a server connection of its own and does not work here: the documented exception.
# `test_pgbouncer.py` tests the replacement, an answer within about a second. The property of lists has its own store.
LEFT_OUT = ("test_watch_decisions_", "test_filters_together_")

# pytest finds a test by its name in a module. These are the suite's own, with the `open_store` of this file.
for _file in sorted(Path(__file__).parents[2].glob("storage/conformance/test_*.py")):
    _suite = vars(import_module(f"tests.storage.conformance.{_file.stem}"))
    globals().update(
        {name: value for name, value in _suite.items() if name.startswith("test_") and not name.startswith(LEFT_OUT)}
    )


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    """Return a function that opens the test's database through PgBouncer, each time like another node."""
    with fresh_database() as dsn, running_pgbouncer(dsn) as bouncer:
        yield lambda: PostgresStorage.open(bouncer.dsn(dsn), NOW, pgbouncer=True)
