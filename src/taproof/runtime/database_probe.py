"""Inspects a PostgreSQL server and its database, without changing anything.

The doctor and the commands that must not create a missing database use it.
"""

from dataclasses import dataclass
from typing import Final

import asyncpg

from taproof.config.database_url import shown_database
from taproof.core.clock import Clock
from taproof.core.errors import StoreUnavailable
from taproof.storage.postgres.connection import connect
from taproof.storage.postgres.connection_errors import sentence_about

_OWN_WORDS: Final = (TimeoutError, asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
"""Errors that are shown with the server's own message and the address."""
_ASK: Final = """
SELECT current_setting('server_version_num')::INTEGER AS version_number, current_setting('server_version') AS version,
  current_setting('server_encoding') AS encoding,
  pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS is_read_only,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('synchronous_standby_names') <> '' AS waits_for_standbys,
  (SELECT count(*) FROM pg_stat_replication)::INTEGER AS standbys,
  (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT AS now,
  to_regclass('schema_migrations') IS NOT NULL AS is_ours,
  NOT EXISTS (SELECT FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace)
    AS is_empty"""
_VERSION: Final = "SELECT coalesce(max(version), 0) FROM schema_migrations"


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """The properties of a server and its database."""

    version_number: int
    """In PostgreSQL's notation: 140005 is 14.5."""
    version: str
    encoding: str
    is_read_only: bool
    skew: int
    """How far this machine's clock is ahead of the server's, in ms."""
    schema_version: int | None
    """0 for an empty database, None for the database of another program."""
    synchronous_commit: str
    waits_for_standbys: bool
    """Whether `synchronous_standby_names` is set."""
    standbys: int
    """The number of connected standbys."""


async def ask_server(database_url: str, clock: Clock, patience: float = 5.0) -> DatabaseServer:
    """Inspect the server and the database; each step may take `patience` seconds. No error shows the password."""
    try:
        connection = await connect(database_url, timeout=patience)
        try:
            # Behind PgBouncer in transaction mode, related queries must be one transaction.
            async with connection.transaction(readonly=True):
                asked = clock()
                found = dict(await connection.fetchrow(_ASK, timeout=patience))
                skew = (asked + clock()) // 2 - found.pop("now")
                is_ours, is_empty = found.pop("is_ours"), found.pop("is_empty")
                schema_version = 0 if is_empty else None
                if is_ours:
                    schema_version = await connection.fetchval(_VERSION, timeout=patience)
        finally:
            await connection.close(timeout=patience)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, ValueError) as error:
        if not isinstance(error, _OWN_WORDS) and (sentence := sentence_about(error, database_url)):
            raise StoreUnavailable(sentence) from None
        reason = f"no response within {patience:.0f} s" if isinstance(error, TimeoutError) else _reason(error)
        raise StoreUnavailable(
            f"The database {shown_database(database_url)} cannot be reached: {reason}. Check TAPROOF_DATABASE_URL, "
            "that the server is running, and that it accepts this user."
        ) from None
    return DatabaseServer(**found, skew=skew, schema_version=schema_version)


def _reason(error: Exception) -> str:
    """Return the reason of an error, without any part of the address."""
    if isinstance(error, asyncpg.PostgresError):
        return str(error).splitlines()[0].rstrip(".")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    # The error's text may quote the whole address.
    return type(error).__name__
