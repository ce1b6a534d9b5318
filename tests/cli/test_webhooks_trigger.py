"""`taproof webhooks listen --forward-to` and `trigger`, with a real application on this machine."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from tests.cli.conftest import Run, RunJson
from tests.cli.listening import SECRET, Listen, event, signed
from tests.e2e.conftest import Service, launch
from tests.impostor import Impostor

from taproof import verify_webhook
from taproof.contract.delivery import EventType
from taproof.core.example_events import EXAMPLE_MESSENGER_ID


@pytest.fixture
def application(impostor: Impostor) -> Impostor:
    """An application that takes every event; with another status, it also sends these headers."""
    become(impostor, 204)
    return impostor


def become(application: Impostor, status: int) -> None:
    application.default = (status, {"Location": "/elsewhere", "Retry-After": "60"}, b"")


def hooks(application: Impostor) -> str:
    return f"{application.url}/hooks?a=%2F"


# ---- listen --forward-to


def test_a_valid_event_is_forwarded_as_it_came(listen: Listen, application: Impostor) -> None:
    """The application gets the original body and headers, and its status is the answer. Redirects are not followed."""
    listener = listen("--forward-to", hooks(application), "--json")
    body = event(messenger_name="\u202eA\x00")
    headers = {"Content-Type": "application/json", "User-Agent": "Taproof/9", "X-Proxy": "a", **signed(body)}
    for status in (204, 302, 410, 503):
        become(application, status)
        retry_after = "60" if status == 503 else None
        assert (listener.post(body, headers), listener.retry_after) == ((status, None), retry_after)
    for status in (101, 999):
        become(application, status)
        own_proxy = {"Connection": "X-Hop", "X-Hop": "a", "Proxy-Authorization": "a"}
        assert listener.post(body, {**headers, **own_proxy}) == (502, None)
    forged = {**headers, "webhook-signature": "v1,AAAA"}
    assert listener.post(body, forged)[0] == 401
    lines = listener.stop_json()
    assert len(application.received) == 6
    for line, got, sent in application.received:
        assert (line, sent) == ("POST /hooks?a=%2F", body)
        assert [value for name, value in got if name.lower() == "host"] == [hooks(application).split("/")[2]]
        own = {name.lower(): value for name, value in got if name.lower() not in {"host", "content-length"}}
        assert own == {"accept-encoding": "identity", **{name.lower(): value for name, value in headers.items()}}
    assert [each["forwarded"] and each["forwarded"]["status"] for each in lines] == [
        *(204, 302, 410, 503, 101, 999, None)
    ]
    assert [each["answered"] for each in lines] == [204, 302, 410, 503, 502, 502, 401]


def test_an_application_that_is_down_is_a_502(listen: Listen, application: Impostor) -> None:
    """The service then sends the event again."""
    application.stop()
    listener = listen("--forward-to", hooks(application))
    body = event()
    assert listener.post(body, signed(body)) == (502, None)
    (line,) = [each for each in listener.stop() if "Forwarded" in each]
    assert "The connection was refused." in line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--forward-to", "http://example.com/"], "must be a URL of this machine"),
        (["--forward-to", "http://10.0.0.1/"], "must be a URL of this machine"),
        (["--forward-to", "http://127.0.0.1.example.com/"], "must be a URL of this machine"),
        (["--forward-to", "http://user@127.0.0.1/"], "without a user name"),
        (["--forward-to", "ftp://127.0.0.1/"], "http:// or https://"),
        (["--forward-to", "http://[::1/"], "http:// or https://"),
        (["--forward-to", "http://127.0.0.1:99999/"], "http:// or https://"),
        (["--forward-to", "http://127.0.0.1/", "--status", "200"], "either --forward-to"),
        (["--service", "https://signin.example.com"], "--service needs --project"),
    ],
)
def test_events_are_forwarded_to_this_machine_only(run: Run, tmp_path: Path, arguments: list[str], says: str) -> None:
    """They contain session tokens and identities."""
    (tmp_path / "secret").write_text(SECRET)
    result = run("webhooks", "listen", "--secret-file", "secret", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


# ---- trigger


@pytest.fixture
def project(run_json: RunJson, application: Impostor) -> dict[str, Any]:
    """A project in this directory's sandbox database, whose webhook goes to the application."""
    run_json("developers", "add", "ada@example.com", "--sandbox")
    options = [
        "--webhook-url",
        hooks(application),
        "--webhook-event",
        "auth.cancelled",
        "--webhook-event",
        "auth.expired",
    ]
    project: dict[str, Any] = run_json(
        "projects", "create", "--developer", "ada@example.com", "Shop", "--sandbox", *options
    )
    assert project["webhook_events"] == ["auth.cancelled", "auth.expired"]
    return project


def check_last(application: Impostor, project: dict[str, Any], kind: str) -> dict[str, Any]:
    """Check that the last event verifies and is marked as a test; return its body."""
    _, headers, body = application.received[-1]
    verified = verify_webhook(body, dict(headers), project["webhook_secret"])
    assert (verified.type, verified.is_test, verified.project_id) == (kind, True, project["id"])
    assert verified.messenger_id in {None, EXAMPLE_MESSENGER_ID}
    assert ("test" in verified.data) is (kind != "webhook.test")
    return verified.data


