"""`taproof export` and `taproof import`: an operator moves from one store to another."""

import asyncio
import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import COMMAND, Run, RunJson
from tests.postgres_server import fresh_database
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.runtime.store import open_storage

OLD = ("--database", "sqlite:///taproof.db")
NEW = ("--database", "sqlite:///new.db")


@pytest.fixture
def project_id(project: Any) -> str:
    return str(project["id"])


async def with_signin(database_url: str, key: str, work: Callable[[WholeSignIn], Any]) -> Any:
    storage = await open_storage(database_url)
    try:
        return await work(WholeSignIn(storage, Encryptor(key), lambda: "https://t.me/b", system_clock, system_entropy))
    finally:
        await storage.close()


def start(project_id: str, key: str) -> str:
    """Start a sign-in in taproof.db and have it opened."""

    async def work(signin: WholeSignIn) -> str:
        token = (await signin.create_session(project_id, public=True)).session_token
        assert (await signin.open_session(token, "1001")).outcome == "opened"
        return token

    token: str = asyncio.run(with_signin("sqlite:///taproof.db", key, work))
    return token


def finish(database_url: str, project_id: str, key: str, token: str) -> tuple[str | None, str]:
    """Confirm a sign-in and read it twice; return the proof of the first answer and the status of the second."""

    async def work(signin: WholeSignIn) -> tuple[str | None, str]:
        assert (await signin.confirm_session(token, MessengerIdentity("1001", "Zoë", ""))).changed
        first = await signin.verify_session(project_id, token, public=True)
        return first.proof, (await signin.verify_session(project_id, token, public=True)).status

    ended: tuple[str | None, str] = asyncio.run(with_signin(database_url, key, work))
    return ended


def test_a_sign_in_goes_on_in_the_other_store(run: Run, run_json: RunJson, project_id: str) -> None:
    """A sign-in begins on SQLite, moves, and is confirmed and read once on PostgreSQL.

    The same key decrypts everything.
    """
    key = Path("taproof.db.key").read_text(encoding="ascii").strip()
    token = start(project_id, key)
    exported = run("export", "all.jsonl.gz", *OLD)
    assert exported.exit_code == 0, exported.stderr
    assert "taproof.db.key" in exported.stdout
    with fresh_database() as dsn:
        imported = run("import", "all.jsonl.gz", TAPROOF_DATABASE_URL=dsn, TAPROOF_MASTER_KEY=key)
        assert imported.exit_code == 0, imported.stderr
        assert "sessions\t1" in imported.stdout
        assert "taproof serve" in imported.stdout
        assert "Keep TAPROOF_MASTER_KEY safe" in imported.stdout
        proof, status = finish(dsn, project_id, key, token)
        assert (proof is not None, status) == (True, "used")
        assert run("export", "back.jsonl", TAPROOF_DATABASE_URL=dsn).exit_code == 0
    back = run_json("import", "back.jsonl", *NEW, "--master-key", key)
    assert back["rows"]["user_days"] == 1
    shutil.copy("taproof.db.key", "new.db.key")
    (project,) = run_json("projects", "list", *NEW)["projects"]
    assert (project["id"], project["sessions_count"], project["confirmed_count"]) == (project_id, 1, 1)


def test_an_export_is_its_owners_alone_and_whole(run: Run, project_id: str) -> None:
    """The file has mode 0600 from the beginning, gets its name only when it is complete, and replaces no other file."""
    mask = os.umask(0)
    try:
        assert run("export", "all.jsonl", *OLD).exit_code == 0
    finally:
        os.umask(mask)
    assert Path("all.jsonl").stat().st_mode & 0o777 == 0o600
    before = Path("all.jsonl").read_bytes()
    again = run("export", "all.jsonl", *OLD)
    assert again.exit_code == 1
    assert "all.jsonl already exists" in again.stderr
    assert Path("all.jsonl").read_bytes() == before
    header = json.loads(before.splitlines()[0])
    assert (header["format"], header["version"], header["created_at"][-1]) == ("taproof-export", 1, "Z")
    assert header["tables"]["metadata"] == ["name", "value"]
    assert run("export", "all.jsonl.gz", *OLD).exit_code == 0
    assert gzip.decompress(Path("all.jsonl.gz").read_bytes()).splitlines()[1:-1] == before.splitlines()[1:-1]
    assert sorted(each.name for each in Path().iterdir() if "all" in each.name) == ["all.jsonl", "all.jsonl.gz"]


def test_no_secret_is_in_the_file_in_the_clear(run: Run, run_json: RunJson) -> None:
    """The file contains only hashes and encrypted values, so the master key must be moved separately."""
    token = run_json("developers", "add", "ada@example.com")["access_token"]
    created = run_json("projects", "create", "Shop")
    assert run("export", "all.jsonl", *OLD).exit_code == 0
    text = Path("all.jsonl").read_text(encoding="ascii")
    assert created["id"] in text
    key = Path("taproof.db.key").read_text(encoding="ascii").strip()
    for secret in (token, created["secret_key"], created["webhook_secret"], created["webhook_secret"][6:], key):
        assert secret not in text


