"""The connection pool of a PostgreSQL store, which runs its statements and translates connection errors."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final, Self, TypeVar

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.errors import StoreUnavailable
from taproof.storage.batcher import Batcher
from taproof.storage.postgres.connection import APPLICATION_NAME, Connection, Hosts, Pooling
from taproof.storage.postgres.connection_errors import AWAY, UNDONE, explain_errors
from taproof.storage.postgres.transaction import PostgresTransaction, has_nul
from taproof.storage.queries.database import Model, PointRead, Purge
from taproof.storage.queries.transaction import Transaction

T = TypeVar("T")
_AWAIT_REPLICATION: Final = """
SELECT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery() AND current_setting('synchronous_standby_names') <> ''
  THEN pg_logical_emit_message(TRUE, 'taproof', '') END"""
_ONE_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_IS_READ_ONLY: Final = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'"
_ACQUIRE_PATIENCE: Final = 5.0
_COMMAND_PATIENCE: Final = 10.0
_CHECK_EVERY: Final = 3.0
_CHECK_PATIENCE: Final = 3.0
"""A server that takes longer to run no-op statements has failed, or is about to."""
_RELEASE_PATIENCE: Final = 2.0
_CLOSE_PATIENCE: Final = 5.0
_CONNECTIONS: Final = (2, 10)
_ATTEMPTS: Final = 4
_READS: Final = 512
SETTINGS: Final = {
    "application_name": APPLICATION_NAME,
    # A plan must contain the days, so that it locks and reads only their partitions. A generic plan covers all
    # partitions. A plan made while a day's partition was empty would go on scanning it completely.
    "plan_cache_mode": "force_custom_plan",
    # The default is for hard disks. With it, a few dozen index searches look more expensive than reading a day of
    # 10,000 sessions.
    "random_page_cost": "1.1",
    "jit": "off",
    # The user or the database may have another default.
    "default_transaction_isolation": "read committed",
    # The server ends a statement if the node can no longer be reached.
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "15s",
}


class PostgresDatabase:
    """Runs statements. It implements `storage.queries.database.Database`.

    A connection error becomes StoreUnavailable, and the statement is not repeated. Statements are only repeated if the
    server rolled them back because of a conflict between two transactions.
    """

    def __init__(self, dsn: str, *, pooling: Pooling) -> None:
        """Use `open`."""
        self._hosts = Hosts(dsn)
        self._options: dict[str, Any] = {
            "command_timeout": _COMMAND_PATIENCE,
            # In transaction mode, the next transaction may use another connection to the server. So nothing is prepared
            # by name, and no setting lasts. Poolers also reject settings that they do not know at the start of a
            # connection; in session mode, they are set afterwards.
            **({"statement_cache_size": 0} if pooling == "transaction" else {"max_cached_statement_lifetime": 0}),
            "server_settings": SETTINGS if pooling == "none" else {"application_name": APPLICATION_NAME},
        }
        self._pool: asyncpg.Pool = asyncpg.create_pool(
            min_size=_CONNECTIONS[0],
            max_size=_CONNECTIONS[1],
            connect=self._hosts.connect,
            connection_class=Connection,
            init=_apply_settings if pooling == "session" else None,
            reset=_leave_as_it_is,
            **self._options,
        )
        self._replications = Batcher[None, None](self._replicate, limit=sys.maxsize)
        self._finds: dict[str, Batcher[str | bytes, Any]] = {}
        self._checks: asyncio.Task[None] | None = None
        self._closed = False
        self._under_way = 0
        self._rest = asyncio.Event()

    @classmethod
    async def open(cls, dsn: str, *, pooling: Pooling) -> Self:
        """Open the first connections of a pool.

        Raises:
            StoreUnavailable: the database cannot be reached; the sentence says what to check.
        """
        with explain_errors(dsn):
            pool = cls(dsn, pooling=pooling)
            await pool._pool
        pool._checks = asyncio.create_task(pool._check())
        return pool

    async def close(self) -> None:
        """Finish the current calls, then close all connections."""
        for finds in self._finds.values():
            await finds.close()
        await self._replications.close()
        self._closed = True
        if self._checks is not None:
            self._checks.cancel()
            await asyncio.wait([self._checks])
        while self._under_way:
            self._rest.clear()
            await self._rest.wait()
        try:
            await asyncio.wait_for(self._pool.close(), _CLOSE_PATIENCE)
        except AWAY:
            self._pool.terminate()

    async def _check(self) -> None:
        """Ask the server for a response from time to time, so that the next call need not wait for a timeout first."""
        while True:
            await asyncio.sleep(_CHECK_EVERY)
            # A server that returns an error does respond.
            with contextlib.suppress(StoreUnavailable, asyncpg.PostgresError):
                await self.ping()

    async def ping(self) -> None:
        """Return when the server has responded, and accepts writes.

        Raises:
            StoreUnavailable: it has not responded in time, is a standby, or is read-only.
        """

        async def ask(connection: asyncpg.Connection) -> None:
            if await connection.fetchval(_IS_READ_ONLY, timeout=_CHECK_PATIENCE):
                raise asyncpg.ReadOnlySQLTransactionError

        await self.run(ask)

    async def connect(self) -> asyncpg.Connection:
        """Return a connection outside the pool. The caller must close it."""
        return await self._hosts.connect(**self._options)

    async def fetch(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        """Run a statement in its own transaction and return its rows."""

        async def run(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *values)
            return rows

        return await self.run(run)

    async def await_replication(self) -> None:
        """Wait until everything that has been read so far is also on the synchronous standbys, if there are any.

        After a crash, a primary shows what no standby has received, and a fail-over can still undo it. The empty
        message in the log comes after everything that was read, and its commit waits for the standbys.

        Raises:
            StoreUnavailable: no standby has confirmed it in time.
        """
        await self._replications.run(None)

    async def _replicate(self, items: list[None]) -> list[None]:
        async def wait(connection: asyncpg.Connection) -> None:
            is_standby, _ = await connection.fetchrow(_AWAIT_REPLICATION)
            if is_standby:
                raise asyncpg.ReadOnlySQLTransactionError

        await self.run(wait)
        return items

    async def read(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        return [] if has_nul(*values) else await self.fetch(statement, *values)

    async def find(self, read: PointRead[Model], key: str | bytes) -> Model | None:
        if has_nul(key):
            return None
        if read.many not in self._finds:
            self._finds[read.many] = Batcher(partial(self._find, read), limit=_READS)
        found: Model | None = await self._finds[read.many].run(key)
        return found

    async def _find(self, read: PointRead[Model], keys: list[str | bytes]) -> list[Model | None]:
        found = {key: read.model(row) for key, *row in await self.fetch(read.many, keys)}
        return [found.get(each) for each in keys]

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

    async def in_lookup(self, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        async def look(connection: asyncpg.Connection) -> T:
            await connection.execute(_ONE_SNAPSHOT)
            return await work(PostgresTransaction(connection))

        return await self.transact(look)

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
            except UNDONE as error:
                if attempts == 0:
                    raise StoreUnavailable from error

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        try:
            connection = await self._pool.acquire(timeout=_ACQUIRE_PATIENCE)
            host = connection.host
            try:
                yield connection
            except (asyncpg.ReadOnlySQLTransactionError, TimeoutError):
                # The server is a standby now, or does not respond. Renew all connections, so that they may find the new
                # primary. A former primary whose Patroni has died still accepts connections, so others come first.
                self._hosts.try_last(host)
                await self._pool.expire_connections()
                raise
            except asyncpg.InternalClientError:
                # The driver no longer understands the server's messages: this connection must not be used again.
                connection.terminate()
                raise
            finally:
                # If the connection was lost in the meantime, the pool has already taken it back.
                with contextlib.suppress(asyncpg.InternalClientError):
                    await self._pool.release(connection, timeout=_RELEASE_PATIENCE)
        except AWAY as error:
            # A value that does not fit its column also raises an InterfaceError, which is not a connection error.
            if isinstance(error, (ValueError, *UNDONE)):
                raise
            raise StoreUnavailable from error


def storable(names: Iterable[str]) -> list[str]:
    """Return the names that contain no NUL: PostgreSQL cannot store a NUL, so no row can have such a name."""
    return [name for name in names if "\0" not in name]


async def _apply_settings(connection: asyncpg.Connection) -> None:
    settings = {name: value for name, value in SETTINGS.items() if name != "application_name"}
    await connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in settings.items()))


async def _leave_as_it_is(_connection: asyncpg.Connection) -> None:
    """Do nothing. The pool need not reset a connection after use, because no code changes a connection's state."""
