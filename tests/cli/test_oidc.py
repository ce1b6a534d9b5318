"""`taproof oidc`: what an operator does with the keys that sign ID tokens."""

from collections.abc import Callable
from typing import Any

from typer.testing import Result

Run = Callable[..., Result]
RunJson = Callable[..., Any]


def test_rotate_keys(run: Run, run_json: RunJson) -> None:
    """The next key of each algorithm signs once it has been published for a day; a second call changes nothing."""
    run_json("developers", "add", "ada@example.com")
    keys = run_json("oidc", "rotate-keys")["keys"]
    assert [key["alg"] for key in keys] == ["RS256", "ES256"]
    assert run_json("oidc", "rotate-keys")["keys"] == keys
    shown = run("oidc", "rotate-keys").output
    for key in keys:
        assert f"{key['alg']}: the key {key['kid']} signs from {key['signs_from']}." in shown
