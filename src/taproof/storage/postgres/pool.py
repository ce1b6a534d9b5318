"""Opens connections to PostgreSQL, translates their errors, and runs statements on them."""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, Final, Self, TypeVar

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.errors import StoreUnavailable, TaproofError
from taproof.storage import migrate
from taproof.storage.postgres.transaction import PostgresTransaction, has_nul
from taproof.storage.queries.database import Purge
from taproof.storage.queries.transaction import Transaction

T = TypeVar("T")
OLDEST_SERVER: Final = 14
"""The first version that can detach a partition without blocking readers of the other partitions."""
_CONNECT_PATIENCE: Final = 5.0
_ACQUIRE_PATIENCE: Final = 5.0
_COMMAND_PATIENCE: Final = 10.0
_RELEASE_PATIENCE: Final = 2.0
_CLOSE_PATIENCE: Final = 5.0
_CONNECTIONS: Final = (2, 10)
_ATTEMPTS: Final = 4
_MIGRATE_ATTEMPTS: Final = 15
"""Together with the pauses between them, these attempts take about a minute."""
_NAME: Final = "taproof"
_SETTINGS: Final = {
    "application_name": _NAME,
    # A plan must contain the days, so that it locks and reads only their partitions. A generic plan covers all
    # partitions. A plan made while a day's partition was empty would go on scanning it completely.
    "plan_cache_mode": "force_custom_plan",
    # The default is for hard disks. With it, a few dozen index searches look more expensive than reading a day of
    # 10,000 sessions.
    "random_page_cost": "1.1",
    "jit": "off",
    # The server ends a statement if the node can no longer be reached.
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "15s",
}
AWAY: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.InsufficientResourcesError,  # The disk is full, or there are too many connections.
    asyncpg.OperatorInterventionError,  # The server is shutting down or starting up, or the statement took too long.
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,  # A standby, or a primary that has become one.
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    # A new connection in the pool may fail with these errors even if the first connections succeeded.
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
_UNDONE: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_CHECK: Final = "Check TAPROOF_DATABASE_URL"
_FORM: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with marks in the password written as %40 for @"
_QUOTED_NAME: Final = re.compile(r'"([a-z_]{1,63})"')
_MAY_MAKE_TABLES: Final = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE)"
MAKE_OWNER: Final = "As the server's administrator run: ALTER DATABASE <database> OWNER TO <user>"
"""The advice if the database user may not create tables."""


class PostgresTooOld(TaproofError, code="postgres_too_old"):
    """The server is older than the oldest supported PostgreSQL."""

    sentence = "This PostgreSQL is too old. Use version 14 or newer."


