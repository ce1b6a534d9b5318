"""Call the service for `canary_walk.py`, and record every secret and every answer."""

import base64
import hashlib
import http.server
import itertools
import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from tests.e2e.canary_search import Canary, phone_canary, secret_canary, text_canary
from tests.e2e.conftest import Developer, OwnProject, Phone, Service

SHARE = "Share my phone number"
WITHOUT = "Continue without"
PATIENCE = 60.0
MASTER_KEYS = [base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(2)]
# Numbers that a real phone could have. Each one enters the service in a different way.
PHONES = {
    "own contact": "+4915117304921",
    "own contact, no plus": "4915784620317",
    "own contact that was not wanted": "+4917693518204",
    "own contact of who declined": "+4916097421835",
    "own contact, never given": "+4915908273641",
    "own contact of who was erased": "+4915253186407",
    "old number, forwarded": "+4915228640193",
    "foreign contact": "+4917048213965",
    "typed number": "+4915542087316",
    "number in an error": "+4917561938240",
}


@dataclass
class Walk:
    """The record of one run: everything that must not appear, and every answer of the service."""

    service: Service
    database: str
    """The URL of the service's database."""
    secrets: dict[str, str] = field(default_factory=dict)
    answers: list[httpx.Response] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    """The output of commands."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of received webhooks."""
    names: list[str] = field(default_factory=list)
    """Values that the database keeps in the clear, and that no log, metric or error may contain."""

    def canaries(self) -> list[Canary]:
        phones = [phone_canary(name, number) for name, number in PHONES.items()]
        return [*phones, *(secret_canary(name, secret) for name, secret in self.secrets.items())]

    def texts(self) -> list[Canary]:
        return [*self.canaries(), *(text_canary("name", name) for name in self.names)]

    def errors(self) -> list[httpx.Response]:
        return [answer for answer in self.answers if answer.status_code >= 400]


@contextmanager
def echoing_receiver(walk: Walk, status: int) -> Iterator[str]:
    """Yield the URL of a receiver that echoes requests with their headers: storing its answer would leak them."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            walk.events.append(json.loads(body))
            self.send_response(status, body.decode("latin-1").replace("\n", " "))
            self.send_header("X-Echo", base64.b64encode(body).decode())
            self.end_headers()
            self.wfile.write(body + bytes(self.headers))

        def log_message(self, *_: object) -> None:
            """Suppress the log on stderr."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    server.shutdown()
    server.server_close()


class Walker:
    """Walk through a service and record everything in `walk`."""

    def __init__(self, client: httpx.Client, walk: Walk) -> None:
        client.event_hooks = {"response": [self._note]}
        self.client = client
        self.walk = walk
        self.developer = Developer(client, walk.service.access_token)
        self._numbers = itertools.count(1)
        walk.secrets |= {"access token": walk.service.access_token}
        walk.secrets |= {f"master key {index}": key for index, key in enumerate(MASTER_KEYS, 1)}

    def _note(self, answer: httpx.Response) -> None:
        answer.read()
        # The simulated messenger is not the service: its answers contain tokens, names and numbers by design.
        if not answer.request.url.path.startswith("/sandbox/"):
            self.walk.answers.append(answer)

    def note(self, name: str, secret: str) -> str:
        """Record a secret under a unique name."""
        self.walk.secrets[f"{name} {next(self._numbers)}"] = secret
        return secret

    def messenger(self, path: str, body: dict[str, Any], status: int = 200) -> Any:
        answer = self.client.post(f"/sandbox/{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def make_project(self, name: str, **fields: Any) -> OwnProject:
        project = self.developer.create_project(name, **fields)
        self.note("secret key", project.secret_key)
        self.note("webhook secret", project.webhook_secret)
        return project

    def start(self, project: OwnProject, verifier: str | None = None, **more: str) -> dict[str, str]:
        """Start a sign-in from a page, and record its token and its verifier, if any."""
        body = {"project_id": project.id, **more}
        if verifier is not None:
            digest = hashlib.sha256(self.note("code verifier", verifier).encode()).digest()
            body["code_challenge"] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            body["code_challenge_method"] = "S256"
        headers = {"Origin": "https://shop.example", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}
        answer = self.client.post("/api/v1/generate/public", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        session: dict[str, str] = answer.json()
        self.note("session token", session["session_token"])
        return session

    def read(
        self, project: OwnProject, session: dict[str, str], verifier: str | None = None, **more: str
    ) -> dict[str, Any]:
        body = {"project_id": project.id, "session_token": session["session_token"], **more}
        answer = self.client.post(
            "/api/v1/verify/public", json=body | ({"code_verifier": verifier} if verifier else {})
        )
        result: dict[str, Any] = answer.json()
        if "proof" in result:
            self.note("proof", result["proof"].rpartition(".")[2])
        return result

    def chat(self, phone: Phone, bot: str | None = None) -> "Chat":
        return Chat(self, phone, {} if bot is None else {"bot": bot})

    def until(self, path: str, done: Any) -> Any:
        """Poll the developer API until it returns the expected answer."""
        deadline = time.monotonic() + PATIENCE
        while not done(answer := self.developer.ask("GET", path)):
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)
        return answer

    def command(self, *arguments: str) -> str:
        """Run a command on the service's database, and record its output."""
        service = self.walk.service
        done = subprocess.run(
            [sys.executable, "-m", "taproof", *arguments, "--database", self.walk.database],
            cwd=service.directory,
            env=service.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.walk.outputs.append(done.stdout + done.stderr)
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass
class Chat:
    """A user's chat with one bot."""

    walker: Walker
    phone: Phone
    bot: dict[str, str]

    def do(self, act: str, **body: Any) -> Any:
        """Act, then wait for the bot's answer."""
        waits = {} if act in {"open", "tap"} else {"wait": 30}
        bot = {} if act == "open" else self.bot
        answer = self.walker.messenger(f"users/{self.phone.messenger_id}/{act}", {**body, **waits, **bot})
        assert answer["answered"], act
        return answer

    def open_and(self, session: dict[str, str], button: str) -> None:
        self.do("open", deeplink=session["deeplink"])
        self.do("tap", button=button)
