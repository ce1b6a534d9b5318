"""Copies a SQLite database with SQLite's backup API: from a database in use to a file, and from a file back.

A copy is one snapshot, so other processes can write meanwhile. `restore_into` replaces the content of a database in one
transaction of SQLite: after a crash, the next process that opens the file rolls an unfinished restore back.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from taproof.core.clock import SECOND
from taproof.core.errors import TaproofError
from taproof.storage.migrate import migrations
from taproof.storage.queries.encrypted_values import ENCRYPTED_COLUMNS
from taproof.storage.queries.metadata import READ_MARK, SET_MARK

OnProgress = Callable[[int, int], None]
"""Called with the number of copied pages, and of all pages."""

_STEP: Final = 1_000
"""Pages to copy between two reports of progress: four megabytes."""
_PATIENCE: Final = 2 * SECOND
_TABLES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
_SCHEMA: Final = r"""
SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'schema_migrations'"""
_NAME: Final = 60
_NAMED: Final = 5
_APPLIED: Final = "SELECT version, checksum FROM schema_migrations"
_SINGLE_FILE: Final = "PRAGMA journal_mode = DELETE"


class NotADatabase(TaproofError, code="not_a_database"):
    """A file is damaged, or is no database of Taproof."""


class DatabaseInUse(TaproofError, code="database_in_use"):
    """A process has the database open."""


@dataclass(frozen=True, slots=True)
class Content:
    """The verified content of a database: its schema version, and its rows by table."""

    schema_version: int
    rows: dict[str, int]


@contextlib.contextmanager
def open_snapshot(path: Path, *, writable: bool = False) -> Iterator[apsw.Connection]:
    """Open a database file at one snapshot.

    Args:
        path: the file.
        writable: true for a database in use, whose write-ahead log may have to be recovered.

    Raises:
        NotADatabase: the file cannot be read, or is no database.
    """
    flags = apsw.SQLITE_OPEN_READWRITE if writable else apsw.SQLITE_OPEN_READONLY
    try:
        with contextlib.closing(apsw.Connection(str(path), flags=flags)) as connection:
            connection.set_busy_timeout(_PATIENCE)
            connection.execute("PRAGMA trusted_schema = 0; PRAGMA query_only = 1; BEGIN").fetchall()
            connection.execute(_TABLES).fetchall()  # The first read takes the snapshot.
            yield connection
    except apsw.Error as error:
        raise NotADatabase(f"The database {path} cannot be read: {error}.") from error


def count_rows(connection: apsw.Connection) -> dict[str, int]:
    """Return the number of rows by table."""
    tables = sorted(str(name) for (name,) in connection.execute(_TABLES))
    return {table: _number(connection, f'SELECT COUNT(*) FROM "{table}"') for table in tables}


def verify(connection: apsw.Connection, path: Path) -> Content:
    """Check every page and index, and that a known release created the schema.

    Raises:
        NotADatabase: the file is damaged, belongs to another program or a newer release, or has another schema, such as
            a trigger that would run in the service.
        MigrationChanged: a release with a different history created the file.
    """
    tables = {name for (name,) in connection.execute(_TABLES)}
    if not {"schema_migrations", "metadata"} <= tables:
        raise NotADatabase(f"The file {path} is no database of Taproof.")
    finding = str(connection.execute("PRAGMA integrity_check(1)").fetchall()[0][0])
    if finding != "ok":
        raise NotADatabase(f"The database {path} is damaged: {' '.join(finding.split())}.")
    applied = {int(str(version)): str(checksum) for version, checksum in connection.execute(_APPLIED)}
    known = migrations("sqlite")
    newest = max(applied, default=0)
    if newest > known[-1].version:
        raise NotADatabase(
            f"The database {path} has schema version {newest}, and this release knows up to {known[-1].version}. Use "
            "the release that created it, or a newer one."
        )
    if not applied or any(migration.is_missing(applied) for migration in known if migration.version <= newest):
        raise NotADatabase(f"The database {path} is incomplete: some of its migrations were never applied.")
    with contextlib.closing(apsw.Connection(":memory:")) as empty:
        for migration in known:
            if migration.version <= newest:
                empty.execute(migration.sql).fetchall()
        expected, found = set(empty.execute(_SCHEMA)), set(connection.execute(_SCHEMA))
    # An operator may add indexes. A trigger or a view would run in the service.
    differing = (expected - found) | {row for row in found - expected if row[0] != "index"}
    if differing:
        names = ", ".join(sorted({" ".join(str(name).split())[:_NAME] for _, name, _ in differing})[:_NAMED])
        raise NotADatabase(
            f"The database {path} does not have the schema that its migrations create. Compare in it: {names}."
        )
    return Content(newest, count_rows(connection))


def read_schema_version(connection: apsw.Connection) -> int:
    """Return the schema version; 0 for the database of another program."""
    if ("schema_migrations",) not in connection.execute(_TABLES).fetchall():
        return 0
    return _number(connection, "SELECT COALESCE(MAX(version), 0) FROM schema_migrations")


def read_mark(connection: apsw.Connection, name: str) -> bytes | None:
    """Return a named value of the installation; None if there is none."""
    found = connection.execute(READ_MARK, (name,)).fetchall()
    return bytes(found[0][0]) if found else None  # type: ignore[arg-type]  # The column is a BLOB.


def write_mark(path: Path, name: str, value: bytes) -> None:
    """Store a named value. The schema is not migrated, so that a backup before an upgrade changes nothing else."""
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.set_busy_timeout(10 * SECOND)
        connection.execute(SET_MARK, (name, value)).fetchall()


def count_undecryptable(connection: apsw.Connection, knows: Callable[[bytes], bool]) -> int:
    """Return the number of encrypted values whose key is unknown to `knows`, judged by the beginning of each value."""
    count = 0
    for kind, of in ENCRYPTED_COLUMNS.items():
        if kind == "mark":
            continue
        begins = f"SELECT substr({of.column}, 1, 5), COUNT(*) FROM {of.table} WHERE length({of.column}) > 0 GROUP BY 1"
        count += sum(int(str(number)) for begin, number in connection.execute(begins) if not knows(bytes(begin)))
    return count


def copy_to(source: apsw.Connection, draft: Path, path: Path, on_progress: OnProgress) -> Content:
    """Copy a snapshot of `path` into the new file `draft` (mode 0600), verify it and sync it.

    Raises:
        NotADatabase: the copy is damaged; so is the source.
        OSError: the file cannot be created.
        apsw.Error: the file cannot be written.
    """
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        _copy(source, connection, on_progress)
    with contextlib.closing(apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        # The copy of a database with a write-ahead log would otherwise need files of its own.
        connection.execute(f"PRAGMA trusted_schema = 0; {_SINGLE_FILE}").fetchall()
        content = verify(connection, path)
    if content.rows != count_rows(source):
        raise NotADatabase(f"The copy of {path} does not have all rows. Try again.")
    descriptor = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return content


def discard(draft: Path) -> None:
    """Remove a draft, and the files that SQLite may have created beside it."""
    for file in (draft, *beside(draft)):
        file.unlink(missing_ok=True)


def beside(path: Path) -> list[Path]:
    """Return the names of the files that SQLite creates beside a database."""
    return [path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm", "-journal")]


def restore_into(source: apsw.Connection, path: Path, on_progress: OnProgress) -> None:
    """Replace the content of a database, in one transaction.

    Raises:
        DatabaseInUse: a process has the database open.
        NotADatabase: the file is so damaged that SQLite cannot replace its content.
        apsw.Error: the file cannot be written; nothing was changed.
    """
    in_use = DatabaseInUse(f"A process has the database {path} open. Stop the service, and run this command again.")
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.set_busy_timeout(_PATIENCE)
        try:
            # SQLite leaves the write-ahead log only if no other process has the file open. The lock is then kept until
            # the connection closes.
            left = connection.execute(_SINGLE_FILE).fetchall()
            connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL").fetchall()
            connection.execute("BEGIN EXCLUSIVE; COMMIT").fetchall()
            left += connection.execute("PRAGMA journal_mode").fetchall()
        except (apsw.BusyError, apsw.LockedError):
            raise in_use from None
        except (apsw.NotADBError, apsw.CorruptError):
            names = ", ".join(file.name for file in (path, *beside(path)) if file.exists())
            raise NotADatabase(
                f"The database {path} is too damaged to replace its content. Move it out of the directory, with every "
                f"file that SQLite keeps beside it ({names}), and run this command again."
            ) from None
        if set(left) != {("delete",)}:
            raise in_use
        _copy(source, connection, on_progress)


def _copy(source: apsw.Connection, target: apsw.Connection, on_progress: OnProgress) -> None:
    with target.backup("main", source, "main") as backup:
        while not backup.done:
            backup.step(_STEP)
            on_progress(backup.page_count - backup.remaining, backup.page_count)


def _number(connection: apsw.Connection, statement: str) -> int:
    return int(str(connection.execute(statement).fetchall()[0][0]))
