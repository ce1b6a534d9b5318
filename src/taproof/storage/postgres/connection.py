"""Connections to PostgreSQL: how all of them are opened, and single ones for migrations, checks and `notify.py`."""

import asyncio
import contextlib
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit, urlunsplit

import asyncpg

from taproof.core.errors import StoreUnavailable, TaproofError
from taproof.storage.migrate import migrate_postgres
from taproof.storage.postgres.connection_errors import AWAY, CHECK_ADDRESS, UNDONE, explain_errors

OLDEST_SERVER: Final = 14
"""The first version that can detach a partition without blocking readers of the other partitions."""
CONNECT_PATIENCE: Final = 5.0
_HEAD_START: Final = 0.3
"""Seconds after which the next host is tried too."""
_PRIMARY: Final = {"target_session_attrs": "primary"}
_MIGRATE_ATTEMPTS: Final = 15
"""Together with the pauses between them, these attempts take about a minute."""
APPLICATION_NAME: Final = "taproof"
_MAY_MAKE_TABLES: Final = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE)"


class Connection(asyncpg.Connection):  # type: ignore[misc] # asyncpg has no types.
    """A connection that knows its `url`, and never asks the server to cancel a statement.

    A commit that waits for a synchronous standby is already in the log of the primary. If this wait is cancelled, the
    server shows the change to everybody, although a fail-over would undo it (docs/decisions/0014-fail-over.md). So a
    statement that takes too long, or whose caller was cancelled, costs the connection. The server then goes on waiting,
    and nobody sees the change.
    """

    __slots__ = ("url",)

    def _cancel_current_command(self, *_waiters: "asyncio.Future[None] | None") -> None:
        self._transport.abort()

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 — as in asyncpg.
        # The pool closes connections in the background, where nobody receives an error. After a timeout, the connection
        # is closed all the same.
        with contextlib.suppress(TimeoutError):
            await super().close(timeout=timeout)


class PostgresTooOld(TaproofError, code="postgres_too_old"):
    """The server is older than the oldest supported PostgreSQL."""

    sentence = "This PostgreSQL is too old. Use version 14 or newer."


def server_urls(dsn: str) -> list[str]:
    """Return one URL for each host in `dsn`.

    Raises:
        ValueError: several hosts in the parameter `host`. The hosts must be in front of the database's name.
    """
    parts = urlsplit(dsn)
    if "," in parse_qs(parts.query).get("host", [""])[0]:
        raise ValueError
    user, at, hosts = parts.netloc.rpartition("@")
    if "," not in hosts:
        return [dsn]
    return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]


class Hosts:
    """The hosts of a database URL, in the order in which they are tried."""

    def __init__(self, dsn: str) -> None:
        """Read a database URL.

        Raises:
            ValueError: see `server_urls`.
        """
        self._urls = server_urls(dsn)
        self._attributes = {} if "target_session_attrs" in parse_qs(urlsplit(dsn).query) else _PRIMARY

    async def connect(self, _dsn: str = "", **options: Any) -> asyncpg.Connection:
        """Open a connection. The caller must close it.

        Of several hosts, the primary is used, unless `target_session_attrs` says otherwise (PostgreSQL, "Connection
        Strings"). The pool of asyncpg passes a URL too, which is not used.
        """
        options = {"connection_class": Connection, "timeout": CONNECT_PATIENCE, **options}
        if len(self._urls) == 1:
            return await _open(self._urls[0], options)
        attempts: list[asyncio.Task[asyncpg.Connection]] = []
        chosen: asyncpg.Connection | None = None
        try:
            chosen = await _first_accepted(self._urls, attempts, {**self._attributes, **options})
        finally:
            for attempt in attempts:
                attempt.cancel()
            for outcome in await asyncio.gather(*attempts, return_exceptions=True):
                if outcome is not chosen and isinstance(outcome, asyncpg.Connection):
                    outcome.terminate()
        return chosen

    def try_last(self, url: str) -> None:
        """Try the host with this URL, one of those given, after all others."""
        self._urls = [*(each for each in self._urls if each != url), url]


