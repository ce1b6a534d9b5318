"""`taproof developers invite`: one-time links, printed once."""

from collections.abc import Callable
from typing import Any

from typer.testing import Result

from taproof.core.identifiers import is_key

Run = Callable[..., Result]


def test_an_invitation_is_a_link_with_its_code_in_the_fragment(run: Run, run_json: Callable[..., Any]) -> None:
    """On a line of its own, shown once; the code is never in a part of the address that is sent."""
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
    assert "never again" in result.stdout
    assert result.stdout.count("http://127.0.0.1:8080/console/invite#inv_") == 1
    assert run_json("developers", "list") == {"developers": []}


def test_owners_and_those_who_are_there(run: Run, run_json: Callable[..., Any]) -> None:
    """Later ones are owners when that is said; a developer who is there gets a link that binds their account."""
    added = run_json("developers", "add", "ada@example.com")
    assert run_json("developers", "invite", "bob@example.com")["is_owner"] is False
    assert run_json("developers", "invite", "bob@example.com", "--owner")["is_owner"] is True
    assert run_json("developers", "invite", "ADA@example.com")["developer_id"] == added["id"]
    for option in (["--owner"], ["--plan", "pro"]):
        refused = run("developers", "invite", "ada@example.com", *option)
        assert refused.exit_code == 1
        assert "Leave them out" in refused.stderr
    assert "e-mail address" in run("developers", "invite", "no address").stderr
    assert "--plan must be free" in run("developers", "invite", "eve@example.com", "--plan", "gold").stderr
