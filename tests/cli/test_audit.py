"""`taproof audit`: what an audit log says, on a real SQLite file."""

import pytest
from tests.cli.conftest import Run, RunJson


def test_what_the_operator_did_is_in_the_developers_log(run_json: RunJson) -> None:
    """Newest first, as the command line's doing, with the fields of `GET /api/v1/dev/audit`; reading adds nothing."""
    ada = run_json("developers", "add", "ada@example.com")
    project = run_json(
        "projects", "create", "--developer", "ada@example.com", "Shop", "--webhook-url", "https://a.example/canary"
    )
    created = run_json("tokens", "create", "--developer", "ada@example.com", "--name", "CI")
    run_json("tokens", "revoke", "--developer", "ada@example.com", created["id"], "--yes")
    run_json("projects", "list", "--developer", "ada@example.com")
    entries = run_json("audit")["entries"]
    assert [(each["action"], each["subject"]) for each in entries[:3]] == [
        ("access_token.revoked", created["id"]),
        ("access_token.created", created["id"]),
        ("project.created", project["id"]),
    ]
    # Both may have been written in the same millisecond.
    assert {each["action"] for each in entries[3:]} == {"access_token.created", "developer.created"}
    assert len(entries) == 5
    fields = ["id", "created_at", "action", "actor", "via", "via_id", "address", "subject", "details"]
    assert all(list(each) == fields for each in entries)
    who = {(each["actor"], each["via"], each["via_id"], each["address"]) for each in entries}
    assert who == {("command line", "command_line", "", "")}
    (first,) = [each for each in entries if each["action"] == "developer.created"]
    assert first["details"] == {"email": "ada@example.com", "plan": "free", "is_owner": True}
    assert entries[2]["details"] == {"name": "Shop"}
    shown = repr(entries)
    for secret in (ada["access_token"], created["access_token"], project["secret_key"], "canary"):
        assert secret not in shown


def test_an_entry_is_one_line_for_people_and_pipes(run: Run, run_json: RunJson) -> None:
    """Under the names of the columns; a name cannot turn the line around."""
    run_json("developers", "add", "ada@example.com")
    run_json("tokens", "create", "--developer", "ada@example.com", "--name", "Zoë \u202eCI")
    columns, *rows = (line.split("\t") for line in run("audit", "--limit", "1").stdout.splitlines())
    assert columns == ["time", "who", "via", "address", "what", "subject", "details"]
    [[time, who, via, address, what, subject, details]] = rows
    assert time.endswith("Z")
    assert (who, via, address, what) == ("command line", "command_line", "", "access_token.created")
    assert subject.startswith("tok_")
    assert details.startswith('name="Zoë CI", preview="tap_')
    assert details.endswith('expires_at=null, scopes=["read", "write", "tokens"]')


def test_the_newest_come_first_up_to_the_limit(run_json: RunJson) -> None:
    """The cursor continues the list."""
    run_json("developers", "add", "ada@example.com")
    entries = run_json("audit", "--limit", "200")["entries"]
    newest = run_json("audit", "--limit", "1")
    assert newest["entries"] == entries[:1]
    assert run_json("audit", "--cursor", newest["next_cursor"])["entries"] == entries[1:]


def test_one_developers_log_is_shown(run_json: RunJson) -> None:
    """Nothing of another's is in it."""
    run_json("developers", "add", "ada@example.com")
    run_json("developers", "add", "bob@example.com")
    run_json("projects", "create", "--developer", "bob@example.com", "Canary")
    project_id = run_json("projects", "list", "--developer", "bob@example.com")["projects"][0]["id"]
    assert "Canary" not in repr(run_json("audit", "--developer", "ada@example.com"))
    assert "Canary" in repr(run_json("audit", "--project", project_id))
    assert "Canary" in repr(run_json("audit", "--developer", "BOB@example.com"))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--developer", "nobody@example.com"], 1, "taproof developers add"),
        (["--limit", "0"], 2, "--limit must be a whole number from 1 to 200."),
        (["--limit", "x"], 2, "--limit must be a whole number from 1 to 200."),
        (["--database", "sqlite:///none.db"], 1, "There is no Taproof database"),
    ],
)
def test_a_mistake_gets_one_sentence(run: Run, run_json: RunJson, arguments: list[str], code: int, says: str) -> None:
    """On stderr, and nothing on stdout."""
    run_json("developers", "add", "ada@example.com")
    result = run("audit", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
