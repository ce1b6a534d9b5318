"""Connections to PostgreSQL: how all of them are opened, and single ones for migrations, checks and `notify.py`."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Mapping
from typing import Any, Final, Literal

import asyncpg

from taproof.core.errors import StoreUnavailable, TaproofError
from taproof.storage.migrate import migrate_postgres
from taproof.storage.postgres.address import read_address
from taproof.storage.postgres.connection_errors import AWAY, CHECK_ADDRESS, UNDONE, explain_errors

OLDEST_SERVER: Final = 14
"""The first version that can detach a partition without blocking readers of the other partitions."""
CONNECT_PATIENCE: Final = 5.0
_HEAD_START: Final = 0.3
"""Seconds after which the next host is tried too."""
_TCP_OPTIONS: Final = {
    "keepalives_idle": "TCP_KEEPIDLE",
    "keepalives_interval": "TCP_KEEPINTVL",
    "keepalives_count": "TCP_KEEPCNT",
    "tcp_user_timeout": "TCP_USER_TIMEOUT",
}
_PRIMARY: Final = {"target_session_attrs": "primary"}
_MIGRATE_ATTEMPTS: Final = 15
"""Together with the pauses between them, these attempts take about a minute."""
APPLICATION_NAME: Final = "taproof"
_IS_POSTGRES: Final = re.compile(r"^PostgreSQL \d+(?!.*(-YB-|Redshift|Greenplum|Materialize|QuestDB))")
"""Matches `version()` of PostgreSQL, and of Citus, Aurora, AlloyDB and others that are PostgreSQL inside."""
Pooling = Literal["none", "session", "transaction"]
"""The time for which a pooler gives a client the same connection to the server; `none` without a pooler."""
_BACKEND: Final = "SELECT pg_backend_pid()"
# In transaction mode, a pooler takes an idle connection for each query. Taken from the top of a stack, both clients get
# the same. Taken in turn, whatever their number, at least one client gets two.
_ORDER: Final = (0, 1, 1, 0, 0, 1)
_MAY_MAKE_TABLES: Final = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE)"


class Connection(asyncpg.Connection):  # type: ignore[misc] # asyncpg has no types.
    """A connection that knows its `host`, and never asks the server to cancel a statement.

    A commit that waits for a synchronous standby is already in the log of the primary. If this wait is cancelled, the
    server shows the change to everybody, although a fail-over would undo it (maintainers/decisions/0014). So a
    statement that takes too long, or whose caller was cancelled, costs the connection, and nobody sees the change.
    """

    __slots__ = ("host",)

    def _cancel_current_command(self, *_waiters: "asyncio.Future[None] | None") -> None:
        self._transport.abort()

    def set_socket_options(self, options: list[tuple[int, int, int]]) -> None:
        """Set options of a TCP connection, each the arguments of `setsockopt`."""
        used = self._transport.get_extra_info("socket")
        if used is not None and used.family != socket.AF_UNIX:
            # uvloop does not give out its socket, but a copy of its descriptor is the same connection.
            with socket.fromfd(used.fileno(), used.family, used.type) as copy:
                for option in options:
                    copy.setsockopt(*option)

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 — as in asyncpg.
        # The pool closes connections in the background, where nobody receives an error. After a timeout, the connection
        # is closed all the same.
        with contextlib.suppress(TimeoutError):
            await super().close(timeout=timeout)


class PostgresTooOld(TaproofError, code="postgres_too_old"):
    """The server is older than the oldest supported PostgreSQL."""

    sentence = "This PostgreSQL is too old. Use version 14 or newer."


class NotPostgres(TaproofError, code="not_postgres"):
    """The server is another program that speaks PostgreSQL's protocol."""

    sentence = (
        "This database server is not PostgreSQL but another product with its protocol, such as CockroachDB or "
        "YugabyteDB. Taproof relies on PostgreSQL's own locks and partitions. Use PostgreSQL 14 or newer, or a SQLite "
        "file."
    )