async def connect_to_primary(dsn: str, **options: Any) -> asyncpg.Connection:
    """Open a connection, as `Hosts.connect`. The caller must close it."""
    return await Hosts(dsn).connect(**options)


async def _open(url: str, options: dict[str, Any]) -> asyncpg.Connection:
    connection = await asyncpg.connect(url, **options)
    connection.url = url
    return connection


async def _first_accepted(
    urls: list[str], attempts: "list[asyncio.Task[asyncpg.Connection]]", options: dict[str, Any]
) -> asyncpg.Connection:
    """Return the first connection that is accepted. Add every attempt to `attempts`; the caller ends the others.

    A host that does not respond does not delay the others: each has only a short head start. asyncpg would try one
    after the other, within a single timeout.
    """
    waiting = list(urls)
    running: set[asyncio.Task[asyncpg.Connection]] = set()
    failures: list[BaseException] = []
    while waiting or running:
        if waiting:
            attempts.append(asyncio.create_task(_open(waiting.pop(0), options)))
            running.add(attempts[-1])
        limit = _HEAD_START if waiting else None
        done, running = await asyncio.wait(running, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        for attempt in done:
            if (failure := attempt.exception()) is None:
                return attempt.result()
            failures.append(failure)
    # "It is a standby" is a better explanation than "it does not respond".
    raise next((each for each in failures if isinstance(each, asyncpg.TargetServerAttributeNotMatched)), failures[-1])


async def connect(dsn: str, **options: Any) -> asyncpg.Connection:
    """Open a connection. The caller must close it. No statement is cached, so it also works behind PgBouncer."""
    return await connect_to_primary(dsn, statement_cache_size=0, **options)


async def migrate_database(dsn: str, now: int) -> tuple[int, int]:
    """Migrate the schema; return its version before and after.

    A database that a newer release has migrated is left as it is: old code runs on a new schema in a rolling deploy.

    Raises:
        PostgresTooOld: the server is older than 14.
        StoreUnavailable: the database cannot be reached; the sentence says what to check.
        MigrationChanged: a release with a different history created the schema.
    """
    with explain_errors(dsn):
        connection = await connect(dsn, server_settings={"application_name": APPLICATION_NAME})
        try:
            if connection.get_server_version().major < OLDEST_SERVER:
                raise PostgresTooOld
            if connection.get_settings().server_encoding != "UTF8":
                raise StoreUnavailable(
                    f"The database is not in UTF-8. {CHECK_ADDRESS}: create one with ENCODING 'UTF8'."
                )
            return await _migrate(connection, now)
        finally:
            await disconnect(connection)


async def may_make_tables(dsn: str) -> bool:
    """Return whether this user may create tables in the database. Nothing is changed.

    Raises:
        StoreUnavailable: the database cannot be reached; the sentence says what to check.
    """
    with explain_errors(dsn):
        connection = await connect(dsn)
        try:
            return bool(await connection.fetchval(_MAY_MAKE_TABLES, timeout=CONNECT_PATIENCE))
        finally:
            await disconnect(connection)


async def disconnect(connection: asyncpg.Connection) -> None:
    """Close a connection outside the pool, gracefully if the server still responds."""
    with contextlib.suppress(*AWAY):
        await connection.close(timeout=1)


async def _migrate(connection: asyncpg.Connection, now: int) -> tuple[int, int]:
    """Migrate. Repeat it if the server rolled a migration back because of a conflict with an active node.

    Each migration is one transaction. While an export or a backup reads a table, the lock is requested
    repeatedly, for about a minute.
    """
    for attempt in range(_MIGRATE_ATTEMPTS):
        with contextlib.suppress(*UNDONE, asyncpg.LockNotAvailableError):
            return await migrate_postgres(connection, now)
        await asyncio.sleep(min(attempt, 2))
    raise StoreUnavailable(
        "The tables cannot be changed, because another program is reading them. Wait until the export or backup "
        "has finished, then start again. Running nodes are not affected."
    )
