"""Opens a SQLite file: checks SQLite's version, sets the file's mode, migrates the schema and sets up connections."""

import os
import time
from pathlib import Path
from typing import Final

import apsw

from taproof.core.errors import StoreUnavailable, TaproofError
from taproof.storage.migrate import migrate_sqlite

SOUND_VERSION: Final = (3, 51, 3)
"""The first SQLite without the WAL-reset bug, which can corrupt a database (sqlite.org/wal.html#walresetbug)."""
_LOCK_SECONDS: Final = 10.0
"""The time to wait for a lock that another process holds."""
_SWITCH_PAUSE: Final = 0.02
_READER_PRAGMAS: Final = "PRAGMA cache_size = -32768; PRAGMA query_only = 1"
# secure_delete: erased data leaves no traces in the file. Its cost is not measurable.
_WRITER_PRAGMAS: Final = """
PRAGMA synchronous = FULL; PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 2000;
PRAGMA journal_size_limit = 67108864; PRAGMA secure_delete = ON"""


class SqliteTooOld(TaproofError, code="sqlite_too_old"):
    """The linked SQLite has the WAL-reset bug."""

    sentence = "This SQLite has a bug that can corrupt the database. Install the package apsw 3.51.3 or newer."


def migrate_database(path: Path, now: int) -> tuple[int, int]:
    """Create the file (mode 0600) if needed, and migrate its schema; return the schema version before and after.

    Raises:
        SqliteTooOld: the linked SQLite has the WAL-reset bug.
        StoreUnavailable: the file cannot be opened or written; the sentence gives the reason.
        MigrationChanged: a release with a different history created the file.
    """
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < SOUND_VERSION:
        raise SqliteTooOld
    try:
        # SQLite gives its -wal and -shm files the mode of the database. They contain personal data, so only the owner
        # may read them.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = apsw.Connection(str(path))
        try:
            connection.set_busy_timeout(int(_LOCK_SECONDS * 1000))
            _use_write_ahead_log(connection)
            return migrate_sqlite(connection, now)
        finally:
            connection.close()
    except (OSError, apsw.Error) as error:
        raise _cannot_open(path, error) from error


def _use_write_ahead_log(connection: apsw.Connection) -> None:
    """Switch the file to the write-ahead log, which the file keeps.

    While another process is switching it, SQLite reports "busy" at once, whatever the busy timeout. So repeat it.
    """
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_SWITCH_PAUSE)
        else:
            return


def open_connections(path: Path) -> tuple[apsw.Connection, apsw.Connection, apsw.Connection]:
    """Return three connections: one that only reads, one for the group commit, and one for lookups.

    Raises:
        StoreUnavailable: as for `migrate_database`.
    """
    try:
        writer = _connect(path)
        writer.execute(_WRITER_PRAGMAS).fetchall()  # Fetch all rows; otherwise the last pragmas do not run.
        readers = [_connect(path), _connect(path)]
        for each in readers:
            each.execute(_READER_PRAGMAS).fetchall()
            each.set_busy_timeout(100)
        writer.set_busy_timeout(0)  # The group commit repeats statements that found a lock.
    except apsw.Error as error:
        raise _cannot_open(path, error) from error
    return readers[0], writer, readers[1]


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), statementcachesize=200)
    # Even the first pragma finds a lock while the last other process closes the file.
    connection.set_busy_timeout(int(_LOCK_SECONDS * 1000))
    # Plans must not depend on the bound values. Otherwise SQLite plans joins again at each call, and the statement of a
    # poll takes 22 µs instead of 4 (benchmarks/README.md).
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


def _cannot_open(path: Path, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"The database {path} cannot be opened for writing: {error}. Check TAPROOF_DATABASE_URL, and that the "
        "directory exists, is writable by this user, and has free space."
    )