class Hosts:
    """The hosts of a database address, in the order in which they are tried."""

    def __init__(self, dsn: str) -> None:
        """Read a database address. Raise AddressRefused as `read_address` does."""
        address = read_address(dsn)
        self._hosts = list(address.hosts)
        self._options = address.driver_options
        self._settings = address.server_settings
        self._timeout = address.connect_timeout
        self._socket_options = _socket_options(address.parameters)

    async def connect(self, _dsn: str = "", **options: Any) -> asyncpg.Connection:
        """Open a connection. The caller must close it.

        Of several hosts, the primary is used, unless `target_session_attrs` says otherwise (PostgreSQL, "Connection
        Strings"). The pool of asyncpg passes a URL too, which is not used.
        """
        primary = _PRIMARY if len(self._hosts) > 1 else {}
        options = {"connection_class": Connection, "timeout": CONNECT_PATIENCE, **primary, **self._options, **options}
        options["server_settings"] = {**options.get("server_settings", {}), **self._settings}
        if self._timeout is not None:
            options["timeout"] = self._timeout
        if len(self._hosts) == 1:
            return await self._open(self._hosts[0], options)
        attempts: list[asyncio.Task[asyncpg.Connection]] = []
        chosen: asyncpg.Connection | None = None
        try:
            chosen = await self._first_accepted(attempts, options)
        finally:
            for attempt in attempts:
                attempt.cancel()
            for outcome in await asyncio.gather(*attempts, return_exceptions=True):
                if outcome is not chosen and isinstance(outcome, asyncpg.Connection):
                    outcome.terminate()
        return chosen

    def try_last(self, host: tuple[str, int]) -> None:
        """Try this host, one of those given, after all others."""
        self._hosts = [*(each for each in self._hosts if each != host), host]

    async def _open(self, host: tuple[str, int], options: dict[str, Any]) -> asyncpg.Connection:
        connection = await asyncpg.connect(host=host[0], port=host[1], **options)
        connection.host = host
        connection.set_socket_options(self._socket_options)
        return connection

    async def _first_accepted(
        self, attempts: "list[asyncio.Task[asyncpg.Connection]]", options: dict[str, Any]
    ) -> asyncpg.Connection:
        """Return the first connection that is accepted. Add every attempt to `attempts`; the caller ends the others.

        Each host has only a short head start, so one that does not respond does not delay the others. asyncpg would try
        one after the other, within a single timeout.
        """
        waiting = list(self._hosts)
        running: set[asyncio.Task[asyncpg.Connection]] = set()
        failures: list[BaseException] = []
        while waiting or running:
            if waiting:
                attempts.append(asyncio.create_task(self._open(waiting.pop(0), options)))
                running.add(attempts[-1])
            limit = _HEAD_START if waiting else None
            done, running = await asyncio.wait(running, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                if (failure := attempt.exception()) is None:
                    return attempt.result()
                failures.append(failure)
        # "It is a standby" is a better explanation than "it does not respond".
        raise next(
            (each for each in failures if isinstance(each, asyncpg.TargetServerAttributeNotMatched)), failures[-1]
        )


def _socket_options(parameters: Mapping[str, str]) -> list[tuple[int, int, int]]:
    """Return the options of a socket for libpq's parameters about TCP, as arguments of `setsockopt`."""
    alive = [] if parameters.get("keepalives") == "0" else [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    return alive + [
        (socket.IPPROTO_TCP, getattr(socket, option), int(parameters[name]))
        for name, option in _TCP_OPTIONS.items()
        if hasattr(socket, option) and int(parameters.get(name, "0")) > 0
    ]


async def connect(dsn: str, **options: Any) -> asyncpg.Connection:
    """Open a connection. The caller must close it. No statement is cached, so it also works behind PgBouncer."""
    return await Hosts(dsn).connect(statement_cache_size=0, **options)


async def migrate_database(dsn: str, now: int, *, oldest_server: int = OLDEST_SERVER) -> tuple[int, int]:
    """Migrate the schema, as `migrate_postgres` does; return its version before and after.

    Raises:
        NotPostgres: the server only speaks PostgreSQL's protocol.
        PostgresTooOld: the server is older than `oldest_server`.
        StoreUnavailable: the database cannot be reached; the sentence says what to check.
        MigrationChanged: a release with a different history created the schema.
    """
    with explain_errors(dsn):
        connection = await connect(dsn, server_settings={"application_name": APPLICATION_NAME})
        try:
            if not _IS_POSTGRES.search(await connection.fetchval("SELECT version()")):
                raise NotPostgres
            if connection.get_server_version().major < oldest_server:
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


async def find_pooler(dsn: str) -> Pooling:
    """Return whether a pooler answers, and its mode, by how its connections behave.

    Raises:
        StoreUnavailable: the database cannot be reached; the sentence says what to check.
    """
    with explain_errors(dsn):
        first = await connect(dsn)
        try:
            # A pooler invents the process id that it reports at the start of a connection.
            if await first.fetchval(_BACKEND) == first.get_server_pid():
                return "none"
            second = await connect(dsn)
            try:
                found: tuple[set[int], set[int]] = (set(), set())
                for client in _ORDER:
                    found[client].add(await (first, second)[client].fetchval(_BACKEND))
            finally:
                await disconnect(second)
        finally:
            await disconnect(first)
    # Without a pooler, and in session mode, each open connection has one process of the server for itself.
    kept = len(found[0]) == len(found[1]) == 1 and found[0] != found[1]
    return "session" if kept else "transaction"


async def disconnect(connection: asyncpg.Connection) -> None:
    """Close a connection outside the pool, gracefully if the server still responds."""
    with contextlib.suppress(*AWAY):
        await connection.close(timeout=1)


async def _migrate(connection: asyncpg.Connection, now: int) -> tuple[int, int]:
    """Migrate. Repeat it if the server rolled a migration back because of a conflict with an active node.

    While an export or a backup reads a table, the lock is requested repeatedly, for about a minute.
    """
    for attempt in range(_MIGRATE_ATTEMPTS):
        with contextlib.suppress(*UNDONE, asyncpg.LockNotAvailableError):
            return await migrate_postgres(connection, now)
        await asyncio.sleep(min(attempt, 2))
    raise StoreUnavailable(
        "The tables cannot be changed, because another program is reading them. Wait until the export or backup "
        "has finished, then start again. Running nodes are not affected."
    )
