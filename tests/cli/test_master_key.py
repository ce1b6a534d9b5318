"""`taproof master-key`: an operator rotates the master key, with and without a key file."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.cli.conftest import Run, RunJson
from tests.docs.blocks import block_of
from tests.postgres_server import fresh_database
from typer.testing import Result

from taproof.core.encryption import Encryptor, associated_data_of, new_master_key
from taproof.core.entropy import system_entropy
from taproof.runtime import key_rotation
from taproof.runtime.key_file import held_key_file, read_master_keys, write_master_keys
from taproof.service import reencryption
from taproof.storage.queries.encrypted_values import EncryptedKind

PAGE = "how-to/rotate-the-master-key.md"
KEY_FILE = Path("taproof.db.key")
OLD, NEW, OTHER = (new_master_key(system_entropy) for _ in range(3))


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_rotation, "SETTLE_SECONDS", 0.0)


def encrypted_secret(project: Any, database: str = "taproof.db") -> bytes:
    connection = apsw.Connection(database)
    try:
        found = connection.execute("SELECT encrypted_webhook_secret FROM projects WHERE id = ?", (project["id"],))
        encrypted: Any = found.fetchall()[0][0]
        return bytes(encrypted)
    finally:
        connection.close()


def opens(key: str, project: Any) -> bool:
    encryptor = Encryptor(key)
    encrypted = encrypted_secret(project)
    return (
        encryptor.knows(encrypted)
        and encryptor.decrypt(encrypted, associated_data_of("webhook_secret", project["id"]))
        == (project["webhook_secret"])
    )


def master_key_finding(run: Run, **environment: str) -> dict[str, str]:
    report = json.loads(run("doctor", "--json", **environment).stdout)
    (found,) = [check for check in report["checks"] if check["name"] == "master key"]
    assert isinstance(found, dict)
    return found


# ---- rotate, with the key file


def test_rotate_puts_a_new_key_in_the_place_of_the_old_one(run: Run, project: Any) -> None:
    """After one command, the file has only the new key, and everything decrypts with it. No key is printed."""
    (old,) = read_master_keys(KEY_FILE)
    assert opens(old, project)
    result = run("master-key", "rotate")
    assert result.exit_code == 0, result.output
    (new,) = read_master_keys(KEY_FILE)
    assert new != old
    assert opens(new, project)
    assert not opens(old, project)
    assert str(KEY_FILE.absolute()) in result.stdout
    assert "Back up" in result.stdout
    assert "Created a new key" in result.stderr
    assert "Waiting" in result.stderr
    assert old not in result.output
    assert new not in result.output
    assert master_key_finding(run)["status"] == "ok"


def test_rotate_as_json(run_json: RunJson, project: Any) -> None:
    """With --json, the output counts the re-encrypted values: the secret and the check of the key."""
    answer = run_json("master-key", "rotate")
    assert answer == {
        "key_file": str(KEY_FILE.absolute()),
        "taken_up": False,
        "resealed": 2,
        "left": 0,
        "unreadable": 0,
    }
    assert run_json("master-key", "rotate")["resealed"] == 2


def test_rotate_takes_up_what_was_interrupted(run: Run, run_json: RunJson, project: Any) -> None:
    """If the file has two keys, the first is the new one and no third is created.

    Until then, the doctor says what to do.
    """
    (old,) = read_master_keys(KEY_FILE)
    write_master_keys(KEY_FILE, [NEW, old])
    finding = master_key_finding(run)
    assert finding["status"] == "warning"
    assert "2 keys" in finding["detail"]
    assert "taproof master-key rotate" in finding["advice"]
    answer = run_json("master-key", "rotate")
    assert (answer["taken_up"], answer["resealed"]) == (True, 2)
    assert read_master_keys(KEY_FILE) == [NEW]
    assert opens(NEW, project)


def test_rotate_tells_of_what_does_not_open(run: Run, run_json: RunJson, project: Any) -> None:
    """Two swapped secrets stay invalid and are named, and the rotation completes."""
    other = run_json("projects", "create", "Other")
    connection = apsw.Connection("taproof.db")
    first, second = encrypted_secret(project), encrypted_secret(other)
    for project_id, encrypted in ((project["id"], second), (other["id"], first)):
        connection.execute("UPDATE projects SET encrypted_webhook_secret = ? WHERE id = ?", (encrypted, project_id))
    connection.close()
    result = run("master-key", "rotate")
    assert result.exit_code == 0, result.output
    assert "2 values cannot be decrypted" in result.stdout
    for each in (project, other):
        assert f"webhook_secret of {each['id']}" in result.stdout
    assert encrypted_secret(project) == second
    assert len(read_master_keys(KEY_FILE)) == 1


def test_rotate_keeps_the_old_key_while_something_encrypts_under_it(
    run: Run, project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older process that does not read the file may still encrypt with the old key; its values stay readable."""
    (old,) = read_master_keys(KEY_FILE)
    encrypted = encrypted_secret(project)
    walk = reencryption.Reencryptor._walk

    async def beside(self: reencryption.Reencryptor, kind: EncryptedKind) -> None:
        """Yield from the walk, and put the old value back as soon as it was replaced."""
        await walk(self, kind)
        connection = apsw.Connection("taproof.db")
        connection.execute("UPDATE projects SET encrypted_webhook_secret = ?", (encrypted,))
        connection.close()

    monkeypatch.setattr(reencryption.Reencryptor, "_walk", beside)
    result = run("master-key", "rotate")
    assert result.exit_code == 1
    assert "runs this release" in result.stderr
    assert len(keys := read_master_keys(KEY_FILE)) == 2
    assert keys[1] == old
    assert opens(old, project)


