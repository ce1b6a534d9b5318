"""`taproof developers remove`: an account is removed with everything that belongs to it."""

from pathlib import Path

from tests.cli.conftest import Run, RunJson

ROOT = Path(__file__).parent.parent.parent
COMMAND = "taproof developers remove ada@example.com --transfer-to grace@example.com --yes"
"""The command as the page how-to/teams.md has it."""


def test_a_developer_is_removed(run: Run, run_json: RunJson) -> None:
    """The removal is refused while projects would have no owner.

    Then they pass to the named developer, or are deleted.
    """
    assert run("migrate").exit_code == 0
    for email in ("ada@example.com", "grace@example.com"):
        run_json("developers", "add", email)
    shop = run_json("projects", "create", "--developer", "ada@example.com", "Shop")["id"]
    unconfirmed = run("developers", "remove", "ada@example.com", "--delete-projects")
    assert (unconfirmed.exit_code, unconfirmed.stdout) == (1, "")
    assert "Remove ada@example.com, with the projects of which nobody else is an owner?" in unconfirmed.stderr
    refused = run("developers", "remove", "ada@example.com", "--yes")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"ada@example.com is the only owner of: Shop ({shop}). Add --transfer-to EMAIL to give these projects to "
        "another developer, or --delete-projects to delete them.\n"
    )
    for options in (
        ("--transfer-to", "ada@example.com"),
        ("--transfer-to", "eve@example.com"),
        ("--transfer-to", "grace@example.com", "--delete-projects"),
    ):
        assert run("developers", "remove", "ada@example.com", *options, "--yes").exit_code == 1
    assert [each["id"] for each in run_json("projects", "list", "--developer", "ada@example.com")["projects"]] == [shop]
    assert COMMAND in (ROOT / "docs/how-to/teams.md").read_text(encoding="utf-8")
    removed = run(*COMMAND.split()[1:])
    assert removed.stdout.splitlines() == [
        "Removed ada@example.com. Ended console sessions: 0. Revoked access tokens: 1.",
        f"Passed to grace@example.com: {shop} (Shop)",
        "They may know the secrets of these projects. To replace them, see the page Rotate secrets.",
    ]
    assert [each["id"] for each in run_json("projects", "list", "--developer", "grace@example.com")["projects"]] == [
        shop
    ]
    entries = run_json("audit", "--developer", "grace@example.com")["entries"]
    assert "member.joined" in [each["action"] for each in entries]
    assert run("projects", "list", "--developer", "ada@example.com").exit_code == 1
    gone = run_json("developers", "remove", "grace@example.com", "--delete-projects", "--yes")
    assert gone == {
        "email": "grace@example.com",
        "transferred": [],
        "deleted": [{"id": shop, "name": "Shop"}],
        "left": [],
        "console_sessions": 0,
        "tokens": 1,
    }
    assert run_json("developers", "list") == {"developers": []}
