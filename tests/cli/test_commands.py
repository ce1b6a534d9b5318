"""The effect, output and exit code of each command, on a real SQLite file."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, Run, RunJson

from taproof.core.identifiers import is_key


def test_a_new_developer_gets_one_access_token_once(run: Run, run_json: RunJson) -> None:
    """`developers add` prints the token; no later command shows more of it than a preview."""
    added = run_json("developers", "add", "ada@example.com", "--plan", "pro")
    assert added.keys() == {"id", "email", "created_at", "plan", "access_token"}
    assert added["plan"] == "pro"
    assert is_key(added["access_token"], "tap")
    listed = run_json("developers", "list")
    shown = {name: added[name] for name in ("id", "email", "created_at", "plan")}
    assert listed == {"developers": [shown | {"is_owner": True, "messenger_id": None, "messenger_name": ""}]}
    (token,) = run_json("tokens", "list")["tokens"]
    assert token["name"] == "command line"
    assert added["access_token"] not in json.dumps([listed, token])
    assert run("developers", "add", "ada@example.com").exit_code == 1
    assert len(run_json("tokens", "list")["tokens"]) == 1


def test_the_first_developer_is_the_owner(run: Run, run_json: RunJson) -> None:
    """The owner can invite other developers; a developer who is added later is not an owner."""
    for name in ("ada", "bob"):
        run_json("developers", "add", f"{name}@example.com")
    owners = {each["email"]: each["is_owner"] for each in run_json("developers", "list")["developers"]}
    assert owners == {"ada@example.com": True, "bob@example.com": False}
    columns, ada, bob = (line.split("\t") for line in run("developers", "list").stdout.splitlines())
    assert columns == ["email", "plan", "owner", "messenger account", "created", "id"]
    assert (ada[2:4], bob[2:4]) == (["yes", ""], ["no", ""])


def test_tokens_are_made_listed_and_revoked(run: Run, run_json: RunJson) -> None:
    """A developer who lost a token gets another, with a name and an expiry; only its developer can revoke a token."""
    run_json("developers", "add", "ada@example.com")
    run_json("developers", "add", "bob@example.com")
    ada = ("--developer", "ADA@example.com")
    created = run_json("tokens", "create", *ada, "--name", "CI", "--expires-days", "30")
    assert is_key(created["access_token"], "tap")
    assert created["expires_at"] > created["created_at"]
    assert [token["name"] for token in run_json("tokens", "list", *ada)["tokens"]] == ["CI", "command line"]
    assert run("tokens", "revoke", "--developer", "bob@example.com", created["id"], "--yes").exit_code == 1
    assert run_json("tokens", "revoke", *ada, created["id"], "--yes") == {"deleted": True}
    again = run("tokens", "revoke", *ada, created["id"], "--yes")
    assert (again.exit_code, again.stderr.startswith("There is no such access token.")) == (1, True)
    assert [token["name"] for token in run_json("tokens", "list", *ada)["tokens"]] == ["command line"]


@pytest.mark.usefixtures("project")
def test_the_master_key_is_made_once_beside_the_database(tmp_path: Path, run: Run, run_json: RunJson) -> None:
    """The first project creates the key file with mode 0600; another key is refused with a sentence that says so."""
    key = tmp_path / "taproof.db.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "taproof.db").stat().st_mode & 0o777 == 0o600
    before = key.read_text()
    run_json("projects", "create", "Other")
    assert key.read_text() == before
    wrong = run("projects", "list", TAPROOF_MASTER_KEY="A" * 43 + "=")
    assert wrong.exit_code == 1
    assert "does not belong to this database" in wrong.stderr
    key.unlink()
    assert "is missing" in run("projects", "list").stderr
    assert not key.exists()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("developers add not-an-address", "e-mail address"),
        ("tokens list --developer bob@example.com", "taproof developers add"),
        ("tokens create --name=", "name must have"),
        ("projects create x --webhook-url http://127.0.0.1/", "https://"),
        ("projects create Shop --developer bob@example.com", "taproof developers add"),
        ("developers plan eve@example.com pro", "There is no developer with this e-mail address."),
        ("audit --developer nobody@example.com", "taproof developers add"),
    ],
)
def test_a_mistake_gets_one_sentence_on_stderr(run: Run, run_json: RunJson, command: str, says: str) -> None:
    """A failed command exits with 1, prints one sentence to stderr and nothing to stdout, so that scripts notice."""
    run_json("developers", "add", "ada@example.com")
    result = run(*command.split(), "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_empty_database_is_made_by_accident(tmp_path: Path, run: Run, subtests: pytest.Subtests) -> None:
    """In the wrong directory, a command reports the missing database instead of creating an empty one."""
    for command in (
        "developers list",
        "developers invite ada@example.com",
        "developers invite ada@example.com --sandbox",
        "tokens create --developer a@b.c",
        "projects list --developer a@b.c",
        "audit",
        "status",
        "export all.jsonl",
        "backup b.db",
        "master-key rotate",
    ):
        with subtests.test(command):
            result = run(*command.split())
            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr.startswith("There is no Taproof database at ")
            assert "TAPROOF_DATABASE_URL" in result.stderr
            assert list(tmp_path.iterdir()) == []


def test_migrate_says_from_where_to_where(tmp_path: Path, run: Run, run_json: RunJson) -> None:
    """`migrate` creates the database, and does nothing the second time."""
    first = run_json("migrate", "--database", "sqlite:///other.db")
    assert first["database"] == str(tmp_path / "other.db")
    assert first["from_version"] == 0
    assert first["to_version"] >= 1
    second = run_json("migrate", "--database", "sqlite:///other.db")
    assert second["from_version"] == second["to_version"] == first["to_version"]
    assert "up to date" in run("migrate", TAPROOF_DATABASE_URL="sqlite:///other.db").stdout


def test_the_sandbox_keeps_to_its_own_database(tmp_path: Path, run: Run, run_json: RunJson) -> None:
    """With --sandbox, these commands use the sandbox's database; loopback webhooks are accepted only there."""
    run_json("developers", "add", "ada@example.com", "--sandbox")
    assert (tmp_path / "taproof-sandbox.db").exists()
    assert not (tmp_path / "taproof.db").exists()
    webhook = ["--webhook-url", "http://127.0.0.1:9/hook"]
    assert run_json("projects", "create", "Shop", "--sandbox", *webhook)["webhook_url"]
    mixed = run("projects", "list", "--database", "sqlite:///taproof-sandbox.db")
    assert mixed.exit_code == 1
    assert "created in sandbox mode" in mixed.stderr


