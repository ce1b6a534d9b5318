"""`taproof developers plan` and `taproof users`."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, RunJson
from tests.whole_sign_in import WholeSignIn
from typer.testing import CliRunner

from taproof.cli.main import commands
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.storage.sqlite.store import SqliteStorage


@pytest.fixture(autouse=True)
def _ada(run: Run) -> None:
    assert run("migrate").exit_code == 0
    assert run("developers", "add", "ada@example.com").exit_code == 0


# ---- plans


def test_a_plan_is_changed_and_the_audit_log_tells(run: Run, run_json: RunJson) -> None:
    """Each change adds one entry, with the old and the new plan and the operator as the actor."""
    changed = run_json("developers", "plan", "ADA@example.com", "pro")
    assert (changed["email"], changed["plan"], changed["plan_before"]) == ("ada@example.com", "pro", "free")
    assert run_json("developers", "list")["developers"][0]["plan"] == "pro"
    again = run("developers", "plan", "ada@example.com", "pro")
    assert (again.exit_code, again.stdout) == (0, "ada@example.com is already on the pro plan.\n")
    back = run("developers", "plan", "ada@example.com", "free")
    assert back.stdout.splitlines() == [
        "Changed the plan of ada@example.com from pro to free.",
        "The developer's projects no longer collect phone numbers. Numbers already collected are kept.",
    ]
    entries = run_json("audit")["entries"]
    found = [(each["details"], each["actor"]) for each in entries if each["action"] == "developer.plan_changed"]
    assert found == [
        ({"plan": "free", "before": "pro"}, "command line"),
        ({"plan": "pro", "before": "free"}, "command line"),
    ]


def test_a_plan_s_projects_are_counted_on_the_command_line_too(run: Run) -> None:
    """The limit holds wherever a project is created."""
    limit = {"TAPROOF_PLAN_PROJECTS": "free=1,pro=20"}
    assert run("projects", "create", "One", **limit).exit_code == 0
    refused = run("projects", "create", "Two", **limit)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("The free plan allows 1 project, and this account has reached that limit.")
    assert run("projects", "create", "Two", "--plan-projects", "free=2").exit_code == 0


# ---- erasing


async def _sign_in(database: Path, project_id: str, user: str) -> None:
    storage = SqliteStorage.open(database, system_clock())
    encryptor = Encryptor(new_master_key(system_entropy))
    signin = WholeSignIn(storage, encryptor, lambda: "https://t.me/b", system_clock, system_entropy)
    for _ in range(2):
        token = (await signin.create_session(project_id, public=True)).session_token
        await signin.open_session(token, user)
        await signin.confirm_session(token, MessengerIdentity(user, "Grace", ""))
    await signin.open_session((await signin.create_session(project_id, public=True)).session_token, user)
    await storage.close()


def _users(database: Path) -> list[str]:
    storage = SqliteStorage.open(database, system_clock())
    found = storage.database.rows("SELECT opener_id FROM sessions ORDER BY opener_id")
    asyncio.run(storage.close())
    return [row[0] for row in found]


@pytest.fixture
def database(tmp_path: Path, run_json: RunJson) -> Path:
    """A database with three sessions of the user 1001, and three of 2002."""
    project_id = run_json("projects", "create", "One")["id"]
    path = tmp_path / "taproof.db"
    for user in ("1001", "2002"):
        asyncio.run(_sign_in(path, project_id, user))
    return path


def test_users_of_a_project_are_listed_and_exported(run: Run, run_json: RunJson, database: Path) -> None:
    """Users are listed in pages, the latest sign-in first.

    An export has one user's data, and is empty after the erasure.
    """
    project_id = run_json("projects", "list")["projects"][0]["id"]
    first = run_json("users", "list", project_id, "--limit", "1")
    second = run_json("users", "list", project_id, "--limit", "1", "--cursor", first["next_cursor"])
    assert [(each["messenger_id"], each["sign_ins"]) for each in first["users"] + second["users"]] == [
        ("2002", 2),
        ("1001", 2),
    ]
    assert second["next_cursor"] is None
    header, *rows = run("users", "list", project_id).stdout.splitlines()
    assert header.startswith("id\tname\tusername")
    assert [row.split("\t")[:2] for row in rows] == [["2002", "Grace"], ["1001", "Grace"]]
    exported = json.loads(run("users", "export", "1001").stdout)
    assert (len(exported["sessions"]), len(exported["days"]), exported["blocks"]) == (3, 1, [])
    assert run("users", "erase", "1001", "--yes").exit_code == 0
    assert json.loads(run("users", "export", "1001").stdout)["sessions"] == []
    for wrong, sentence in (
        (("users", "list", "proj_0000000000000000000000"), "no such project"),
        (("users", "list", project_id, "--cursor", "x"), "cursor must be"),
        (("users", "export", "ada"), "digits only"),
    ):
        refused = run(*wrong)
        assert (refused.exit_code, sentence in refused.stderr) == (1, True), refused.stderr


def test_a_user_is_erased_everywhere(run: Run, run_json: RunJson, database: Path) -> None:
    """With --yes, the command does not ask.

    It prints how much was erased, and the second time that there is nothing.
    """
    assert run_json("users", "erase", "1001", "--yes") == {"erased": True, "erased_rows": 4, "developer": None}
    assert _users(database) == ["2002"] * 3
    again = run("users", "erase", "1001", "--yes")
    assert (again.exit_code, again.stdout) == (0, "There is no data for the user 1001 in all projects.\n")
    assert run("users", "erase", "2002", "--yes").stdout.startswith(
        "Erased all data of the user 2002 in all projects: 4 rows"
    )


@pytest.mark.parametrize("answer", ["", "n\n", "\n"])
def test_nothing_goes_unless_it_is_meant(database: Path, answer: str) -> None:
    """The question goes to stderr; without a yes or without a terminal, nothing is erased."""
    asked = CliRunner().invoke(commands, ["users", "erase", "1001"], input=answer, prog_name="taproof")
    assert (asked.exit_code, asked.stdout) == (1, "")
    assert "Erase all data of the user 1001, in all projects?" in asked.stderr
    assert "Nothing was changed. To skip the question, add --yes." in asked.stderr
    assert _users(database) == ["1001"] * 3 + ["2002"] * 3
    meant = CliRunner().invoke(commands, ["users", "erase", "1001"], input="y\n", prog_name="taproof")
    assert meant.exit_code == 0
    assert _users(database) == ["2002"] * 3


def test_an_account_that_signs_in_a_developer_is_named(run: Run, run_json: RunJson, database: Path) -> None:
    """The account of a developer is kept and named, because the operator may want to know."""
    storage = SqliteStorage.open(database, system_clock())
    storage.database.writer.connection.execute("UPDATE developers SET messenger_id = '2002'")
    asyncio.run(storage.close())
    assert "developer ada@example.com can still sign in to the console" in run("users", "erase", "2002", "--yes").stdout
    assert run_json("users", "erase", "2002", "--yes")["developer"] == "ada@example.com"


@pytest.mark.parametrize("user", ["ada", "1" * 21, "1 2", ""])
def test_what_is_no_messenger_id_is_refused_before_any_question(run: Run, user: str) -> None:
    """The refusal is a sentence."""
    refused = run("users", "erase", user)
    assert refused.exit_code == 1
    assert refused.stderr == "messenger_id must be a messenger account's id: digits only, at most 20.\n"