def test_rotate_beside_another_rotation_is_refused(run: Run, project: Any) -> None:
    """The second rotation changes nothing and says so in one sentence."""
    before = read_master_keys(KEY_FILE)
    with held_key_file(KEY_FILE):
        result = run("master-key", "rotate")
    assert result.exit_code == 1
    assert "Another command is rotating" in result.stderr
    assert read_master_keys(KEY_FILE) == before


# ---- with TAPROOF_MASTER_KEY


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield "sqlite:///taproof.db"
        return
    with fresh_database() as dsn:
        yield dsn


def with_key(run: Run, database: str, key: str, *arguments: str) -> Result:
    return run(*arguments, TAPROOF_DATABASE_URL=database, TAPROOF_MASTER_KEY=key)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_rotate_says_what_to_do_with_a_key_in_the_environment(run: Run, database: str) -> None:
    """The command prints the steps in order, changes nothing, and does not print the key."""
    assert with_key(run, database, OLD, "developers", "add", "ada@example.com").exit_code == 0
    result = with_key(run, database, OLD, "master-key", "rotate")
    assert result.exit_code == 1
    steps = [line for line in result.stderr.splitlines() if line[:2].rstrip(".").isdigit()]
    assert [line[0] for line in steps] == list("12345")
    assert "OLD,NEW" in steps[1]
    assert "NEW,OLD" in steps[2]
    assert "taproof master-key reseal" in steps[3]
    assert OLD not in result.output
    assert not KEY_FILE.exists()


