"""`taproof backup` and `taproof restore`: files are complete or absent, and a database is the old or the new one."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.cli.conftest import COMMAND, Run, RunJson
from tests.waiting import wait_until

from taproof.core.encryption import new_master_key
from taproof.core.entropy import system_entropy


@pytest.fixture
def database(project: object) -> Path:  # The project is in it.
    return Path("taproof.db")


def emails(file: Path = Path("taproof.db")) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return [email for (email,) in connection.execute("SELECT email FROM developers ORDER BY email")]


def fill(file: Path, mebibytes: int) -> None:
    """Add rows, so that a copy takes long enough to be interrupted."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for number in range(mebibytes):
            connection.execute("INSERT INTO metadata VALUES (?, zeroblob(1048576))", (f"filler {number}",))


def own_files(directory: Path = Path()) -> set[str]:
    return {each.name for each in directory.iterdir()}


def test_a_backup_is_restored(run: Run, run_json: RunJson, database: Path) -> None:
    """The copy is complete and private, names the key's place, and restores the database as of the backup."""
    answer = run_json("backup", "copy.db")
    assert answer["rows"]["projects"] == 1
    assert answer["size"] == Path("copy.db").stat().st_size
    assert answer["master_key_file"] == str(Path("taproof.db.key").absolute())
    assert Path("copy.db").stat().st_mode & 0o777 == 0o600
    assert "taproof.db.key" in run("backup", "copy.db", "--force").stdout
    assert own_files() == {"taproof.db", "taproof.db.key", "copy.db"}

    run_json("developers", "add", "late@example.com")
    assert emails() == ["ada@example.com", "late@example.com"]
    refused = run("restore", "copy.db")
    assert (refused.exit_code, "--force" in refused.stderr) == (1, True)
    assert emails() == ["ada@example.com", "late@example.com"]
    assert run_json("restore", "copy.db", "--force")["rows"]["developers"] == 1
    assert emails() == ["ada@example.com"]
    for file in database, Path("taproof.db-wal"), Path("taproof.db-shm"):
        file.unlink(missing_ok=True)
    assert run_json("restore", "copy.db")["under_other_keys"] == 0
    assert database.stat().st_mode & 0o777 == 0o600
    assert [each["name"] for each in run_json("projects", "list")["projects"]] == ["Shop 🛒"]


def test_a_backup_is_one_moment_of_a_database_in_use(run_json: RunJson, database: Path) -> None:
    """Each write adds two rows in one transaction during the backups, and no copy has one row without the other."""
    fill(database, 8)
    stopping = threading.Event()

    def write() -> None:
        # Not `sqlite3`: two SQLite libraries in one process release each other's locks, and one would crash the other.
        with closing(apsw.Connection(str(database))) as connection:
            connection.set_busy_timeout(60_000)
            number = 0
            # The pause lets the backup have its turn: SQLite has no queue for locks.
            while not stopping.wait(0.001):
                number += 1
                with connection:
                    connection.execute("INSERT INTO metadata VALUES (?, x'00')", (f"left {number}",))
                    connection.execute("INSERT INTO leases VALUES (?, '', 0)", (f"right {number}",))

    writer = threading.Thread(target=write)
    writer.start()
    counts = []
    try:
        for number in range(3):
            run_json("backup", f"copy{number}.db")
            with closing(sqlite3.connect(f"copy{number}.db")) as copy:
                left = copy.execute("SELECT COUNT(*) FROM metadata WHERE name LIKE 'left %'").fetchone()[0]
                assert left == copy.execute("SELECT COUNT(*) FROM leases").fetchone()[0]
            counts.append(left)
    finally:
        stopping.set()
        writer.join()
    assert counts[0] < counts[-1]


