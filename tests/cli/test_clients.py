"""`taproof clients`: OpenID Connect clients on the command line."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.cli.conftest import Run

from taproof.core.identifiers import is_client_id, is_key

RunJson = Callable[..., Any]
ADA = "ada@example.com"
URI = "https://grafana.example/login/generic_oauth"


@pytest.fixture
def project_id(run_json: RunJson) -> str:
    run_json("developers", "add", ADA)
    found: str = run_json("projects", "create", "--developer", ADA, "Shop")["id"]
    return found


def test_a_client_from_creation_to_deletion(run_json: RunJson, project_id: str) -> None:
    """The commands answer like the HTTP API; a secret is shown once, when it is new."""
    owned = (project_id,)
    options = ("--redirect-uri", URI, "--redirect-uri", "com.example.app:/cb", "--signing-alg", "ES256")
    grants = ("--grant-type", "authorization_code", "--grant-type", "device_code")
    client = run_json("clients", "create", *owned, " Grafana [red] ", *options, *grants, "--email", "synthetic")
    secret = client.pop("client_secret")
    assert is_key(secret, "ocs")
    assert is_client_id(client["client_id"])
    assert (client["name"], client["redirect_uris"]) == ("Grafana [red]", [URI, "com.example.app:/cb"])
    assert (client["auth_method"], client["signing_alg"], client["email"]) == ("any", "ES256", "synthetic")
    assert client["grant_types"] == ["authorization_code", "device_code"]
    one = (*owned, client["client_id"])
    assert run_json("clients", "show", *one) == client
    assert run_json("clients", "list", *owned) == {"clients": [client]}
    public = run_json(
        "clients", "update", *one, "--auth-method", "none", "--redirect-uri", URI, "--grant-type", "device_code"
    )
    changed = {
        "auth_method": "none",
        "grant_types": ["device_code"],
        "redirect_uris": [URI],
        "client_secret_preview": None,
    }
    assert public == client | changed
    settings = ("--name", "New", "--id-token-lifetime", "300", "--auth-method", "post")
    ends = ("--logout-redirect-uri", URI, "--logout-uri", "https://a.example/out")
    told = run_json("clients", "update", *one, *ends)
    assert (told["post_logout_redirect_uris"], told["backchannel_logout_uri"]) == ([URI], "https://a.example/out")
    cleared = run_json("clients", "update", *one, *ends[::2][:1], "", ends[2], "")
    assert (cleared["post_logout_redirect_uris"], cleared["backchannel_logout_uri"]) == ([], "")
    again = run_json("clients", "update", *one, *settings)
    assert (again["name"], again["id_token_lifetime"], is_key(again["client_secret"], "ocs")) == ("New", 300, True)
    regenerated = run_json("clients", "regenerate", *one, "--yes")
    assert list(regenerated) == ["client_secret"]
    assert regenerated["client_secret"] != again["client_secret"]
    assert run_json("clients", "grants", *one) == {"grants": [], "next_cursor": None}
    assert run_json("clients", "delete", *one, "--yes") == {"deleted": True}
    assert run_json("clients", "list", *owned) == {"clients": []}
    entries = run_json("audit", "--developer", ADA)["entries"]
    actions = [entry["action"] for entry in entries if "client." in entry["action"]]
    assert sorted(set(actions)) == ["client.created", "client.deleted", "client.secret_regenerated", "client.updated"]


def test_what_people_read(run: Run, run_json: RunJson, project_id: str) -> None:
    """Sentences describe what was done; a secret is on its own line and in no later output."""
    created = run("clients", "create", project_id, "Grafana", "--redirect-uri", URI).stdout
    (secret,) = [line.strip() for line in created.splitlines() if line.strip().startswith("ocs_")]
    client_id = run_json("clients", "list", project_id)["clients"][0]["client_id"]
    one = (project_id, client_id)
    assert f"Created {client_id} (Grafana)." in created
    shown = [line.split("\t") for line in run("clients", "show", *one).stdout.splitlines()]
    assert ["redirect_uris", URI] in shown
    assert ["client_secret_preview", f"{secret[:8]}…{secret[-4:]}"] in shown
    listed = run("clients", "list", project_id).stdout.splitlines()
    assert listed[1].split("\t") == [
        client_id,
        "Grafana",
        "any",
        f"{secret[:8]}…{secret[-4:]}",
        "authorization_code",
        URI,
    ]
    assert run("clients", "update", *one, "--name", "New").stdout == f"Changed {client_id} (New).\n"
    assert f"Replaced the secret of {client_id}.\n" in run("clients", "regenerate", *one, "--yes").stdout
    assert run("clients", "delete", *one, "--yes").stdout == f"Deleted {client_id}.\n"


def test_a_mistake_gets_one_sentence(run: Run, run_json: RunJson, project_id: str, subtests: pytest.Subtests) -> None:
    """Another developer's project, an unknown client and a wrong field: exit code 1, or 2 for a malformed option."""
    run_json("developers", "add", "bob@example.com")
    unknown = "oidc_0000000000000000000000"
    for arguments, code, sentence in (
        (("create", project_id, "App"), 1, "redirect_uris is required."),
        (("create", project_id, "App", "--redirect-uri", "javascript:x"), 1, "number 1 of the list"),
        (("create", project_id, "App", "--redirect-uri", URI, "--auth-method", "x"), 1, "auth_method must be"),
        (("list", project_id, "--developer", "bob@example.com"), 1, "There is no such project."),
        (("show", project_id, unknown), 1, "There is no such client."),
        (("delete", project_id, "oidc_x", "--yes"), 1, "The client id must be"),
        (("update", project_id, unknown, "--id-token-lifetime", "1"), 2, "--id-token-lifetime must be a whole"),
    ):
        with subtests.test(sentence):
            result = run("clients", *arguments)
            assert (result.exit_code, result.stderr.count("\n")) == (code, 1)
            assert sentence in result.stderr
            assert result.stdout == ""