def test_the_steps_of_a_rotation_with_the_environment(run: Run, database: str) -> None:
    """On both stores, each step works on the result of the one before.

    At the end, the old key is not needed any more.
    """
    for arguments in (
        ("developers", "add", "ada@example.com"),
        ("projects", "create", "Shop"),
    ):
        assert with_key(run, database, OLD, *arguments).exit_code == 0
    for key in (f"{OLD},{NEW}", f"{NEW},{OLD}"):
        result = with_key(run, database, key, "projects", "create", "Another", "--json")
        assert result.exit_code == 0, result.stderr
        finding = master_key_finding(run, TAPROOF_DATABASE_URL=database, TAPROOF_MASTER_KEY=key)
        assert "2 keys" in finding["detail"]
    assert finding["status"] == "warning"
    assert "taproof master-key reseal" in finding["advice"]
    # Too early without the old one.
    assert "master key" in with_key(run, database, NEW, "projects", "create", "X").stderr
    result = with_key(run, database, f"{NEW},{OLD}", "master-key", "reseal")
    assert result.exit_code == 0, result.stderr
    # Two secrets under the old key, and the check; the third was made by a command that had the new one first.
    assert "Encrypted 3 values again" in result.stdout
    assert "the new key only" in result.stdout
    assert NEW not in result.output
    finding = master_key_finding(run, TAPROOF_DATABASE_URL=database, TAPROOF_MASTER_KEY=f"{NEW},{OLD}")
    assert finding["status"] == "ok"
    result = with_key(run, database, NEW, "master-key", "reseal", "--json")
    assert json.loads(result.stdout) == {"keys": 1, "resealed": 0, "left": 0, "unreadable": 0}
    assert with_key(run, database, NEW, "projects", "create", "Last").exit_code == 0
    assert with_key(run, database, OLD, "projects", "create", "X").exit_code == 1


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_reseal_says_when_an_older_key_is_still_needed(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a node still encrypts with the older key, the exit code is 1.

    The advice is to keep the key, and its values stay readable.
    """
    with_key(run, database, OLD, "developers", "add", "ada@example.com")
    with_key(run, database, OLD, "projects", "create", "Shop")
    monkeypatch.setattr(reencryption, "PASSES", 1)
    result = with_key(run, database, f"{NEW},{OLD}", "master-key", "reseal", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["left"] == 2
    assert "Keep that key" in result.stderr


def test_reseal_leaves_a_key_file_to_rotate(run: Run, project: Any) -> None:
    """Each kind of installation has its own command, and each command names the other."""
    result = run("master-key", "reseal")
    assert result.exit_code == 1
    assert "taproof master-key rotate" in result.stderr


# ---- the page about it


@pytest.mark.parametrize(
    ("part", "environment"),
    [
        ("master-key rotate", {}),
        ("openssl", {}),
        ("master-key reseal", {"TAPROOF_MASTER_KEY": f"{NEW},{OLD}"}),
    ],
)
def test_the_commands_of_the_page(part: str, environment: dict[str, str], run: Run) -> None:
    """Each command does what how-to/rotate-the-master-key.md says; the created value is a valid master key."""
    (command,) = [line.removeprefix("$ ") for line in block_of(PAGE, "console", part).text.splitlines()]
    if not command.startswith("taproof "):
        made = subprocess.run(command.split(), capture_output=True, check=True, text=True).stdout
        assert Encryptor(made).key_count == 1
        return
    assert run("developers", "add", "ada@example.com", **environment).exit_code == 0
    assert run("projects", "create", "Shop", **environment).exit_code == 0
    result = run(*command.split()[1:], **environment)
    assert result.exit_code == 0, result.stderr


# ---- moving house during a rotation


def test_an_import_tells_of_values_under_a_key_that_was_not_given(run: Run, run_json: RunJson, project: Any) -> None:
    """An export made during a rotation needs both keys: with one of them, the import names what is missing."""
    (old,) = read_master_keys(KEY_FILE)
    write_master_keys(KEY_FILE, [NEW, old])
    run_json("projects", "create", "Under the new key")
    assert run("export", "all.jsonl").exit_code == 0
    into = ("--database", "sqlite:///new.db", "import", "all.jsonl")
    both = run(*into[2:], *into[:2], "--json", TAPROOF_MASTER_KEY=f"{NEW},{old}")
    assert both.exit_code == 0, both.stderr
    assert json.loads(both.stdout)["under_other_keys"] == 0
    one = run("import", "all.jsonl", "--database", "sqlite:///other.db", TAPROOF_MASTER_KEY=old)
    assert one.exit_code == 0, one.stderr
    assert "1 imported values are encrypted under another key" in one.stdout
    none = run("import", "all.jsonl", "--database", "sqlite:///third.db", TAPROOF_MASTER_KEY=OTHER)
    assert none.exit_code == 1
