"""Check SQLite, the database file and its disk."""

import itertools
import os
import shutil
from pathlib import Path
from typing import Final

import apsw

from taproof.cli.doctor.finding import OTHERS, Finding, ok, problem, warning
from taproof.cli.doctor.master_key import check_master_key
from taproof.config.database_url import database_file
from taproof.config.options import called
from taproof.config.settings import Settings
from taproof.core.clock import SECOND
from taproof.storage.migrate import migrations
from taproof.storage.sqlite.connection import SOUND_VERSION

_QUICK_CHECK_STEPS: Final = 400
"""Progress steps of a million instructions that the integrity check may take: about ten seconds."""
_MEBIBYTE: Final = 1024 * 1024
_DISK_PROBLEM: Final = 100 * _MEBIBYTE
_DISK_WARNING: Final = 1024 * _MEBIBYTE
_OWNER: Final = "Make the file and its directory readable and writable for the user that runs Taproof."
_OTHER_FILE: Final = f"Set another file with {called('database_url')}."
_RESTORE: Final = "Stop Taproof, keep a copy of the file, and restore a backup."


async def check_sqlite_store(settings: Settings, lock_wait: int = 2 * SECOND) -> list[Finding]:
    """Check everything that a service on SQLite depends on. Wait `lock_wait` ms for a locked database."""
    return [_check_version(), *await _check_file(settings, lock_wait), _check_disk(settings)]


def _check_version() -> Finding:
    """Check for the SQLite bug that makes `SqliteStorage` refuse to start."""
    found = apsw.sqlite_lib_version()
    if tuple(map(int, found.split("."))) >= SOUND_VERSION:
        return ok("sqlite", f"SQLite {found}")
    sound = ".".join(map(str, SOUND_VERSION))
    advice = f"Install apsw {sound} or newer, which includes a fixed SQLite."
    return problem("sqlite", f"SQLite {found} can corrupt a database (WAL-reset bug)", advice)


async def _check_file(settings: Settings, lock_wait: int) -> list[Finding]:
    """Check the database file and, if it can be used, the master key."""
    path = database_file(settings.database_url).absolute()
    if not path.exists():
        if not path.parent.is_dir():
            return [problem("store", f"{path.parent} is not a directory", f"Run: mkdir -p {path.parent}")]
        if not os.access(path.parent, os.W_OK | os.X_OK):
            return [problem("store", f"this user may not write in {path.parent}", _OWNER)]
        return [
            ok("store", f"{path} will be created at the first start"),
            await check_master_key(settings, in_use=False),
        ]
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(lock_wait)
            version = _read_version(connection)
            damage = _find_damage(connection)
        finally:
            connection.close()
    except apsw.Error as error:
        return [_store_problem(path, error, lock_wait)]
    if damage:
        return [problem("store", f"{path} is damaged: {damage}", _RESTORE)]
    if version is None:
        return [problem("store", f"{path} is another program's database", _OTHER_FILE)]
    latest = migrations("sqlite")[-1].version
    if version < latest:
        # Checking the key needs the new schema.
        detail = f"{path} has schema version {version}, and this release has {latest}"
        return [warning("store", detail, "Run: taproof migrate (taproof serve does it automatically).")]
    store = ok("store", f"{path} is intact and writable, schema version {version}")
    if path.stat().st_mode & OTHERS:
        store = warning("store", f"other users of this machine can read {path}", f"Run: chmod 600 {path}")
    return [store, await check_master_key(settings, in_use=True)]


def _store_problem(path: Path, error: apsw.Error, lock_wait: int) -> Finding:
    if isinstance(error, apsw.BusyError):
        detail = f"{path} has been locked by another program for {lock_wait // SECOND} s"
        return problem("store", detail, f"To find that program, run: fuser {path}")
    if isinstance(error, apsw.NotADBError):
        advice = _OTHER_FILE
    elif isinstance(error, apsw.CorruptError):
        advice = _RESTORE
    else:
        advice = _OWNER
    return problem("store", f"{path} cannot be used: {error}", advice)


def _read_version(connection: apsw.Connection) -> int | None:
    """Return the schema version: 0 for an empty file, None for another program's file. Fails if it is not writable."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if "schema_migrations" not in tables:
            return None if tables else 0
        found = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migrations").fetchall()
        return int(str(found[0][0]))
    finally:
        connection.execute("ROLLBACK")


def _find_damage(connection: apsw.Connection) -> str:
    """Return the first finding of SQLite's quick check, "" if there is none or the check would take too long."""
    steps = itertools.count(1)
    connection.set_progress_handler(lambda: next(steps) > _QUICK_CHECK_STEPS, 1_000_000)
    try:
        finding = str(connection.execute("PRAGMA quick_check(1)").fetchall()[0][0])
    except apsw.InterruptError:
        return ""
    return "" if finding == "ok" else " ".join(finding.split())


def _check_disk(settings: Settings) -> Finding:
    """Check the free disk space for the database."""
    directory = database_file(settings.database_url).absolute().parent
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        return problem("disk", f"{directory}: {error.strerror}", "Create the directory, or set another one.")
    detail = f"{free // _MEBIBYTE} MiB free in {directory}"
    if free >= _DISK_WARNING:
        return ok("disk", detail)
    return Finding("disk", "problem" if free < _DISK_PROBLEM else "warning", detail, "Free space on this file system.")
