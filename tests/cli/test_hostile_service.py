"""Commands with `--service` print nothing dangerous, whatever the service answers."""

import json
import shlex
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.impostor import Impostor
from typer.main import get_command
from typer.testing import CliRunner, Result

from taproof.cli.credentials import Credential, Credentials
from taproof.cli.main import commands
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_key

EVIL = "\x1b[2J\x1b]0;x\x07\u202eevil\u2066\r\nSigned in\x9b31m\u200b\x00"
TOKEN = new_key("tap", system_entropy)
FIELDS = (
    *("access_token", "address", "body", "client_id", "client_secret", "clients", "code", "created_at", "deliveries"),
    *("deleted", "developer", "email", "entries", "erased", "erased_rows", "error", "expires_at", "id", "invitations"),
    *("link", "members", "messenger_id", "name", "next_cursor", "plan", "projects", "promoted_at", "role"),
    *("secret_key", "sessions", "status", "texts", "tokens", "user", "users", "webhook_secret", "webhook_url"),
)
ARGUMENTS = {
    "PROJECT_ID": "proj_" + "a" * 22,
    "CLIENT_ID": "oidc_" + "a" * 22,
    "MESSENGER_ID": "1001",
    "ROLE": "viewer",
    "URL": "https://a.example/x",
}
OTHERWISE = {"webhooks": "tests/cli/test_webhooks_listen.py tests hostile bytes"}
Ask = Callable[..., Result]


@pytest.fixture
def ask(tmp_path: Path, impostor: Impostor) -> Ask:
    """Return a function that runs a command on a service which gives every call the same answer."""
    credentials = Credentials(tmp_path / "taproof" / "credentials.json")
    credentials.replace(impostor.url, Credential(TOKEN, "tok_a", "a@b.example"))

    def ask(answer: object, *arguments: str) -> Result:
        impostor.default = (200, {}, json.dumps(answer).encode())
        command, environment = [*arguments, "--service", impostor.url], {"XDG_CONFIG_HOME": str(tmp_path)}
        return CliRunner().invoke(commands, command, env=environment, prog_name="taproof")

    return ask


def _remote_commands() -> Iterator[list[str]]:
    """Yield every command that acts on a service, with its arguments."""

    def walk(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
        if not hasattr(command, "commands"):
            yield path, command
        for name, each in getattr(command, "commands", {}).items():
            yield from walk(each, [*path, name])

    for path, command in walk(get_command(commands), []):
        options = {option for parameter in command.params for option in parameter.opts}
        if "--service" in options and path[0] not in OTHERWISE:
            arguments = [each for each in command.params if each.param_type_name == "argument"]
            values = [ARGUMENTS.get(each.metavar or "", "x") for each in arguments]
            yield [*path, *values, *(["--yes"] if "--yes" in options else [])]


REMOTE = list(_remote_commands())


@pytest.mark.parametrize("arguments", REMOTE, ids=[" ".join(each[:2]) for each in REMOTE])
def test_no_answer_controls_the_terminal(ask: Ask, arguments: list[str]) -> None:
    """No field of any type prints control characters, and each failure prints a sentence."""
    item = dict.fromkeys(FIELDS, EVIL)
    values: tuple[Any, ...] = (EVIL, 7, None, True, [item], [EVIL], {EVIL: EVIL}, [{}])
    for value in values:
        for more in ([], ["--json"]):
            result = ask(dict.fromkeys(FIELDS, value), *arguments, *more)
            assert result.exception is None or isinstance(result.exception, SystemExit)
            assert result.exit_code in {0, 1}, result.output
            assert _marks(result.output) <= {"\n", "\t"}
            assert TOKEN not in result.output


@pytest.mark.parametrize("arguments", REMOTE, ids=[" ".join(each[:2]) for each in REMOTE])
def test_another_program_is_not_believed(ask: Ask, arguments: list[str]) -> None:
    """A server that answers every path with 200, as some web applications do, is not reported as a success."""
    answers: tuple[object, ...] = ({}, [], "<!doctype html>")
    for answer in answers:
        result = ask(answer, *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "does not answer like a Taproof service" in result.stderr


def test_no_field_that_only_an_operator_gets_controls_the_terminal(ask: Ask) -> None:
    """`users erase` on the local database also prints a developer and a number of rows."""
    result = ask({"erased": True, "erased_rows": 5, "developer": EVIL}, "users", "erase", "1001", "--yes")
    assert result.exit_code == 0
    assert _marks(result.output) == {"\n"}


def _marks(text: str) -> set[str]:
    return {each for each in text if unicodedata.category(each) in {"Cc", "Cf", "Cs"}}


def test_a_cursor_is_safe_to_paste(ask: Ask) -> None:
    cursor = "x; touch pwned $(id) #"
    result = ask({"entries": [], "next_cursor": cursor}, "audit")
    assert result.exit_code == 0
    assert shlex.split(result.stderr, comments=True)[-1] == cursor


def test_an_endless_list_is_refused(ask: Ask) -> None:
    """Printing millions of lines would take minutes and gigabytes of memory."""
    texts = dict.fromkeys(("id", "action", "actor", "via", "via_id", "address", "subject"), "")
    entry = {**texts, "created_at": "2026-11-20T08:00:00Z", "details": {}}
    assert ask({"entries": [entry]}, "audit").exit_code == 0
    result = ask({"entries": [entry] * 10_001}, "audit")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "does not answer like a Taproof service" in result.stderr
    result = ask({"projects": [{}] * 10_001}, "projects", "list")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "too many projects" in result.stderr


def test_a_test_event_without_an_attempt_was_not_delivered(ask: Ask) -> None:
    delivery = {"id": "evt_a", "event": "auth.confirmed", "created_at": "2026-11-20T08:00:00Z", "status": "due"}
    project = "proj_" + "a" * 22
    answer: dict[str, Any] = {
        **delivery,
        "project_id": project,
        "session_id": None,
        "next_attempt_at": None,
        "sending": False,
        "finished_at": None,
    }
    answer |= {"interrupted_attempts": 0, "attempts": []}
    result = ask(answer, "webhooks", "trigger", "auth.confirmed", "--project", project)
    assert (result.exit_code, result.stderr) == (1, "")
    assert "not delivered, no response" in result.stdout


def test_an_export_that_breaks_off_fails(ask: Ask) -> None:
    """An incomplete export must not be taken for a complete one."""
    result = ask({"messenger_id": "1001", "sessions": []}, "users", "export", "1001")
    assert result.exit_code == 1
    assert result.stderr.startswith("The export is not complete")
