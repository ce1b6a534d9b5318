"""`taproof oidc`: an operator manages the keys that sign ID tokens."""

from collections.abc import Callable
from typing import Any

from typer.testing import Result

Run = Callable[..., Result]
RunJson = Callable[..., Any]


def test_rotate_keys_now(run: Run, run_json: RunJson) -> None:
    """The command asks first, replaces every key immediately, and adds an entry to each owner's log."""
    for email in ("ada@example.com", "bob@example.com"):
        run_json("developers", "add", email)
    old = run_json("oidc", "rotate-keys")["keys"]
    assert run("oidc", "rotate-keys", "--now").exit_code == 1
    assert run_json("oidc", "rotate-keys")["keys"] == old
    new = run_json("oidc", "rotate-keys", "--now", "--yes")["keys"]
    assert not {key["kid"] for key in new} & {key["kid"] for key in old}
    entry = run_json("audit", "--developer", "ada@example.com")["entries"][0]
    assert (entry["action"], entry["actor"]) == ("signing_keys.replaced", "command line")
    assert entry["details"] == {key["alg"]: key["kid"] for key in new}
    bobs = run_json("audit", "--developer", "bob@example.com")["entries"]
    assert "signing_keys.replaced" not in {each["action"] for each in bobs}
    assert "In five seconds, no node uses them." in run("oidc", "rotate-keys", "--now", "--yes").stdout


def test_rotate_keys(run: Run, run_json: RunJson) -> None:
    """The next key of each algorithm signs once it has been published for a day; a second call changes nothing."""
    run_json("developers", "add", "ada@example.com")
    keys = run_json("oidc", "rotate-keys")["keys"]
    assert [key["alg"] for key in keys] == ["RS256", "ES256"]
    assert run_json("oidc", "rotate-keys")["keys"] == keys
    shown = run("oidc", "rotate-keys").output
    for key in keys:
        assert f"{key['alg']}: the key {key['kid']} signs from {key['signs_from']}." in shown