@pytest.mark.parametrize("place", ["directory", "not a database", "no directory"])
def test_an_unusable_database_gets_a_sentence(tmp_path: Path, run: Run, place: str) -> None:
    """A file that cannot be opened ends the command with 1 and the reason."""
    path = tmp_path / "x.db"
    if place == "directory":
        path.mkdir()
    elif place == "not a database":
        path.write_text("not a database, " * 100)
    else:
        path = tmp_path / "nowhere" / "x.db"
    result = run("developers", "add", "ada@example.com", "--database", f"sqlite:///{path}")
    assert result.exit_code == 1
    assert "x.db" in result.stderr
    assert "Traceback" not in result.stderr


def test_serve_without_a_messenger_is_refused(run: Run) -> None:
    """Without a bot token or the sandbox, `serve` fails before it opens anything, and names both."""
    result = run("serve")
    assert result.exit_code == 2
    assert "TAPROOF_BOT_TOKEN" in result.stderr
    assert "--sandbox" in result.stderr
    assert list(Path.cwd().iterdir()) == []


def test_bad_settings_end_with_2_and_a_sentence_each(run: Run) -> None:
    """Every command that reads settings refuses invalid ones in the same way, without printing the value."""
    for command in (["serve"], ["migrate"], ["developers", "list"]):
        environment = {"TAPROOF_PORT": "canary", "TAPROOF_MASTER_KEY": "canary", "TAPROOF_LOG_LEVEL": "canary"}
        result = run(*command, **environment)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 3
        assert "canary" not in result.stderr


def test_a_bug_shows_no_traceback_and_with_debug_a_redacted_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is printed by type; with TAPROOF_LOG_LEVEL=debug, also with its location, without secrets."""
    token = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"

    async def fail(_database_url: str) -> None:
        raise KeyError(token)

    monkeypatch.setattr("taproof.runtime.store.migrate", fail)
    result = run("migrate")
    assert result.exit_code == 1
    assert result.stderr.startswith("Internal error (KeyError).")
    assert result.stderr.count("\n") == 1
    debug = run("migrate", TAPROOF_LOG_LEVEL="debug")
    assert "Traceback" in debug.stderr
    assert token not in result.stderr + debug.stderr


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("migrate", "--sandbox (TAPROOF_SANDBOX) must be 1 or 0."),
        ("developers add a@b.c --plan gold", "--plan must be free, pro or business."),
        ("developers plan a@b.c gold", "PLAN must be free, pro or business."),
        ("tokens create --expires-days 0", "--expires-days must be a whole number of days from 1 to 3650."),
        ("audit --limit 0", "--limit must be a whole number from 1 to 200."),
        ("audit --limit x", "--limit must be a whole number from 1 to 200."),
        ("login", "URL is missing. Usage: taproof login URL [OPTIONS]"),
        ("users show 1", "MESSENGER_ID is missing. Usage: taproof users show PROJECT_ID MESSENGER_ID [OPTIONS]"),
        ("developers plan a@b.c", "PLAN is missing. Usage: taproof developers plan EMAIL PLAN [OPTIONS]"),
    ],
)
def test_a_wrong_call_is_refused_in_plain_words(run: Run, command: str, sentence: str) -> None:
    """Errors of the parser read like those of other invalid settings.

    If an argument is missing, the error shows all in order, because the given value may be meant for another one.
    """
    environment = {"TAPROOF_SANDBOX": "maybe"} if command == "migrate" else {}
    result = run(*command.split(), **environment)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"{sentence}\n")


def test_the_usual_short_ways_in(run: Run) -> None:
    """--version and -h have their usual meaning."""
    assert run("--version").stdout == run("version").stdout
    assert run("serve", "-h").stdout == run("serve", "--help").stdout


def test_https_that_nobody_speaks_is_warned_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its start, `serve` warns that an https address needs a certificate or a trusted proxy."""

    async def stop(_settings: object) -> None:
        pass

    monkeypatch.setattr("taproof.runtime.app.serve", stop)
    arguments = ["serve", "--bot-token", "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"]
    arguments += ["--base-url", "https://signin.example.com"]
    warned = run(*arguments).stderr
    assert "no certificate and no trusted proxy is set" in warned
    assert "--trusted-proxy (TAPROOF_TRUSTED_PROXY)" in warned
    assert "no certificate" not in run(*arguments, "--trusted-proxy", "127.0.0.1").stderr


