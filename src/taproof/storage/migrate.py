"""Numbered SQL files, applied forward only, each in one transaction under the write lock, held to its checksum."""

import hashlib
import re
from dataclasses import dataclass
from importlib import resources

import apsw

from taproof.core.clock import iso8601
from taproof.core.errors import TaproofError
from taproof.storage.group_commit import rows

_FILE = re.compile(r"(?P<driver>[a-z]+)_(?P<version>\d{4})_(?P<name>\w+)\.sql")


class MigrationChanged(TaproofError):
    """A migration that this database has applied is no longer the same. Install the release that made the database."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of the text, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations(driver: str) -> list[Migration]:
    """Return the migrations of a driver (`sqlite`), oldest first."""
    found = []
    for file in resources.files("taproof.storage").joinpath("migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None and match["driver"] == driver:
            found.append(Migration(int(match["version"]), match["name"], file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.version)


def migrate_sqlite(connection: apsw.Connection, now: int) -> tuple[int, int]:
    """Apply what is missing; return the schema version before and after.

    A database that a newer release has migrated is left as it is: old code runs on a new schema in a rolling deploy.

    Raises:
        MigrationChanged: an applied migration differs from the file of that number.
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
            applied: dict[int, str] = dict(rows(connection, "SELECT version, checksum FROM schema_migrations"))
            before = max(applied, default=0) if before is None else before
            if migration.version in applied:
                if applied[migration.version] != migration.checksum:
                    raise MigrationChanged  # noqa: TRY301 — it must leave the transaction, as any error does.
            else:
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
