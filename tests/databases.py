"""Provide every kind of store that Taproof runs on, each on a real database made for one test.

`with a_database() as open_store:` makes one; each `await open_store()` opens it as another node would. Every driver in
`DRIVERS` runs all conformance tests.
"""

import asyncio
import atexit
import contextlib
import functools
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from tests.postgres_server import execute, fresh_database

from taproof.core.clock import Clock
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage

NOW = 1_795_214_643_127  # 2026-11-20T22:44:03.127Z

OpenStore = Callable[[], Coroutine[Any, Any, Storage]]


class Database(Protocol):
    """Creates an empty database for the duration of a `with`, and yields a function that opens it.

    `clock` is the clock that its stores compare deadlines with, if any. A `quick` one loses its latest writes in a
    power cut, for tests with thousands of writes that do not test durability.
    """

    def __call__(self, clock: Clock | None = None, *, quick: bool = False) -> AbstractContextManager[OpenStore]: ...


@contextlib.contextmanager
def sqlite_database(clock: Clock | None = None, *, quick: bool = False) -> Iterator[OpenStore]:
    with tempfile.TemporaryDirectory() as directory:

        async def open_store() -> Storage:
            store = SqliteStorage.open(Path(directory) / "taproof.db", NOW, clock)
            if quick:
                store.database.writer._connection.pragma("synchronous", 0)
            return store

        yield open_store


@contextlib.contextmanager
def postgres_database(clock: Clock | None = None, *, quick: bool = False) -> Iterator[OpenStore]:
    with _emptied_postgres(quick=quick) as dsn:
        yield lambda: PostgresStorage.open(dsn, NOW, clock)


DRIVERS: dict[str, Database] = {"sqlite": sqlite_database, "postgres": postgres_database}

# Restore the state after the migrations. Other connections are closed first, because they could hold a lock.
_EMPTY = """
DO $$ DECLARE found RECORD; BEGIN
  PERFORM pg_terminate_backend(pid, 5000) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid();
  FOR found IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
    AND c.relkind IN ('r', 'p') AND c.relname <> 'schema_migrations' ORDER BY c.relname
  LOOP
    IF found.relname LIKE 'sessions\\_%' THEN
      EXECUTE format('DROP TABLE %I', found.relname);
    ELSIF found.relname = 'audit_entries' THEN
      ALTER TABLE audit_entries DISABLE TRIGGER USER; -- It refuses to be emptied.
      TRUNCATE audit_entries;
      ALTER TABLE audit_entries ENABLE TRIGGER USER;
    ELSE
      EXECUTE format('DELETE FROM %I', found.relname);
    END IF;
  END LOOP;
END $$"""
_KEPT = contextlib.ExitStack()
_IDLE: dict[bool, list[str]] = {True: [], False: []}


@functools.cache
def _migrated_postgres() -> str:
    """Return a migrated database to copy; it exists until this process ends."""

    async def migrate(dsn: str) -> None:
        store = await PostgresStorage.open(dsn, NOW)
        await store.close()

    dsn = _KEPT.enter_context(fresh_database())
    # Before the server itself, which was started earlier.
    atexit.register(_KEPT.close)
    # In a thread, because the caller may run in an event loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, migrate(dsn)).result()
    return dsn


@contextlib.contextmanager
def _emptied_postgres(*, quick: bool) -> Iterator[str]:
    """Yield a database that is emptied afterwards and reused: a fifth of the time of a new one."""
    if _IDLE[quick]:
        dsn = _IDLE[quick].pop()
    else:
        settings = {"synchronous_commit": "off"} if quick else None
        dsn = _KEPT.enter_context(fresh_database(template=_migrated_postgres(), settings=settings))
    yield dsn
    execute(dsn, _EMPTY)
    _IDLE[quick].append(dsn)
