"""`taproof webhooks listen` as a real process that receives events over real HTTP."""

import asyncio
import gzip
import json
import re
import signal
import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.cli.conftest import Run, RunJson
from tests.cli.listening import SECRET, SESSION_TOKEN, Listen, event, milliseconds, signed

from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_webhook_secret
from taproof.storage.sqlite.store import SqliteStorage

CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


# ---- what it shows


def test_a_person_reads_what_came_and_that_it_checks(listen: Listen) -> None:
    """Each event shows its time, type, id, both signatures, their age, and the body with a shortened session token."""
    listener = listen()
    body = event()
    assert listener.post(body, signed(body)) == (204, None)
    assert listener.post(body, signed(body, seconds=-7)) == (204, None)
    first, again = "\n".join(listener.stop()).split("\n\n")
    lines = first.split("\n")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  auth\.confirmed  evt_1", lines[0])
    assert lines[1] == "  X-Service-Signature: valid"
    assert re.fullmatch(r"  Standard Webhooks: valid, signed [0-5] s ago", lines[2])
    assert lines[3] == "  Answered 204."
    assert json.loads("\n".join(lines[4:])) == json.loads(body) | {"session_token": "UTabcd…"}
    assert lines[5] == '    "id": "evt_1",'
    assert '    "messenger_name": "Ада",' in lines
    assert again.split("\n")[0].endswith("  auth.confirmed  evt_1  again")
    assert re.search(r"signed ([7-9]|1\d) s ago", again)


def test_a_program_reads_one_line_of_json_for_each_event(listen: Listen) -> None:
    """With --json, stdout has one line of JSON for each event; --show-tokens prints the whole session token."""
    listener = listen("--json", "--show-tokens")
    body = event()
    listener.post(body, signed(body))
    (shown,) = listener.stop_json()
    assert re.fullmatch(r"\d{4}-.*Z", shown.pop("time"))
    assert shown.pop("age_seconds") in range(6)
    assert shown == {
        "event": "auth.confirmed",
        "id": "evt_1",
        "again": False,
        "verified": True,
        "x_service_signature": "valid",
        "standard_webhooks": "valid",
        "answered": 204,
        "error": None,
        "forwarded": None,
        "body": json.loads(body),
    }


def test_another_status_can_be_answered_to_see_retries(listen: Listen) -> None:
    """--status sets the answer to each event; the retry is marked as a repetition."""
    listener = listen("--json", "--status", "500")
    for event_id in ("evt_1", "evt_2", "evt_1"):
        body = event(event_id)
        assert listener.post(body, signed(body, event_id=event_id)) == (500, None)
    shown = listener.stop_json()
    assert [(each["id"], each["again"], each["answered"], each["verified"]) for each in shown] == [
        ("evt_1", False, 500, True),
        ("evt_2", False, 500, True),
        ("evt_1", True, 500, True),
    ]


def test_session_tokens_are_credentials(listen: Listen) -> None:
    """No output contains a whole session token unless asked for, whether the event verifies or not."""
    listener = listen()
    body = event()
    listener.post(body, signed(body))
    listener.post(body, {})
    listener.post(body, signed(body, new_webhook_secret(system_entropy)))
    listener.post(body.replace(b'"id"', b'"id" "broken"'), {})
    later = event(event="auth.later")
    assert listener.post(later, signed(later)) == (204, None)
    listener.stop()
    assert "auth.later" in listener.out
    assert listener.out.count("auth.confirmed") > 3
    assert SESSION_TOKEN not in listener.out + listener.err
    assert SESSION_TOKEN[:12] not in listener.out + listener.err


# ---- what does not verify


def test_only_what_verified_has_come_before(listen: Listen) -> None:
    """A stranger who guesses an id cannot have the real event marked as a repetition.

    A replay of a verified event is.
    """
    listener = listen("--json")
    body = event()
    for headers in ({}, {}, signed(body), signed(body, seconds=-400), signed(body)):
        listener.post(body, headers)
    assert [(each["verified"], each["again"]) for each in listener.stop_json()] == [
        (False, False),
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]


