"""`taproof audit`: the content of an audit log, on a real SQLite file."""

from tests.cli.conftest import Run, RunJson


def test_what_the_operator_did_is_in_the_developers_log(run_json: RunJson) -> None:
    """Entries are newest first, made by the command line, with the fields of `GET /api/v1/dev/audit`.

    Reading adds none.
    """
    ada = run_json("developers", "add", "ada@example.com")
    project = run_json("projects", "create", "Shop", "--webhook-url", "https://a.example/canary")
    created = run_json("tokens", "create", "--name", "CI")
    run_json("tokens", "revoke", created["id"], "--yes")
    run_json("projects", "list")
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
    """An entry is one line below the column names; a name with direction marks cannot reverse the line."""
    run_json("developers", "add", "ada@example.com")
    run_json("tokens", "create", "--name", "Zoë \u202eCI")
    columns, *rows = (line.split("\t") for line in run("audit", "--limit", "1").stdout.splitlines())
    assert columns == ["time", "who", "via", "address", "what", "subject", "details"]
    [[time, who, via, address, what, subject, details]] = rows
    assert time.endswith("Z")
    assert (who, via, address, what) == ("command line", "command_line", "", "access_token.created")
    assert subject.startswith("tok_")
    assert details.startswith('name="Zoë CI", preview="tap_')
    assert details.endswith('expires_at=null, scopes=["read", "write", "tokens"]')
