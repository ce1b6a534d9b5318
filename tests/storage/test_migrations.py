"""Migrations: forward only, with checksums, under a lock; and the checks of the file that the driver opens."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest

from taproof.core.errors import StoreUnavailable
from taproof.storage import migrate
from taproof.storage.migrate import Migration, MigrationChanged, migrations
from taproof.storage.sqlite.connection import SqliteTooOld, migrate_database, open_connections
from taproof.storage.sqlite.store import SqliteStorage

NOW = 1_795_214_643_127
LATEST = len(migrations("sqlite"))


def with_migrations(monkeypatch: pytest.MonkeyPatch, *steps: Migration) -> None:
    """Let the code under test find exactly these migrations."""
    monkeypatch.setattr(migrate, "migrations", lambda _driver: list(steps))


def test_the_packaged_migrations_are_found_and_numbered_without_gaps() -> None:
    """The migrations are package data, so an installed wheel must contain them too."""
    found = migrations("sqlite")
    assert [migration.version for migration in found] == list(range(1, LATEST + 1))
    assert all("CREATE" in migration.sql for migration in found[:1])
    assert migrations("unknown") == []


def test_a_new_database_is_made_for_its_owner_only(tmp_path: Path) -> None:
    """The file contains personal data, so it and SQLite's other files have mode 0600, whatever the umask."""
    old = os.umask(0)
    try:
        assert migrate_database(tmp_path / "a.db", NOW) == (0, LATEST)
        keeper = apsw.Connection(str(tmp_path / "a.db"))
        keeper.execute("CREATE TABLE t (x)")
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        keeper.close()
    finally:
        os.umask(old)
    assert modes == {"a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600}
    assert migrate_database(tmp_path / "a.db", NOW + 1) == (LATEST, LATEST)


def test_steps_are_applied_whole_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is one transaction with its time and checksum. With another history, nothing is applied."""
    path = tmp_path / "a.db"
    first, second = Migration(1, "one", "CREATE TABLE one (x)"), Migration(2, "two", "CREATE TABLE two (x)")
    with_migrations(monkeypatch, Migration(1, "one", f"{first.sql}; CREATE TABLE broken ("))
    with pytest.raises(StoreUnavailable):
        migrate_database(path, NOW)
    with_migrations(monkeypatch, first)
    assert migrate_database(path, NOW) == (0, 1)
    with_migrations(monkeypatch, Migration(1, "one", "CREATE TABLE one (x, y)"), second)
    with pytest.raises(MigrationChanged):
        migrate_database(path, NOW)
    with_migrations(monkeypatch, first, second)
    assert migrate_database(path, NOW + 5) == (1, 2)
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT * FROM schema_migrations").fetchall() == [
        (1, "one", first.checksum, "2026-11-20T22:44:03.127Z"),
        (2, "two", second.checksum, "2026-11-20T22:44:03.132Z"),
    ]
    connection.close()


async def test_a_newer_schema_is_left_as_it_is(tmp_path: Path) -> None:
    """Old code runs on the new schema during a rolling deploy."""
    migrate_database(tmp_path / "a.db", NOW)
    newer = apsw.Connection(str(tmp_path / "a.db"))
    newer.execute("INSERT INTO schema_migrations VALUES (9000, 'later', 'checksum', '2030'); CREATE TABLE later (x)")
    newer.close()
    assert migrate_database(tmp_path / "a.db", NOW) == (9000, 9000)
    store = SqliteStorage.open(tmp_path / "a.db", NOW)
    assert await store.metadata.claim_mark("works", b"yes") == b"yes"
    await store.close()


def test_processes_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    """On four nodes with one new file, one node applies each step, and the others wait for it."""
    program = (
        "import sys; from pathlib import Path; from taproof.storage.sqlite.connection import migrate_database\n"
        "sys.stdin.readline(); print(migrate_database(Path(sys.argv[1]), 0))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a.db")]
    nodes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for node in nodes:
        assert node.stdin is not None
        node.stdin.write("go\n")
        node.stdin.flush()
    answers = [node.communicate(timeout=60) for node in nodes]
    assert [errors for _, errors in answers] == [""] * 4
    before = [answer.removesuffix(f", {LATEST})\n") for answer, _ in answers]
    assert before.count("(0") == 1
    assert set(before) <= {f"({version}" for version in range(LATEST + 1)}


def test_what_cannot_be_a_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """The sentence names the file and what to do. The existing file is not changed, and no directory is created."""
    text, link, missing = tmp_path / "text.db", tmp_path / "link.db", tmp_path / "missing" / "a.db"
    text.write_bytes(content := b"This is no database, but a text that somebody put here." * 100)
    link.symlink_to(tmp_path / "nowhere" / "a.db")
    for path in (tmp_path, text, link):
        with pytest.raises(
            StoreUnavailable, match=rf"{path.name} cannot be opened for writing: .*TAPROOF_DATABASE_URL"
        ):
            SqliteStorage.open(path, NOW)
    with pytest.raises(StoreUnavailable, match="directory"):
        SqliteStorage.open(missing, NOW)
    assert (text.read_bytes(), missing.parent.exists()) == (content, False)


def test_an_unsound_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The WAL-reset bug can corrupt a database, so the start fails without creating the file."""
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(SqliteTooOld):
        SqliteStorage.open(tmp_path / "a.db", NOW)
    assert list(tmp_path.iterdir()) == []


async def test_the_connections_are_set_up_for_durability(sqlite: SqliteStorage) -> None:
    """The writer uses full synchronisation and WAL; the readers are read-only."""
    writer, reader = sqlite.database.writer.connection, sqlite.database.reader
    assert writer.pragma("journal_mode") == "wal"
    assert writer.pragma("synchronous") == 2
    assert writer.pragma("wal_autocheckpoint") == 2000
    assert writer.pragma("journal_size_limit") == 64 * 1024 * 1024
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("DELETE FROM sessions")


@pytest.mark.parametrize("size", [0, 100, 5_000])
def test_a_database_cut_off_before_its_first_commit_is_begun_again(tmp_path: Path, size: int) -> None:
    """The next start after such a kill accepts an empty file, or one with a torn WAL."""
    path = tmp_path / "taproof.db"
    path.touch(mode=0o600)
    if size:
        (tmp_path / "taproof.db-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\0" * size)
    assert migrate_database(path, 0) == (0, len(migrations("sqlite")))


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
