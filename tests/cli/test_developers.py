"""`taproof developers invite`: one-time links that are printed once."""

import pytest
from tests.cli.conftest import Run, RunJson

from taproof.core.identifiers import is_key

_ELSEWHERE = (
    "The link is for a service at http://127.0.0.1:8080. If your service has another address, set --base-url "
    "(TAPROOF_BASE_URL)."
)


@pytest.fixture(autouse=True)
def _database(run: Run) -> None:
    assert run("migrate").exit_code == 0


def test_a_link_says_where_it_leads(run: Run) -> None:
    """The command cannot know the service's address: unless it is given, the command names the one that it used."""
    invite = ("developers", "invite", "ada@example.com")
    assert _ELSEWHERE in run(*invite).stdout.splitlines()
    for said in (
        run(*invite, "--base-url", "http://127.0.0.1:8080"),
        run(*invite, TAPROOF_BASE_URL="https://a.example"),
    ):
        assert said.exit_code == 0
        assert "If yours is elsewhere" not in said.stdout


def test_an_invitation_is_a_link_with_its_code_in_the_fragment(run: Run, run_json: RunJson) -> None:
    """The link is on its own line and shown once; its code is in the fragment, which browsers do not send."""
    made = run_json("developers", "invite", "ada@example.com", "--plan", "pro", "--base-url", "https://signin.example")
    assert made.keys() == {"id", "email", "plan", "is_owner", "developer_id", "expires_at", "link"}
    assert (made["email"], made["plan"], made["is_owner"], made["developer_id"]) == (
        "ada@example.com",
        "pro",
        True,  # The first developer is an owner in any case.
        None,
    )
    address, _, code = made["link"].partition("#")
    assert address == "https://signin.example/console/invite"
    assert is_key(code, "inv")
    result = run("developers", "invite", "ada@example.com")
    assert [line for line in result.stdout.splitlines() if is_key(line.partition("/console/invite#")[2], "inv")]
    assert "not shown again" in result.stdout
    assert result.stdout.count("http://127.0.0.1:8080/console/invite#inv_") == 1
    assert run_json("developers", "list") == {"developers": []}


def test_owners_and_those_who_are_there(run: Run, run_json: RunJson) -> None:
    """Later developers become owners only with --owner; an existing developer gets a link that replaces the account."""
    added = run_json("developers", "add", "ada@example.com")
    assert run_json("developers", "invite", "bob@example.com")["is_owner"] is False
    assert run_json("developers", "invite", "bob@example.com", "--owner")["is_owner"] is True
    assert run_json("developers", "invite", "ADA@example.com")["developer_id"] == added["id"]
    for option in (["--owner"], ["--plan", "pro"]):
        refused = run("developers", "invite", "ada@example.com", *option)
        assert refused.exit_code == 1
        assert "Leave out --plan and --owner" in refused.stderr
    assert "e-mail address" in run("developers", "invite", "no address").stderr
    assert "--plan must be free" in run("developers", "invite", "eve@example.com", "--plan", "gold").stderr


def test_linking_another_account_mentions_access_tokens(run: Run) -> None:
    """A developer who links another account learns that tokens stay valid, and how to revoke them."""
    assert "tokens" not in run("developers", "invite", "eve@example.com").stdout
    run("developers", "add", "ada@example.com")
    said = run("developers", "invite", "ada@example.com").stdout
    assert "access tokens stay valid" in said
    assert "taproof tokens list --developer ada@example.com\n" in said
    assert "taproof tokens revoke --developer ada@example.com TOKEN_ID" in said


def test_commands_to_paste_are_quoted(run: Run) -> None:
    """An e-mail address with shell syntax is quoted in every printed command."""
    email = "$(id)@x.example"
    run("developers", "add", email)
    for arguments in (("developers", "add", email), ("developers", "invite", email)):
        said = run(*arguments)
        commands = [line for line in (said.stdout + said.stderr).splitlines() if "taproof " in line]
        assert commands
        assert all(f"'{email}'" in line for line in commands)
