"""Provide every kind of store that Taproof runs on, each on a separate real database per test.

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
from typing import Any, Final, Protocol

import pytest
from tests.postgres_server import execute, fresh_database

from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.sessions import ExpiredSession
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.connection import migrate_database as migrate_sqlite
from taproof.storage.sqlite.store import SqliteStorage

NOW = 1_795_214_643_127  # 2026-11-20T22:44:03.127Z

OpenStore = Callable[[], Coroutine[Any, Any, Storage]]


def expired_event(session: ExpiredSession) -> Event:
    """Return the auth.expired event of a session, for `expire_sessions`."""
    event_id = f"evt_{session.id.removeprefix('sess_')}"
    return Event(event_id, "auth.expired", session.project_id, b"encrypted " + event_id.encode(), session.expires_at)


class Database(Protocol):
    """Creates an empty database for the duration of a `with`, and yields a function that opens it.

    `clock` is the clock that its stores compare deadlines with, if any. A `quick` one loses its latest writes in a
    power cut, for tests with thousands of writes that do not test durability.
    """

    def __call__(self, clock: Clock | None = None, *, quick: bool = False) -> AbstractContextManager[OpenStore]: ...


@contextlib.contextmanager
def sqlite_database(clock: Clock | None = None, *, quick: bool = False) -> Iterator[OpenStore]:
    with tempfile.TemporaryDirectory() as directory:
        path = migrated_sqlite(Path(directory) / "taproof.db")

        async def open_store() -> Storage:
            store = SqliteStorage.open(path, NOW, clock)
            if quick:
                store.database.writer.connection.pragma("synchronous", 0)
            return store

        yield open_store


def migrated_sqlite(path: Path) -> Path:
    """Create a migrated file by copying one, an eighth of the time that the migrations take; return its path."""
    path.touch(0o600)
    path.write_bytes(_migrated_sqlite())
    return path


@functools.cache
def _migrated_sqlite() -> bytes:
    """Return the content of a migrated file; it is in WAL mode, and closing it has emptied the log."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "taproof.db"
        migrate_sqlite(path, NOW)
        return path.read_bytes()


@contextlib.contextmanager
def postgres_database(clock: Clock | None = None, *, quick: bool = False) -> Iterator[OpenStore]:
    with _emptied_postgres(quick=quick) as dsn:
        yield lambda: PostgresStorage.open(dsn, NOW, clock)


DRIVERS: dict[str, Database] = {"sqlite": sqlite_database, "postgres": postgres_database}
# For a test of tests/service that depends on how a driver orders what happens at once.
every_driver = pytest.mark.parametrize("driver", sorted(DRIVERS))
# Gives a test whose `dsn` is of `tests/storage` a new database, which nothing has migrated yet.
new_postgres = pytest.mark.parametrize("dsn", ["new"], indirect=True)

_KEPT = contextlib.ExitStack()


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
def copied_postgres(*, quick: bool = False) -> Iterator[str]:
    """Yield the DSN of a new copy of a migrated database. It has no statistics that could change a plan."""
    settings = {"synchronous_commit": "off"} if quick else None
    with fresh_database(template=_migrated_postgres(), settings=settings) as dsn:
        yield dsn


_UNUSED: Final[dict[bool, list[tuple[contextlib.ExitStack, str]]]] = {True: [], False: []}
"""The emptied copies, quick and not, each with the statement that drops it."""
_FINGERPRINT: Final = """
SELECT (SELECT max(oid) FROM pg_class), (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc),
  (SELECT count(*) FROM pg_attribute), (SELECT count(*) FROM pg_trigger WHERE tgenabled = 'O'),
  (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
  (SELECT md5(string_agg(m::TEXT, '')) FROM schema_migrations m)"""
_EMPTY: Final = """
DO $$ DECLARE each REGCLASS; filled TEXT;
BEGIN
  PERFORM pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
  FOR each IN SELECT oid FROM pg_class WHERE relkind = 'r' AND oid > {last} LOOP
    EXECUTE 'DROP TABLE ' || each;
  END LOOP;
  SELECT string_agg(oid::REGCLASS::TEXT, ', ') INTO filled FROM pg_class
    WHERE oid >= 16384 AND relkind = 'r' AND relname <> 'schema_migrations' AND pg_relation_size(oid) > 0;
  SET LOCAL session_replication_role = replica; -- The audit log's trigger does not allow it to be emptied.
  IF filled <> '' THEN EXECUTE 'TRUNCATE ' || filled || ' CASCADE'; END IF;
END $$"""
"""Drops the partitions that a test has made and deletes all rows; `last` is the id of the template's last relation."""


@contextlib.contextmanager
def _emptied_postgres(*, quick: bool) -> Iterator[str]:
    """Yield the DSN of a copy that an earlier test has used and that was emptied, a fifth of the work of a new one.

    A copy in which a test has left statistics or changed the schema is not used again.
    """
    unused = _UNUSED[quick]
    if unused:
        copy, dsn = unused.pop()
    else:
        copy = _KEPT.enter_context(contextlib.ExitStack())
        dsn = copy.enter_context(copied_postgres(quick=quick))
    yield dsn
    fingerprint = _template_fingerprint()
    if execute(dsn, _EMPTY.format(last=fingerprint.partition("|")[0]), _FINGERPRINT).strip() == fingerprint:
        unused.append((copy, dsn))
    else:
        copy.close()


@functools.cache
def _template_fingerprint() -> str:
    return execute(_migrated_postgres(), _FINGERPRINT).strip()