def killed_when(arguments: list[str], seen: Callable[[], object]) -> int:
    """Run a command and kill it as soon as `seen()` is true; return its exit code."""
    process = subprocess.Popen([*COMMAND, *arguments])
    wait_until(lambda: seen() or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    return process.wait()


def test_a_killed_backup_leaves_nothing_under_the_name(run_json: RunJson, database: Path) -> None:
    """The earlier backup remains, and the next one succeeds."""
    run_json("backup", "copy.db")
    fill(database, 64)
    before = Path("copy.db").read_bytes()
    code = killed_when(["backup", "copy.db", "--force"], lambda: list(Path().glob(".copy.db.*")))
    assert code == -signal.SIGKILL
    assert Path("copy.db").read_bytes() == before
    assert run_json("backup", "copy.db", "--force")["rows"]["metadata"] > 64


def test_a_killed_restore_leaves_the_old_database(run: Run, run_json: RunJson, database: Path) -> None:
    """The remaining journal undoes the unfinished restore when the file is opened next."""
    run_json("backup", "copy.db")
    run_json("developers", "add", "late@example.com")
    fill(Path("copy.db"), 64)
    fill(database, 16)
    journal = Path("taproof.db-journal")
    code = killed_when(
        ["restore", "copy.db", "--force"], lambda: journal.exists() and database.stat().st_size > 20 << 20
    )
    assert code == -signal.SIGKILL
    listed = run_json("developers", "list")["developers"]
    assert [each["email"] for each in listed] == ["ada@example.com", "late@example.com"]
    assert run("restore", "copy.db", "--force").exit_code == 0
    assert emails() == ["ada@example.com"]


def test_unusable_files_change_nothing(run: Run, run_json: RunJson, database: Path) -> None:
    """Damaged, foreign, newer and missing files, wrong and missing keys, and the database itself are refused.

    A further index, which an operator may add, is accepted.
    """
    run_json("backup", "copy.db")
    pages = bytearray(Path("copy.db").read_bytes())
    pages[len(pages) // 2 : len(pages) // 2 + 20_000] = os.urandom(20_000)
    Path("damaged.db").write_bytes(pages)
    Path("short.db").write_bytes(Path("copy.db").read_bytes()[:50_000])
    Path("text.db").write_text("not a database\n" * 1_000, encoding="ascii")
    with closing(sqlite3.connect("foreign.db")) as connection, connection:
        connection.execute("CREATE TABLE metadata (name, value)")
    shutil.copy("copy.db", "newer.db")
    with closing(sqlite3.connect("newer.db")) as connection, connection:
        connection.execute("INSERT INTO schema_migrations VALUES (9999, 'later', '', '')")
    shutil.copy("copy.db", "changed.db")
    with closing(sqlite3.connect("changed.db")) as connection, connection:
        connection.execute("UPDATE schema_migrations SET checksum = 'other'")
    # The schema differs from what the migrations create, although they are recorded.
    for name, statement in (
        ("trigger", "CREATE TRIGGER hostile AFTER INSERT ON metadata BEGIN DELETE FROM developers; END"),
        ("dropped", "DROP TABLE project_members"),
    ):
        shutil.copy("copy.db", f"{name}.db")
        with closing(sqlite3.connect(f"{name}.db")) as connection, connection:
            connection.execute(statement)
    shutil.copy("copy.db", "indexed.db")
    with closing(sqlite3.connect("indexed.db")) as connection, connection:
        connection.execute("CREATE INDEX by_name ON developers (messenger_name)")
    own_key = {"TAPROOF_MASTER_KEY": Path("taproof.db.key").read_text(encoding="utf-8").strip()}
    assert run("restore", "indexed.db", "--database", "sqlite:///other.db", **own_key).exit_code == 0
    before = database.read_bytes()
    other_key = {"TAPROOF_MASTER_KEY": new_master_key(system_entropy)}
    cases: list[tuple[str, dict[str, str], str]] = [
        ("damaged.db", {}, "damaged.db"),
        ("short.db", {}, "short.db"),
        ("text.db", {}, "text.db cannot be read"),
        ("foreign.db", {}, "is no database of Taproof"),
        ("newer.db", {}, "schema version 9999"),
        ("changed.db", {}, "has changed"),
        ("trigger.db", {}, "Compare in it: hostile."),
        ("dropped.db", {}, "project_members"),
        ("missing.db", {}, "There is no file missing.db"),
        ("taproof.db", {}, "is the database itself"),
        ("copy.db", other_key, "not the master key of the backup"),
        ("copy.db", {"TAPROOF_SANDBOX": "1", "TAPROOF_DATABASE_URL": "sqlite:///taproof.db"}, "omit --sandbox"),
    ]
    wrong = []
    for file, environment, sentence in cases:
        result = run("restore", file, "--force", **environment)
        if result.exit_code != 1 or sentence not in result.stderr or database.read_bytes() != before:
            wrong.append((file, environment, result.exit_code, result.stderr))
    assert wrong == []
    Path("taproof.db.key").rename("kept.key")
    assert "Provide the master key" in run("restore", "copy.db", "--force").stderr
    assert database.read_bytes() == before


def test_nothing_is_overwritten(run: Run, run_json: RunJson, database: Path) -> None:
    """An existing file needs --force, the database's own files are always refused, and old logs are not applied."""
    run_json("backup", "copy.db")
    before = database.read_bytes(), Path("taproof.db.key").read_bytes()
    assert "already exists" in run("backup", "copy.db").stderr
    Path("link.db").symlink_to("taproof.db")
    Path("taproof.db.hard").hardlink_to("taproof.db.key")
    absent = "taproof.db.token", "taproof.db-wal", "taproof.db-journal"
    for own in "taproof.db", "taproof.db.key", "./taproof.db", "link.db", "taproof.db.hard", *absent:
        assert "belongs to the database itself" in run("backup", own, "--force").stderr
    assert (database.read_bytes(), Path("taproof.db.key").read_bytes()) == before
    assert "cannot be written" in run("backup", "no/such/place.db").stderr
    database.unlink()
    Path("taproof.db-wal").write_bytes(b"the log of another database")
    assert "taproof.db-wal" in run("restore", "copy.db").stderr
    assert not database.exists()


def test_a_damaged_database_is_moved_first(run: Run, run_json: RunJson, database: Path) -> None:
    """SQLite cannot replace the content of a file that is not a database."""
    run_json("backup", "copy.db")
    database.write_bytes(b"no database" * 1_000)
    result = run("restore", "copy.db", "--force")
    assert "Move it out of the directory" in result.stderr
    database.unlink()
    assert run("restore", "copy.db").exit_code == 0
    assert emails() == ["ada@example.com"]


def test_a_database_in_use_is_not_restored(run: Run, run_json: RunJson, database: Path) -> None:
    """Another process has the database open, as a service does, even if it writes nothing."""
    run_json("backup", "copy.db")
    run_json("developers", "add", "late@example.com")
    code = (
        "import sqlite3, sys; c = sqlite3.connect('taproof.db'); c.execute('SELECT * FROM leases'); "
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        service.stdout.readline()
        result = run("restore", "copy.db", "--force")
        assert (result.exit_code, "Stop the service" in result.stderr) == (1, True)
        assert emails() == ["ada@example.com", "late@example.com"]
        service.communicate()
    assert run("restore", "copy.db", "--force").exit_code == 0


def test_postgresql_has_its_own_tools(run: Run) -> None:
    """Both commands refuse and name them, without a connection."""
    for arguments in ["backup", "copy.db"], ["restore", "copy.db", "--force"]:
        result = run(*arguments, "--database", "postgresql://ada:secret-5c1b@127.0.0.1:1/taproof")
        assert result.exit_code == 1
        assert "pg_dump" in result.stderr
        assert "docs/how-to/backup.md" in result.stderr