def test_what_does_not_verify_is_answered_401_and_said_why(listen: Listen) -> None:
    """Another secret or body, an old or early time, and a missing header are each refused with their own sentence."""
    listener = listen("--json")
    body, other = event(), new_webhook_secret(system_entropy)
    fits = signed(body)
    cases: list[tuple[bytes, dict[str, str], str, str, str]] = [
        (body, signed(body, other), "invalid", "invalid", "secret"),
        (body + b" ", fits, "invalid", "invalid", "body exactly as received"),
        (body, signed(body, seconds=-400), "valid", "too_old", "too long ago"),
        (body, signed(body, seconds=400), "valid", "from_future", "in the future"),
        (body, {}, "missing", "missing", "not signed"),
        (body, fits | {"webhook-timestamp": "soon"}, "valid", "malformed", "webhook-timestamp"),
        (body, {"X-Service-Signature": "00"}, "invalid", "missing", "X-Service-Signature matches no given secret"),
        (b"[]", signed(b"[]"), "malformed", "malformed", "JSON object"),
    ]
    reasons = []
    for sent, headers, _, _, _ in cases:
        status, reason = listener.post(sent, headers)
        assert status == 401
        reasons.append(reason)
    for (sent, _, service, standard, says), reason, shown in zip(cases, reasons, listener.stop_json(), strict=True):
        assert reason == shown["error"]
        assert says in (reason or "")
        assert shown["verified"] is False
        assert shown["answered"] == 401
        assert (shown["x_service_signature"], shown["standard_webhooks"]) == (service, standard)
        assert shown["body"] == sent.decode().replace(SESSION_TOKEN, "[redacted]")


def test_either_signature_alone_is_enough(listen: Listen) -> None:
    """If the standard headers are present, they decide; otherwise X-Service-Signature does, as in `verify_webhook`."""
    listener = listen("--json")
    body = event()
    headers = signed(body)
    service = {"X-Service-Signature": headers.pop("X-Service-Signature")}
    assert listener.post(body, headers)[0] == 204
    assert listener.post(body, service)[0] == 204
    shown = listener.stop_json()
    assert [(each["x_service_signature"], each["standard_webhooks"]) for each in shown] == [
        ("missing", "valid"),
        ("valid", "missing"),
    ]
    assert shown[1]["age_seconds"] is None


def test_only_posts_of_at_most_64_kib_are_taken(listen: Listen) -> None:
    """Any path works; another method is answered 405, and a longer body 413 as soon as it exceeds the limit."""
    listener = listen("--json")
    assert listener.request(None, {}, "GET", "/")[0] == 405
    assert listener.allow == "POST"
    assert listener.request(b"", {}, "PUT")[0] == 405
    assert listener.request(b"x" * 65_536, {}, path="/a/../%2e%2e//b")[0] == 401
    assert listener.request(b"x" * 65_537, {})[0] == 413
    assert listener.request(iter([b"x" * 40_000] * 2), {})[0] == 413  # In chunks, so of no length known before.
    assert listener.request(gzip.compress(bytes(1_000_000)), {"Content-Encoding": "gzip"})[0] == 401
    shown = listener.stop_json()
    assert [each["answered"] for each in shown] == [401, 401]
    assert all(len(each["body"]) <= 8_000 for each in shown)
    assert listener.err.count("A request was answered 413: The body is longer than 64 KiB.") == 2


# ---- hostile bytes


