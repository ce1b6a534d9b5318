"""Each command that calls the developer API prints the same on a database and on the service that runs on it.

The output of `--json` has the form in docs/reference/cli.schema.json.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.output_schema import validate
from tests.e2e.conftest import launch, loop_is_never_held
from tests.faults.conftest import new_database
from tests.faults.place import Place, make_place
from typer.main import get_command
from typer.testing import CliRunner, Result

from taproof.cli.credentials import Credential, Credentials
from taproof.cli.main import commands
from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.runtime.store import open_storage
from taproof.service.members import Members

__all__ = ["loop_is_never_held"]

ADA, BOB = "ada@example.com", "bob@example.com"
GROUPS = ("projects", "sessions", "users", "members", "clients", "tokens")
URI = "https://wiki.example/callback"
NOBODY = "0" * 22


@dataclass
class Setup:
    """A service with one project, one signed-in user and two developers, and functions to run commands."""

    place: Place
    address: str
    config: Path

    def run(self, where: str, *arguments: str, answer: str = "") -> Result:
        """Run a command on the database or on the service, as Ada."""
        there = ("--service", self.address) if where == "remote" else ("--developer", ADA)
        environment = {
            "TAPROOF_DATABASE_URL": self.place.url,
            "TAPROOF_MASTER_KEY": self.place.master_key,
            "TAPROOF_BASE_URL": self.address,
            "XDG_CONFIG_HOME": str(self.config),
        }
        return CliRunner().invoke(
            commands, [*arguments, *there], env=environment, input=answer, prog_name="taproof", catch_exceptions=False
        )

    def json(self, where: str, *arguments: str) -> Any:
        """Run a command that must succeed with --json; return what it printed."""
        result = self.run(where, *arguments, "--json")
        assert result.exit_code == 0, (arguments, result.stderr)
        assert result.stderr == ""
        answer = json.loads(result.stdout)
        validate(answer, *arguments[:2])
        return answer


async def _sign_in(place: Place) -> None:
    async with place.sign_in() as sign_in:
        for user, name in (("1001", "Grace \u202eH"), ("1002", "Joan")):
            token = (await sign_in.create_session(place.project_id, public=True)).session_token
            await sign_in.open_session(token, user)
            await sign_in.confirm_session(token, MessengerIdentity(user, name, ""))


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def setup(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    directory = tmp_path_factory.mktemp("service")
    with new_database(request.param, directory) as url:
        place = asyncio.run(make_place(url))
        asyncio.run(_sign_in(place))
        service = launch(
            *(directory, "--database", url, "--role", "api"),
            sandbox=False,
            TAPROOF_MASTER_KEY=place.master_key,
            TAPROOF_MESSENGER_LINK_BASE="https://t.me/shop_bot",
        )
        try:
            setup = Setup(place, service.base_url, directory)
            environment = {"TAPROOF_DATABASE_URL": url, "TAPROOF_MASTER_KEY": place.master_key}
            bob = CliRunner().invoke(commands, ["developers", "add", BOB], env=environment)
            assert bob.exit_code == 0, bob.stderr
            made = setup.json("local", "tokens", "create", "--name", "laptop")
            credential = Credential(made["access_token"], made["id"], ADA)
            Credentials(directory / "taproof" / "credentials.json").replace(service.base_url, credential)
            yield setup
        finally:
            service.stop()


def test_reading_prints_the_same(setup: Setup, subtests: pytest.Subtests) -> None:
    """The output for programs and for people is identical."""
    project_id = setup.place.project_id
    client = setup.json("remote", "clients", "create", project_id, "Wiki", "--redirect-uri", URI)["client_id"]
    setup.json("remote", "members", "invite", project_id)
    session_id = setup.json("remote", "sessions", "list")["sessions"][0]["id"]
    token_id = setup.json("local", "tokens", "list")["tokens"][0]["id"]
    for arguments in (
        ("projects", "list"),
        ("projects", "show", project_id),
        ("projects", "webhook-secret", project_id),
        ("sessions", "list", "--project", project_id, "--status", "confirmed", "--limit", "1"),
        ("sessions", "show", session_id),
        ("users", "list", project_id, "--limit", "1"),
        ("users", "show", project_id, "1001"),
        ("members", "list", project_id),
        ("members", "invitations", project_id),
        ("clients", "list", project_id),
        ("clients", "show", project_id, client),
        ("tokens", "list"),
        ("tokens", "show", token_id),
        ("audit", "--limit", "2"),
        ("audit", "--project", project_id),
    ):
        with subtests.test(" ".join(arguments)):
            # First the service, which records when it last saw its token.
            assert setup.json("remote", *arguments) == setup.json("local", *arguments)
            remote, local = (setup.run(where, *arguments) for where in ("remote", "local"))
            assert (local.exit_code, local.stdout, local.stderr) == (0, remote.stdout, remote.stderr)
            assert local.stdout.count("\n") > 1
            assert "\u202e" not in local.stdout
    local, remote = (setup.json(where, "users", "export", "1001") for where in ("local", "remote"))
    assert local | {"exported_at": ""} == remote | {"exported_at": ""}
    assert len(local["sessions"]) == 1


@pytest.mark.parametrize("where", ["local", "remote"])
def test_a_project_from_creation_to_deletion(setup: Setup, where: str) -> None:
    """Each change is visible afterwards, and the same on both sides."""

    def do(*arguments: str) -> Any:
        return setup.json(where, *arguments)

    created = do(
        *("projects", "create", "Own", "--no-public-access", "--allowed-origin", "https://a.example"),
        *("--match-code", "on", "--webhook-url", "https://a.example/x", "--webhook-event", "auth.confirmed"),
    )
    own = created["id"]
    assert (created["public_access"], created["match_code"]) == (False, "on")
    assert created["webhook_events"] == ["auth.confirmed"]
    changed = do("projects", "update", own, "--allowed-origin", "", "--public-access", "--name", "Other")
    assert (changed["allowed_origins"], changed["public_access"], changed["name"]) == ([], True, "Other")
    Path("texts.json").write_text('{"es": {"confirmed": "¡Hasta luego!"}}', encoding="utf-8")
    changed = do("projects", "update", own, "--texts-file", "texts.json", "--logo-url", "https://a.example/logo.png")
    assert changed["texts"] == {"es": {"confirmed": "¡Hasta luego!"}}
    assert changed["logo_url"] == "https://a.example/logo.png"
    assert do("projects", "pause", own)["is_active"] is False
    assert do("projects", "resume", own)["is_active"] is True
    rotated = do("projects", "rotate-webhook-secret", own, "--overlap-hours", "2")
    promoted = do("projects", "promote-webhook-secret", own)
    assert promoted["webhook_secret"] == rotated["next_webhook_secret"] != created["webhook_secret"]
    assert do("projects", "webhook-secret", own) == promoted
    assert do("projects", "regenerate", own, "--yes")["secret_key"] != created["secret_key"]

    client = do("clients", "create", own, "Wiki", "--redirect-uri", URI)
    one = (own, client["client_id"])
    assert do("clients", "update", *one, "--name", "New")["name"] == "New"
    assert do("clients", "regenerate", *one, "--yes")["client_secret"] != client["client_secret"]
    assert do("clients", "grants", *one) == {"grants": [], "next_cursor": None}
    assert do("clients", "delete", *one, "--yes") == {"deleted": True}

    invitation = do("members", "invite", own, "--role", "viewer")
    assert invitation["link"].startswith(f"{setup.address}/console/join#")
    assert do("members", "revoke-invitation", own, invitation["id"], "--yes") == {"deleted": True}
    assert do("members", "invitations", own) == {"invitations": []}

    token = do("tokens", "create", "--scope", "read", "--expires-days", "3")
    assert token["scopes"] == ["read"]
    assert do("tokens", "revoke", token["id"], "--yes") == {"deleted": True}

    assert do("projects", "delete", own, "--yes") == {"deleted": True}
    assert own not in json.dumps(do("projects", "list"))


@pytest.mark.parametrize("where", ["local", "remote"])
def test_members_get_roles_and_leave(setup: Setup, where: str) -> None:
    """A member is named by e-mail address or id; the last owner cannot leave."""
    shared = setup.json(where, "projects", "create", "Shared")["id"]
    link = setup.json(where, "members", "invite", shared)["link"]
    join(setup.place, link.partition("#")[2])
    assert setup.json(where, "members", "set-role", shared, BOB.upper(), "viewer")["role"] == "viewer"
    bob = setup.json(where, "members", "list", shared)["members"][1]
    assert (bob["email"], bob["role"]) == (BOB, "viewer")
    assert setup.json(where, "members", "remove", shared, bob["developer_id"], "--yes") == {"deleted": True}
    refused = setup.run(where, "members", "remove", shared, ADA, "--yes")
    assert (refused.exit_code, refused.stdout) == (1, "")
    setup.json(where, "projects", "delete", shared, "--yes")


def test_errors_are_the_same(setup: Setup, subtests: pytest.Subtests) -> None:
    """The exit code is 1 with one sentence on stderr; an unconfirmed question changes nothing."""
    project_id = setup.place.project_id
    for arguments in (
        ("projects", "show", f"proj_{NOBODY}"),
        ("projects", "show", "x"),
        ("projects", "show", ".."),
        ("projects", "create", " "),
        ("projects", "create", "Shop", "--match-code", "maybe"),
        ("projects", "update", project_id, "--webhook-url", "http://shop.example"),
        ("projects", "update", project_id, "--texts-file", "/dev/null"),
        ("projects", "delete", project_id),
        ("projects", "regenerate", project_id),
        ("sessions", "show", "sess_x"),
        ("sessions", "list", "--status", "lost"),
        ("sessions", "list", "--since", "yesterday"),
        ("users", "list", project_id, "--cursor", "x"),
        ("users", "erase", "ada", "--yes"),
        ("users", "show", project_id, "a/../b"),
        ("members", "invite", project_id, "--role", "king"),
        ("members", "remove", project_id, BOB, "--yes"),
        ("members", "set-role", project_id, ADA, "viewer"),
        ("clients", "delete", project_id, f"oidc_{NOBODY}", "--yes"),
        ("clients", "end-grant", project_id, f"oidc_{NOBODY}", f"auth_{NOBODY}", "--yes"),
        ("tokens", "show", f"tok_{NOBODY}"),
        ("tokens", "revoke", f"tok_{NOBODY}", "--yes"),
    ):
        with subtests.test(" ".join(arguments)):
            local, remote = (setup.run(where, *arguments, "--json") for where in ("local", "remote"))
            assert (local.exit_code, local.stdout) == (remote.exit_code, remote.stdout) == (1, "")
            assert local.stderr == remote.stderr
            assert local.stderr.endswith(".\n")
    assert setup.json("local", "projects", "show", project_id)["id"] == project_id


@pytest.mark.parametrize(("where", "user"), [("local", "1001"), ("remote", "1002")])
def test_a_user_is_erased(setup: Setup, where: str, user: str) -> None:
    """The user is erased after a yes on stdin; the second time, there is nothing to erase."""
    project_id = setup.place.project_id
    asked = setup.run(where, "users", "erase", user, "--json", answer="y\n")
    assert (asked.exit_code, json.loads(asked.stdout)) == (0, {"erased": True})
    assert setup.json(where, "users", "erase", user, "--yes") == {"erased": False}
    assert setup.json(where, "users", "show", project_id, user)["sessions"] == []


def test_who_acts_is_found_or_asked_for(setup: Setup, run: Callable[..., Result]) -> None:
    """An owner of the named project acts by default; without a project, the only developer."""
    environment = {"TAPROOF_DATABASE_URL": setup.place.url, "TAPROOF_MASTER_KEY": setup.place.master_key}
    shown = run("projects", "show", setup.place.project_id, "--json", **environment)
    assert json.loads(shown.stdout)["id"] == setup.place.project_id
    several = run("projects", "list", **environment)
    assert (several.exit_code, "--developer EMAIL" in several.stderr) == (2, True)
    assert run("projects", "list", "--developer", BOB, **environment).exit_code == 0
    both = run("projects", "list", "--developer", BOB, "--service", setup.address, **environment)
    assert (both.exit_code, "Leave out --developer" in both.stderr) == (2, True)
    strange = run("projects", "list", "--service", setup.address, XDG_CONFIG_HOME=str(Path.cwd()))
    assert (strange.exit_code, f"taproof login {setup.address}" in strange.stderr) == (1, True)


def test_ended_tokens_name_the_way_back(setup: Setup, tmp_path: Path) -> None:
    """If the stored access token is no longer valid, the sentence says how to sign in again."""
    made = setup.json("local", "tokens", "create")
    Credentials(tmp_path / "taproof" / "credentials.json").replace(
        setup.address, Credential(made["access_token"], made["id"], ADA)
    )
    setup.json("local", "tokens", "revoke", made["id"], "--yes")
    there = Setup(setup.place, setup.address, tmp_path)
    refused = there.run("remote", "projects", "list")
    assert refused.exit_code == 1
    assert refused.stderr.endswith(f"To sign in again: taproof login {setup.address}\n")


def test_every_command_is_tested_here() -> None:
    """Every command that calls the API must have a test in this file."""
    text = Path(__file__).read_text(encoding="utf-8")
    groups: Any = get_command(commands)
    every = {f'"{group}", "{name}"' for group in GROUPS for name in groups.commands[group].commands}
    assert {each for each in every if each not in text} == set()


def join(place: Place, code: str) -> None:
    """Accept an invitation as Bob."""

    async def work() -> None:
        storage = await open_storage(place.url)
        bob = await storage.developers.read_developer(BOB)
        assert bob is not None
        members = Members(storage, system_clock, system_entropy, base_url="")
        await members.accept_invitation(Actor(bob, "command_line"), code)
        await storage.close()

    asyncio.run(work())