def test_a_missing_or_wrong_master_key_is_refused(run: Run, project_id: str) -> None:
    """The sentence names the right key's place; nothing is imported until the right key is given."""
    run("export", "all.jsonl", *OLD)
    without = run("import", "all.jsonl", *NEW)
    assert without.exit_code == 1
    assert "taproof.db" not in without.stderr
    assert f"{Path('new.db.key').absolute()}" in without.stderr
    assert "TAPROOF_MASTER_KEY" in without.stderr
    assert not Path("new.db.key").exists()
    wrong = run("import", "all.jsonl", *NEW, "--master-key", new_master_key(system_entropy))
    assert wrong.exit_code == 1
    assert "not the master key of the exported database" in wrong.stderr
    shutil.copy("taproof.db.key", "new.db.key")
    assert run("import", "all.jsonl", *NEW).exit_code == 0
    assert run("projects", "list", *NEW).stdout.splitlines()[1].startswith(project_id)


def test_a_used_database_is_not_imported_into(run: Run, run_json: RunJson, project_id: str) -> None:
    """Neither a second import nor one into a database in use is accepted."""
    run("export", "all.jsonl", *OLD)
    again = run("import", "all.jsonl", *OLD)
    assert again.exit_code == 1
    assert "is not empty" in again.stderr
    run_json("developers", "add", "bob@example.com", *NEW)
    assert run("import", "all.jsonl", *NEW).exit_code == 1
    assert len(run_json("developers", "list", *NEW)["developers"]) == 1


def test_a_damaged_file_is_refused_before_a_database_is_made(run: Run, project_id: str) -> None:
    """Another kind of file, a truncated file and a truncated archive each end with one sentence."""
    run("export", "all.jsonl.gz", *OLD)
    whole = Path("all.jsonl.gz").read_bytes()
    for name, damaged, says in (
        ("a.gz", whole[: len(whole) // 2], "the file cannot be read"),
        ("b", gzip.decompress(whole)[:-50], "it was cut off"),
        ("c", b"SQLite format 3\0", "this is not an export of Taproof"),
    ):
        Path(name).write_bytes(damaged)
        result = run("import", name, *NEW, "--master-key", Path("taproof.db.key").read_text(encoding="ascii"))
        assert result.exit_code == 1
        assert says in result.stderr
        assert "Nothing was imported" in result.stderr
        assert result.stderr.count("\n") == 1
    missing = run("import", "none.jsonl", *NEW)
    assert (missing.exit_code, missing.stderr) == (1, "none.jsonl: No such file or directory.\n")


def test_a_failed_export_leaves_nothing(run: Run) -> None:
    """A failed export leaves no file under any name."""
    Path("taproof.db").write_bytes(b"not a database" * 1_000)
    result = run("export", "all.jsonl", *OLD)
    assert result.exit_code == 1
    assert "The database taproof.db cannot be read" in result.stderr
    assert [each.name for each in Path().iterdir()] == ["taproof.db"]


def test_a_pipe_carries_it_too(project_id: str) -> None:
    """`-` works at both ends; messages for people are not written to the stream."""
    shutil.copy("taproof.db.key", "new.db.key")
    exported = subprocess.run([*COMMAND, "export", "-", *OLD], check=True, capture_output=True)
    assert exported.stderr == b""
    imported = subprocess.run([*COMMAND, "import", "-", *NEW], check=True, input=exported.stdout, capture_output=True)
    assert b"\nImported " in imported.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_is_told_as_such(project_id: str) -> None:
    """A full disk is not reported as a problem of the database."""
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*COMMAND, "export", "-", *OLD], check=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 1
    assert result.stderr == b"Standard output cannot be written: No space left on device. Nothing was exported.\n"


def test_a_sandbox_stays_one(run: Run, run_json: RunJson) -> None:
    """The mode is exported too, and the final advice matches it."""
    run_json("developers", "add", "ada@example.com", "--sandbox")
    run_json("projects", "create", "Shop", "--sandbox")
    exported = run_json("export", "all.jsonl", "--sandbox")
    assert exported["file"] == "all.jsonl"
    assert sum(exported["rows"].values()) == len(Path("all.jsonl").read_bytes().splitlines()) - 2
    shutil.copy("taproof-sandbox.db.key", "new.db.key")
    imported = run("import", "all.jsonl", *NEW)
    assert "taproof serve --sandbox" in imported.stdout
    refused = run("projects", "list", *NEW)
    assert refused.exit_code == 1
    assert "sandbox mode" in refused.stderr