def test_hostile_bytes_never_reach_the_terminal(listen: Listen) -> None:
    """Nothing in a body or a header makes the output move the cursor, hide text or look like another line."""
    listener = listen()
    evil = "\x1b[2J\x9b31m\x07\r\nFAKE\x00\u202e\u2028\u2066\ud800é"
    # Half a surrogate pair is no text, and the service stores none.
    honest = event(messenger_name=evil.replace("\ud800", ""))
    assert listener.post(honest, signed(honest))[0] == 204
    posing = event(event=evil, id=evil)
    assert listener.post(posing, signed(posing))[0] == 401
    assert listener.post(evil.encode(errors="surrogatepass") + b"\n\xff\nFAKE", {})[0] == 401
    assert listener.post(b"[" * 60_000, {})[0] == 401
    assert listener.post(b'{"event": ' + b"[" * 900 + b"]" * 900 + b', "id": 1e999}', {})[0] == 401
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nwebhook-id: \x9b31m\xff\r\nwebhook-timestamp: \xb2\r\n"
    for raw in (
        head + b"X-Service-Signature: \xc2\x9b31m\r\n\r\n{}",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /\x1b[2J HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: \x1b[2J\r\n\r\n",
        b"\x1b[2JT /\x9b HTTP/1.1\r\nHost: \x1b[2J\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", listener.port), timeout=60) as connection:
            connection.sendall(raw)
            assert re.match(rb"HTTP/1\.\d 40[01]", connection.recv(65_536)), raw
    listener.stop()
    assert not CONTROLS.search(listener.out + listener.err), repr(listener.out + listener.err)
    assert not re.search(r"^\s*FAKE", listener.out, re.MULTILINE)
    assert "\\u001b[2J\\u009b31m\\u0007" in listener.out
    assert "Traceback" not in listener.err


# ---- where the secrets come from


def test_a_projects_secrets_are_followed_through_a_rotation(tmp_path: Path, run_json: RunJson, listen: Listen) -> None:
    """--project reads the secrets from the store for each event.

    Both are accepted during the overlap, then only the next one.
    """
    run_json("developers", "add", "ada@example.com", "--sandbox")
    project = run_json("projects", "create", "Shop", "--sandbox")
    developer = run_json("developers", "list", "--sandbox")["developers"][0]["id"]
    current, following = project["webhook_secret"], new_webhook_secret(system_entropy)
    listener = listen("--project", project["id"], "--sandbox", "--json")
    body = event()
    assert listener.post(body, signed(body, current))[0] == 204
    assert listener.post(body, signed(body, following))[0] == 401

    storage = SqliteStorage.open(tmp_path / "taproof-sandbox.db", milliseconds())
    encryptor = Encryptor((tmp_path / "taproof-sandbox.db.key").read_text())
    encrypted = encryptor.encrypt(following, associated_data_of("webhook_secret", project["id"]), system_entropy)

    async def rotate() -> bool:
        now = milliseconds()
        return await storage.projects.rotate_webhook_secret(developer, project["id"], encrypted, now, now + 3_600_000)

    async def promote() -> bool:
        return await storage.projects.promote_webhook_secret(developer, project["id"], milliseconds())

    async def delete() -> bool:
        done = await storage.projects.delete_project(developer, project["id"])
        await storage.close()
        return done

    assert asyncio.run(rotate())
    assert listener.post(body, signed(body, current, following))[0] == 204
    assert listener.post(body, signed(body, following))[0] == 204
    assert asyncio.run(promote())
    assert listener.post(body, signed(body, current))[0] == 401
    assert listener.post(body, signed(body, following))[0] == 204
    assert asyncio.run(delete())
    status, reason = listener.post(body, signed(body, following))
    assert status == 503
    assert "no such project" in str(reason)
    listener.stop()
    assert project["webhook_secret"] not in listener.out + listener.err
    assert following not in listener.out + listener.err


def test_a_file_of_secrets_is_read_anew(tmp_path: Path, listen: Listen) -> None:
    """Each secret in the file is accepted, including one that is added later."""
    first, second = new_webhook_secret(system_entropy), new_webhook_secret(system_entropy)
    file = tmp_path / "secrets"
    file.write_text(f"\n{first}\n{SECRET}\n")
    listener = listen("--secret-file", "secrets")
    body = event()
    assert listener.post(body, signed(body, SECRET))[0] == 204
    assert listener.post(body, signed(body, second))[0] == 401
    file.write_text(second)
    assert listener.post(body, signed(body, second))[0] == 204
    file.write_text("nonsense")
    status, reason = listener.post(body, signed(body, second))
    assert status == 503
    assert "nonsense" not in str(reason)
    listener.stop()


def test_secrets_can_be_typed_in(listen: Listen) -> None:
    """`--secret-file -` reads standard input, so that a secret need not be in a file or on the command line."""
    listener = listen("--secret-file", "-", typed=f"{SECRET}\n")
    body = event()
    assert listener.post(body, signed(body))[0] == 204
    listener.stop()


# ---- how it starts and ends


def test_it_says_what_to_do_next(run_json: RunJson, listen: Listen) -> None:
    """The printed calls can be copied: they have the project's id and, in the sandbox, this receiver's address.

    Where the service is, nobody has told this program: that is for the shell to fill in.
    """
    run_json("developers", "add", "ada@example.com", "--sandbox")
    project = run_json("projects", "create", "Shop", "--sandbox")["id"]
    listener = listen("--project", project, "--sandbox")
    assert listener.stop(signal.SIGTERM) == []
    path = f"$TAPROOF_BASE_URL/api/v1/dev/projects/{project}"
    assert f'curl -X PATCH "{path}" ' in listener.err
    assert f"""-d '{{"webhook_url": "http://127.0.0.1:{listener.port}/"}}'""" in listener.err
    assert f'curl -X POST "{path}/webhook-test" ' in listener.err
    assert "public https://" in listener.err


def test_a_real_service_is_not_told_to_send_to_loopback(project: dict[str, str], listen: Listen) -> None:
    """A real service refuses loopback, so the printed call has a placeholder for a tunnel's address."""
    listener = listen("--project", project["id"])
    listener.stop()
    assert '"webhook_url": "https://YOUR-TUNNEL/"' in listener.err


def test_it_ends_though_somebody_holds_a_request_open(listen: Listen) -> None:
    """Ctrl+C and SIGTERM end it with 0, even while a client holds a request open."""
    listener = listen()
    with socket.create_connection(("127.0.0.1", listener.port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        listener.stop(signal.SIGTERM)
    assert "Traceback" not in listener.err


def test_it_ends_when_nobody_reads_its_output_any_more(listen: Listen) -> None:
    """Behind `| head`, it stops when the reader ends, instead of accepting events that nobody sees."""
    listener = listen()
    assert listener.process.stdout is not None
    listener.process.stdout.close()
    body = event()
    assert listener.post(body, signed(body))[0] == 503
    assert listener.process.wait(20) == 1
    assert listener.process.stderr is not None
    assert b"Traceback" not in listener.process.stderr.read()


def test_a_taken_port_gets_one_sentence(run: Run, tmp_path: Path) -> None:
    """The sentence names the port and how to choose another."""
    (tmp_path / "secret").write_text(SECRET)
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        taken = run("webhooks", "listen", "--secret-file", "secret", "--port", str(other.server_port))
    assert taken.exit_code == 1
    assert taken.stderr.startswith(f"Cannot listen on port {other.server_port} of 127.0.0.1 (Address already in use)")
    assert "--port" in taken.stderr
    assert taken.stderr.count("\n") == 1
    nowhere = run("webhooks", "listen", "--secret-file", "secret", "--host", "nowhere.invalid")
    assert nowhere.exit_code == 1
    assert nowhere.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "either --project"),
        (["--project", "proj_aaaaaaaaaaaaaaaaaaaa", "--secret-file", "secret"], 2, "either --project"),
        (["--project", "shop"], 2, "--project must be proj_ followed by 16 to 40 letters and digits."),
        (["--project", "proj_aaaaaaaaaaaaaaaaaaaa"], 1, "no such project"),
        (["--project", "proj_aaaaaaaaaaaaaaaaaaaa", "--sandbox"], 1, "Run this command in the directory"),
        (["--secret-file", "nowhere"], 1, "nowhere cannot be read: No such file or directory."),
        (["--secret-file", "key"], 1, "secret key (sk_…)"),
        (["--secret-file", "words"], 1, "words must contain only webhook secrets, one per line"),
        (["--secret-file", "empty"], 1, "at least one"),
        (["--secret-file", "secret", "--status", "100"], 2, "--status must be an HTTP status from 200 to 599."),
        (["--secret-file", "secret", "--port", "x"], 2, "--port must be a whole number from 0 to 65535."),
    ],
)
def test_a_mistake_gets_one_sentence(
    run: Run, run_json: RunJson, tmp_path: Path, arguments: list[str], code: int, says: str
) -> None:
    """Unusable options are reported before anything is opened, without values that may be secret."""
    run_json("developers", "add", "ada@example.com")
    for name, text in {"secret": SECRET, "key": "sk_canary", "words": "canary\xff", "empty": " \n"}.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    result = run("webhooks", "listen", *arguments)
    assert result.exit_code == code
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert "canary" not in result.stderr
