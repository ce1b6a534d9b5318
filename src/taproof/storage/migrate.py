"""Applies numbered SQL files, forward only: each in one transaction, under a lock, with its checksum verified."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from taproof.core.clock import iso8601
from taproof.core.errors import TaproofError

if TYPE_CHECKING:
    # Each driver imports its own library: a service on one database does not need the other's library.
    import apsw
    import asyncpg

_FILE = re.compile(r"(?P<driver>[a-z]+)_(?P<version>\d{4})_(?P<name>\w+)\.sql")


_APPLIED = "SELECT version, checksum FROM schema_migrations"
LOCK_PATIENCE = 2_000
"""Milliseconds for which a step waits for a table lock. Meanwhile, all other users of the table queue behind it."""
_LOCK = "SELECT pg_advisory_xact_lock(8387771130)"
"""An arbitrary number that only Taproof uses. The lock lasts for one transaction, not a session, so it also works
behind PgBouncer."""


class MigrationChanged(TaproofError, code="migration_changed"):
    """The checksum of an applied migration differs."""

    sentence = (
        "A migration that was applied to this database has changed. Install the release that created the database."
    )


@dataclass(frozen=True, slots=True)
class Migration:
    """One schema migration."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of the text, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def is_missing(self, applied: Mapping[int, str]) -> bool:
        """Return whether a database with these applied versions and checksums lacks this migration.

        Raises:
            MigrationChanged: the database has a different migration with this number.
        """
        if self.version in applied and applied[self.version] != self.checksum:
            raise MigrationChanged
        return self.version not in applied


def migrations(driver: str) -> list[Migration]:
    """Return the migrations of a driver (`sqlite` or `postgres`), oldest first."""
    found = []
    for file in resources.files("taproof.storage").joinpath("migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None and match["driver"] == driver:
            found.append(Migration(int(match["version"]), match["name"], file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.version)


def migrate_sqlite(connection: "apsw.Connection", now: int) -> tuple[int, int]:
    """Apply the missing migrations; return the schema version before and after.

    A database that a newer release has migrated is left unchanged: during a rolling deploy, old code runs on a new
    schema.

    Raises:
        MigrationChanged: an applied migration differs from the file with that number.
    """
    connection.execute("""
        CREATE TABLE IF NOT EXISTS schema_migrations
          (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT
    """)
    before: int | None = None
    version = 0
    for migration in migrations("sqlite"):
        connection.execute("BEGIN IMMEDIATE")
        try:
            found: list[Any] = connection.execute(_APPLIED).fetchall()
            applied: dict[int, str] = dict(found)
            before = max(applied, default=0) if before is None else before
            if migration.is_missing(applied):
                connection.execute(migration.sql)
                connection.execute(
                    "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)",
                    (migration.version, migration.name, migration.checksum, iso8601(now)),
                )
            version = max(version, migration.version, *applied)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return before or 0, version


async def migrate_postgres(connection: "asyncpg.Connection", now: int) -> tuple[int, int]:
    """Apply the missing migrations on PostgreSQL, as `migrate_sqlite` does; return the schema version before and after.

    Raises:
        MigrationChanged: an applied migration differs from the file with that number.
    """
    before: int | None = None
    version = 0
    for migration in migrations("postgres"):
        async with connection.transaction():
            await connection.execute(_LOCK)
            # Create this table under the lock too: two concurrent CREATE statements collide, even with IF NOT EXISTS.
            await connection.execute("""
                CREATE TABLE IF NOT EXISTS schema_migrations
                  (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)
            """)
            applied = {row[0]: row[1] for row in await connection.fetch(_APPLIED)}
            before = max(applied, default=0) if before is None else before
            if migration.is_missing(applied):
                # While this statement waits for a table, all others queue behind it. So give up early and try again
                # later.
                await connection.execute(f"SET LOCAL lock_timeout = {LOCK_PATIENCE}")
                await connection.execute(migration.sql)
                await connection.execute(
                    "INSERT INTO schema_migrations VALUES ($1, $2, $3, $4)",
                    migration.version,
                    migration.name,
                    migration.checksum,
                    iso8601(now),
                )
            version = max(version, migration.version, *applied)
    return before or 0, version
