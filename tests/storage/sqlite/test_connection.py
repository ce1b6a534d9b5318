"""Opening a file that another process has locked."""

import threading
from pathlib import Path

import apsw

from taproof.storage.sqlite.connection import migrate_database, open_connections


def test_opening_waits_until_another_process_has_closed_the_file(tmp_path: Path) -> None:
    """The last process that closes a file locks it for a moment. Opening it meanwhile waits instead of failing."""
    path = tmp_path / "a.db"
    migrate_database(path, 1)
    last = apsw.Connection(str(path))
    last.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").fetchall()
    closing = threading.Timer(0.3, last.close)
    closing.start()
    for connection in open_connections(path):
        assert connection.execute("SELECT COUNT(*) FROM projects").fetchall() == [(0,)]
        connection.close()
    closing.join()
