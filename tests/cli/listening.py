"""`taproof webhooks listen` as a process, and the events that a service would post to it."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.output_schema import validate

from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_webhook_secret
from taproof.core.signature import signature_headers

COMMAND = [sys.executable, "-m", "taproof", "webhooks", "listen", "--port", "0"]
SECRET = new_webhook_secret(system_entropy)
SESSION_TOKEN = "UTabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO"


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


def event(event_id: str = "evt_1", **fields: Any) -> bytes:
    """Return the body of a confirmed sign-in."""
    return json.dumps({
        "id": event_id,
        "event": "auth.confirmed",
        "project_id": "proj_1",
        "session_token": SESSION_TOKEN,
        "messenger_id": "42",
        "messenger_name": "Ада",
        "messenger_username": None,
        "confirmed_at": "2026-11-20T22:44:03.127Z",
        **fields,
    }).encode()  # fmt: skip


def signed(body: bytes, *secrets: str, event_id: str = "evt_1", seconds: int = 0) -> dict[str, str]:
    """A running command."""
    return signature_headers(event_id, body, secrets or [SECRET], milliseconds() + seconds * 1000)


class Listener:
    """A running command."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        assert process.stderr is not None
        self.first_line = process.stderr.readline().decode()
        found = re.match(r"Listening on http://127\.0\.0\.1:(\d+)/", self.first_line)
        assert found, self.first_line
        self.port = int(found[1])
        self.out, self.err = "", ""

    def request(
        self, body: Any, headers: dict[str, str], method: str = "POST", path: str = "/hooks?x=%00"
    ) -> tuple[int, Any]:
        """Send a request; return the status and the body of the answer as JSON, None when there is no body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            self.allow, self.retry_after = answer.getheader("Allow"), answer.getheader("Retry-After")
            text = answer.read()
            return answer.status, json.loads(text) if text else None

    def post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str | None]:
        """POST, and return the status and the reason phrase."""
        status, answer = self.request(body, headers)
        assert answer is None or answer.keys() == {"error"}
        return status, answer and answer["error"]

    def stop(self, number: signal.Signals = signal.SIGINT) -> list[str]:
        """Stop it as an operator does, assert success, and return the printed lines."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        self.out, self.err = out.decode(), self.first_line + err.decode()
        assert self.process.returncode == 0, self.err
        assert SECRET not in self.out + self.err
        return self.out.splitlines()

    def stop_json(self) -> list[Any]:
        """Stop it as `stop` does, with --json, and return the parsed lines."""
        lines = [json.loads(line) for line in self.stop()]
        for line in lines:
            validate(line, "webhooks", "listen")
        return lines


Listen = Callable[..., Listener]


@pytest.fixture
def listen(tmp_path: Path) -> Iterator[Listen]:
    """Start the command, with the secret in a file unless told otherwise."""
    processes = []
    (tmp_path / "secret").write_text(f"{SECRET}\n")

    def start(*arguments: str, typed: str = "") -> Listener:
        if not {"--project", "--secret-file"} & set(arguments):
            arguments = ("--secret-file", "secret", *arguments)
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # So that what is not read line by line is left to communicate().
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )
        processes.append(process)
        assert process.stdin is not None
        process.stdin.write(typed.encode())
        process.stdin.close()
        process.stdin = None  # Or communicate() would write to it.
        return Listener(process)

    yield start
    for process in processes:
        process.kill()
        # pytest shows it with a failure.
        sys.stderr.write(process.communicate()[1].decode())