class PostgresPool:
    """Runs statements. It implements `storage.queries.database.Database`.

    A connection error becomes StoreUnavailable, and the statement is not repeated. Statements are only repeated if the
    server rolled them back because of a conflict between two transactions.
    """

    def __init__(self, dsn: str, *, pgbouncer: bool) -> None:
        """Use `open`."""
        self._dsn = dsn
        self._options: dict[str, Any] = {
            "timeout": _CONNECT_PATIENCE,
            "command_timeout": _COMMAND_PATIENCE,
            # In PgBouncer's transaction mode, the next transaction may use another connection to the server. So nothing
            # is prepared by name. PgBouncer also rejects settings that it does not know.
            **({"statement_cache_size": 0} if pgbouncer else {"max_cached_statement_lifetime": 0}),
            "server_settings": {"application_name": _NAME} if pgbouncer else _SETTINGS,
        }
        self._pool: asyncpg.Pool = asyncpg.create_pool(
            dsn, min_size=_CONNECTIONS[0], max_size=_CONNECTIONS[1], reset=_leave_as_it_is, **self._options
        )
        self._closed = False
        self._under_way = 0
        self._rest = asyncio.Event()

    @classmethod
    async def open(cls, dsn: str, *, pgbouncer: bool) -> Self:
        """Open the first connections of a pool.

        Raises:
            StoreUnavailable: the database cannot be reached; the sentence says what to check.
        """
        with _opening(dsn):
            pool = cls(dsn, pgbouncer=pgbouncer)
            await pool._pool
        return pool

    async def close(self) -> None:
        """Finish the current calls, then close all connections."""
        self._closed = True
        while self._under_way:
            self._rest.clear()
            await self._rest.wait()
        try:
            await asyncio.wait_for(self._pool.close(), _CLOSE_PATIENCE)
        except AWAY:
            self._pool.terminate()

    async def connect(self) -> asyncpg.Connection:
        """Return a connection outside the pool. The caller must close it."""
        return await asyncpg.connect(self._dsn, **self._options)

    async def fetch(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        """Run a statement in its own transaction and return its rows."""

        async def run(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *values)
            return rows

        return await self.run(run)

    async def read(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        return [] if has_nul(*values) else await self.fetch(statement, *values)

    look_up = read

    async def change(self, statement: str, *values: Any, entry: AuditEntry | None = None) -> list[asyncpg.Record]:
        return [] if has_nul(*values) else await self.add(statement, *values, entry=entry)

    async def add(self, statement: str, *values: Any, entry: AuditEntry | None = None) -> list[asyncpg.Record]:
        if entry is None:
            return await self.fetch(statement, *values)

        async def add(transaction: Transaction) -> list[asyncpg.Record]:
            changed = await transaction.add(statement, *values)
            if changed:
                await transaction.add_entry(entry)
            return changed

        return await self.in_transaction(add)

    async def purge(self, purge: Purge, before: int, limit: int) -> int:
        return len(await self.fetch(purge.postgres, before, limit))

    async def in_transaction(self, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        return await self.transact(lambda connection: work(PostgresTransaction(connection)))

    async def transact(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Run `work` in one transaction. `work` may run more than once, so it must only run statements."""

        async def run(connection: asyncpg.Connection) -> T:
            async with connection.transaction():
                return await work(connection)

        return await self.run(run)

    async def run(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Run `work` on a connection. Repeat it if the server rolled it back because of a conflict.

        Raises:
            StoreUnavailable: the database cannot be reached. If the connection was lost during `work`, a change may
                have been made.
        """
        if self._closed:
            raise StoreUnavailable
        self._under_way += 1
        try:
            return await self._attempt(work, _ATTEMPTS)
        finally:
            self._under_way -= 1
            if self._under_way == 0:
                self._rest.set()

    async def _attempt(self, work: Callable[[asyncpg.Connection], Awaitable[T]], attempts: int) -> T:
        while True:
            attempts -= 1
            try:
                async with self._connection() as connection:
                    return await work(connection)
            except _UNDONE as error:
                if attempts == 0:
                    raise StoreUnavailable from error

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        try:
            connection = await self._pool.acquire(timeout=_ACQUIRE_PATIENCE)
            try:
                yield connection
            except asyncpg.ReadOnlySQLTransactionError:
                # This server is a standby now. Renew all connections, so that they may find the new primary.
                await self._pool.expire_connections()
                raise
            except asyncpg.InternalClientError:
                # The driver no longer understands the server's messages: this connection must not be used again.
                connection.terminate()
                raise
            finally:
                await self._pool.release(connection, timeout=_RELEASE_PATIENCE)
        except AWAY as error:
            # A value that does not fit its column also raises an InterfaceError, which is not a connection error.
            if isinstance(error, (ValueError, *_UNDONE)):
                raise
            raise StoreUnavailable from error


async def migrate_postgres(dsn: str, now: int) -> tuple[int, int]:
    """Migrate the schema; return its version before and after.

    A database that a newer release has migrated is left as it is: old code runs on a new schema in a rolling deploy.

    Raises:
        PostgresTooOld: the server is older than 14.
        StoreUnavailable: the database cannot be reached; the sentence says what to check.
        MigrationChanged: a release with a different history created the schema.
    """
    with _opening(dsn):
        # No statement is cached, so that this also works behind PgBouncer.
        connection = await asyncpg.connect(
            dsn, timeout=_CONNECT_PATIENCE, statement_cache_size=0, server_settings={"application_name": _NAME}
        )
        try:
            if connection.get_server_version().major < OLDEST_SERVER:
                raise PostgresTooOld
            if connection.get_settings().server_encoding != "UTF8":
                raise StoreUnavailable(f"The database is not in UTF-8. {_CHECK}: create one with ENCODING 'UTF8'.")
            return await _migrate(connection, now)
        finally:
            await disconnect(connection)


async def may_make_tables(dsn: str) -> bool:
    """Return whether this user may create tables in the database. Nothing is changed.

    Raises:
        StoreUnavailable: the database cannot be reached; the sentence says what to check.
    """
    with _opening(dsn):
        connection = await asyncpg.connect(dsn, timeout=_CONNECT_PATIENCE, statement_cache_size=0)
        try:
            return bool(await connection.fetchval(_MAY_MAKE_TABLES, timeout=_CONNECT_PATIENCE))
        finally:
            await disconnect(connection)


async def disconnect(connection: asyncpg.Connection) -> None:
    """Close a connection outside the pool, gracefully if the server still responds."""
    with contextlib.suppress(*AWAY):
        await connection.close(timeout=1)


def storable(names: Iterable[str]) -> list[str]:
    """Return the names that contain no NUL: PostgreSQL cannot store a NUL, so no row can have such a name."""
    return [name for name in names if "\0" not in name]


async def _migrate(connection: asyncpg.Connection, now: int) -> tuple[int, int]:
    """Migrate. Repeat it if the server rolled a migration back because of a conflict with an active node.

    Each migration is one transaction. While an export or a backup reads a table, the lock is requested
    repeatedly, for about a minute.
    """
    for attempt in range(_MIGRATE_ATTEMPTS):
        with contextlib.suppress(*_UNDONE, asyncpg.LockNotAvailableError):
            return await migrate.migrate_postgres(connection, now)
        await asyncio.sleep(min(attempt, 2))
    raise StoreUnavailable(
        "The tables cannot be changed, because another program is reading them. Wait until the export or backup "
        "has finished, then start again. Running nodes are not affected."
    )


async def _leave_as_it_is(_connection: asyncpg.Connection) -> None:
    """Do nothing. The pool need not reset a connection after use, because no code changes a connection's state."""


@contextlib.contextmanager
def _opening(dsn: str) -> Iterator[None]:
    """Convert errors of a database URL or its server to StoreUnavailable with a sentence."""
    try:
        yield
    except Exception as error:
        sentence = sentence_about(error, dsn)
        if sentence is None:
            raise
        # The driver quotes text that it cannot parse, which may be part of the password.
        raise StoreUnavailable(sentence) from (None if isinstance(error, (ValueError, asyncpg.DataError)) else error)


def sentence_about(error: Exception, dsn: str) -> str | None:
    """Return a sentence that explains an error of a database URL or its server; None for an unexpected error.

    The URL contains a password, so the sentence contains no part of the URL except a parameter's name.
    """
    for explain in (_tls_sentence, _parameter_sentence, _refusal_sentence):
        if sentence := explain(error, dsn):
            return sentence
    if isinstance(error, ValueError):
        return f"The address of the database cannot be read. {_CHECK}: the format is {_FORM}."
    if isinstance(error, socket.gaierror):
        return f"The database's host name cannot be resolved (DNS). {_CHECK}: its host."
    if isinstance(error, ConnectionRefusedError):
        return f"The database server refused the connection. {_CHECK}, and that the server is running."
    if isinstance(error, AWAY):
        return (
            f"The database does not respond ({type(error).__name__}). {_CHECK}: its host and port, and that the "
            "server is running and accepts connections from this machine."
        )
    return None


def _tls_sentence(error: Exception, dsn: str) -> str | None:
    names_file = re.search(r"[?&]ssl(rootcert|cert|key|crl)=", dsn)
    if (
        (isinstance(error, ValueError) and str(error).startswith("root certificate file"))
        or (isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError)) and names_file)
        or (isinstance(error, ssl.SSLError) and error.reason == "NO_CERTIFICATE_OR_CRL_FOUND")
    ):
        return (
            "The CA certificate for the database, or another TLS file, cannot be read. Set "
            "sslrootcert=FILE in TAPROOF_DATABASE_URL to a PEM file that this user can read."
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "The database's certificate is not from a CA in sslrootcert, is not for this host, or has expired. "
            f"{_CHECK}: its host, and sslrootcert=FILE."
        )
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in str(error):
        return (
            "The database server does not offer TLS, but sslmode in TAPROOF_DATABASE_URL requires it. Set ssl = on "
            "on the server, or remove sslmode if nobody else can read the connection's traffic."
        )
    return None


def _parameter_sentence(error: Exception, dsn: str) -> str | None:
    if not isinstance(
        error, (asyncpg.UndefinedObjectError, asyncpg.InvalidParameterValueError, asyncpg.CantChangeRuntimeParamError)
    ):
        return None
    name = _QUOTED_NAME.search(str(error))
    if name is None or not (f"?{name[1]}=" in dsn or f"&{name[1]}=" in dsn):
        return None
    if isinstance(error, asyncpg.UndefinedObjectError):
        return f"The server does not know a parameter in TAPROOF_DATABASE_URL: {name[1]}. Correct or remove it."
    return f"The server does not accept the value of {name[1]} in TAPROOF_DATABASE_URL. Correct or remove it."


def _refusal_sentence(error: Exception, _dsn: str) -> str | None:
    match error:
        case asyncpg.InvalidAuthorizationSpecificationError():
            return f"The database refuses this user. {_CHECK}: its user and password."
        case asyncpg.InvalidCatalogNameError():
            return f"There is no such database on the server. {_CHECK}: its last part."
        case asyncpg.ReadOnlySQLTransactionError():
            return f"The database is read-only. {_CHECK}: it must name the primary."
        case asyncpg.InsufficientPrivilegeError() | asyncpg.InvalidSchemaNameError():
            return f"This user may not create tables in the database. {MAKE_OWNER}"
    return None