def test_each_event_can_be_triggered(run_json: RunJson, application: Impostor, project: dict[str, Any]) -> None:
    """To the project's URL, where it is recorded, and to a URL of this machine, where it is not."""
    common = ["--sandbox", "--project", project["id"]]
    for kind in get_args(EventType):
        for to in ([], ["--to", hooks(application)]):
            sent = run_json("webhooks", "trigger", kind, *common, *to)
            assert sent == {
                "id": check_last(application, project, kind)["id"],
                "event": kind,
                "delivered": True,
                "status": 204,
                "duration_ms": sent["duration_ms"],
                "error": None,
            }
    assert len({json.loads(body)["id"] for _, _, body in application.received}) == 10


def test_the_commands_of_the_guide(run: Run, application: Impostor, project: dict[str, Any]) -> None:
    """Each command in docs/how-to/webhooks.md sends its event."""
    text = (Path(__file__).parents[2] / "docs" / "how-to/webhooks.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ \.venv/bin/taproof (webhooks trigger .*)$", text.replace("\\\n", ""), re.MULTILINE)
    for command in commands:
        with_values = command.replace("$TAPROOF_PROJECT_ID", project["id"])
        words = shlex.split(with_values.replace("http://127.0.0.1:9001/hooks/taproof", hooks(application)))
        result = run(*words)
        assert result.exit_code == 0, result.stderr
        check_last(application, project, words[2])
    assert len(application.received) == len(commands) == 2


@pytest.mark.parametrize("to", [False, True])
def test_a_refusal_ends_with_1(run: Run, application: Impostor, project: dict[str, Any], to: bool) -> None:  # noqa: FBT001 — drawn by pytest.
    """A test is sent once: no retries, and a 410 does not turn the webhook off."""
    become(application, 410)
    options = ["--sandbox", "--project", project["id"], *(["--to", hooks(application)] if to else [])]
    for _ in range(2):
        result = run("webhooks", "trigger", "auth.reported", *options)
        assert result.exit_code == 1
        assert "not delivered, HTTP 410" in result.stdout
    assert len(application.received) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["auth.signed_in", "--project", "proj_aaaaaaaaaaaaaaaaaaaa"], 2, "EVENT must be one of auth.confirmed, "),
        (["webhook.test", "--project", "shop"], 2, "--project must be proj_"),
        (["webhook.test", "--project", "proj_aaaaaaaaaaaaaaaaaaaa"], 1, "no such project"),
        (["webhook.test", "--project", "proj_aaaaaaaaaaaaaaaaaaaa", "--to", "a"], 2, "--to must be an http:// or"),
        (["webhook.test", "--project", "proj_aaaaaaaaaaaaaaaaaaaa", "--service", "https://a"], 1, "not signed in"),
    ],
)
def test_a_mistake_gets_one_sentence(
    run: Run, project: dict[str, Any], arguments: list[str], code: int, says: str
) -> None:
    """A mistake ends with one sentence, and no event is sent."""
    result = run("webhooks", "trigger", *arguments, "--sandbox")
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert project["id"]


# ---- with taproof login


def test_both_work_with_a_service_that_one_is_signed_in_to(
    tmp_path: Path, application: Impostor, monkeypatch: pytest.MonkeyPatch, listen: Listen
) -> None:
    """The secrets come from the service, and it sends the events of `trigger`. A revoked token gets a sentence."""
    (tmp_path / "service").mkdir()
    service = launch(tmp_path / "service")
    try:
        check_with_service(service, tmp_path, application, monkeypatch, listen)
    finally:
        service.stop()


def check_with_service(
    service: Service, home: Path, application: Impostor, monkeypatch: pytest.MonkeyPatch, listen: Listen
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    (home / "taproof").mkdir()
    known = {"access_token": service.access_token, "token_id": "tok_1", "email": "sandbox@localhost"}
    (home / "taproof" / "credentials.json").write_text(json.dumps({"services": {service.base_url: known}}))
    api, headers = f"{service.base_url}/api/v1/dev/projects", {"Authorization": f"Bearer {service.access_token}"}
    body = {"name": "Shop", "webhook_url": hooks(application)}
    project = httpx.post(api, json=body, headers=headers).json()
    options = ["--service", service.base_url, "--project", project["id"]]

    def trigger(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "taproof", "webhooks", "trigger", *arguments, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    for to in ([], ["--to", hooks(application)]):
        done = trigger("auth.confirmed", *to)
        assert done.returncode == 0, done.stderr
        check_last(application, project, "auth.confirmed")
    listener = listen(*options, "--forward-to", hooks(application))
    sent = event()
    assert listener.post(sent, signed(sent, project["webhook_secret"])) == (204, None)
    assert application.received[-1][2] == sent
    listener.stop()
    known["access_token"] = known["access_token"][:-1] + ("a" if known["access_token"][-1] != "a" else "b")
    (home / "taproof" / "credentials.json").write_text(json.dumps({"services": {service.base_url: known}}))
    refused = trigger("auth.confirmed")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.endswith(f"To sign in again: taproof login {service.base_url}\n")
    assert refused.stderr.count("\n") == 1
    assert known["access_token"] not in refused.stderr
