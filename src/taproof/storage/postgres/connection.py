"""Connections to PostgreSQL: how all of them are opened, and single ones for migrations, checks and `notify.py`."""

import asyncio
import contextlib
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import asyncpg

from taproof.core.errors import StoreUnavailable, TaproofError
from taproof.storage.migrate import migrate_postgres
from taproof.storage.postgres.connection_errors import AWAY, CHECK_ADDRESS, UNDONE, explain_errors

OLDEST_SERVER: Final = 14
"""The first version that can detach a partition without blocking readers of the other partitions."""
CONNECT_PATIENCE: Final = 5.0
_MIGRATE_ATTEMPTS: Final = 15
"""Together with the pauses between them, these attempts take about a minute."""
APPLICATION_NAME: Final = "taproof"
_MAY_MAKE_TABLES: Final = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE)"


class Connection(asyncpg.Connection):  # type: ignore[misc] # asyncpg has no types.
    """A connection that never asks the server to cancel a statement.

    A commit that waits for a synchronous standby is already in the log of the primary. If this wait is cancelled, the
    server shows the change to everybody, although a fail-over would undo it (docs/decisions/0014-fail-over.md). So a
    statement that takes too long, or whose caller was cancelled, costs the connection. The server then goes on waiting,
    and nobody sees the change.
    """

    __slots__ = ()

    def _cancel_current_command(self, *_waiters: "asyncio.Future[None] | None") -> None:
        self._transport.abort()


class PostgresTooOld(TaproofError, code="postgres_too_old"):
    """The server is older than the oldest supported PostgreSQL."""

    sentence = "This PostgreSQL is too old. Use version 14 or newer."


def connect_options(dsn: str) -> dict[str, Any]:
    """Return the options with which every connection to `dsn` is opened.

    Of several hosts, the primary is used, unless `target_session_attrs` says otherwise (PostgreSQL, "Connection
    Strings").
    """
    options: dict[str, Any] = {"connection_class": Connection, "timeout": CONNECT_PATIENCE}
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    hosts = (parts.netloc.rpartition("@")[2] or query.get("host", [""])[0]).count(",") + 1
    if hosts > 1:
        # Hosts that do not respond must not use up the time for the others.
        options["timeout"] = 0.8 * CONNECT_PATIENCE / hosts
        if "target_session_attrs" not in query:
            options["target_session_attrs"] = "primary"
    return options


async def connect(dsn: str, **options: Any) -> asyncpg.Connection:
    """Open a connection. The caller must close it. No statement is cached, so it also works behind PgBouncer."""
    return await asyncpg.connect(dsn, statement_cache_size=0, **{**connect_options(dsn), **options})


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