# ---- as a real process


def _start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_process_runs_and_answers() -> None:
    """`python -m taproof` is the same program: results on stdout, errors on stderr, the documented exit codes."""
    version = _start("version", "--json")
    assert version.returncode == 0
    assert json.loads(version.stdout).keys() == {"taproof", "python", "sqlite"}
    added = _start("developers", "add", "ada@example.com", "--json", TAPROOF_DATABASE_URL="sqlite:///here.db")
    assert is_key(json.loads(added.stdout)["access_token"], "tap")
    refused = _start("serve", TAPROOF_PORT="x", TAPROOF_TLS_CERT="/nowhere")
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert len(refused.stderr.splitlines()) == 2


def test_a_narrow_character_set_costs_no_secret() -> None:
    """A terminal that cannot show a name still shows the token, which is printed only once."""
    environment = {"PYTHONIOENCODING": "ascii", "TAPROOF_DATABASE_URL": "sqlite:///here.db"}
    assert _start("developers", "add", "ada@example.com", **environment).returncode == 0
    created = _start("projects", "create", "Лавка", **environment)
    assert created.returncode == 0
    assert "sk_" in created.stdout


def test_piped_tables_are_whole_lines_and_terminal_tables_are_drawn() -> None:
    """In a pipe, a row is one line with tabs.

    A terminal gets a table that fits, with whole ids. [Brackets] stay text.
    """
    environment = {"TAPROOF_DATABASE_URL": "sqlite:///here.db", "COLUMNS": "80", "TERM": "xterm"}
    project = "[red]Shop[/red] " + "x" * 80
    for command in (
        ("developers", "add", "ada@example.com"),
        ("projects", "create", project),
        ("projects", "list"),
    ):
        piped = _start(*command, **environment)
        assert piped.returncode == 0, (command, piped.returncode, piped.stderr)
    header, row = piped.stdout.splitlines()
    assert header.split("\t")[:2] == ["id", "name"]
    assert row.split("\t")[1] == project
    ours, theirs = pty.openpty()
    subprocess.run(
        [*COMMAND, "projects", "list"],
        stdout=theirs,
        timeout=60,
        check=True,
        env={**os.environ, **environment},
    )
    os.close(theirs)
    drawn = os.read(ours, 65536).decode()
    os.close(ours)
    assert row.split("\t")[0] in drawn
    assert "[red]Shop" in drawn
    assert "x" * 80 not in drawn
    assert max(len(re.sub(r"\x1b\[\d+m", "", line)) for line in drawn.splitlines()) <= 80


def test_help_and_version_do_not_load_the_service() -> None:
    """Help and version are printed without importing the server, the bot and the store."""
    heavy = "{'aiohttp', 'apsw', 'fastapi', 'granian', 'pydantic_settings', 'rich.table'}"
    program = f"import sys, taproof.__main__; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_administration_does_not_load_the_bot() -> None:
    """Commands that need only the store do not import the bot and the server, which takes seconds."""
    heavy = "{'taproof.messengers.telegram', 'fastapi', 'granian'}"
    program = f"import sys, taproof.runtime.store, taproof.service.json_fields; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_command_without_the_service_says_what_to_install() -> None:
    """After `pip install taproof`, which installs only the SDK, the command ends with a sentence."""
    program = "import sys; sys.modules['typer'] = None; import taproof.__main__"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == (
        "This is Taproof's SDK only. To install the service and its command: pip install 'taproof[server]'\n"
    )
