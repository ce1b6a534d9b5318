"""Run the real service as a separate process and call it over real HTTP; nothing in it is replaced.

All tests of a run share the sandbox `service`. Each test creates its own project, or its own developer if it counts
the developer's resources. `start_service` starts more services. A failed test shows the end of every log.
"""

import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import pytest
from tests.e2e.receiver import Receiver, receiving
from tests.loop_guard import guarded, new_reports
from tests.ports import free_port
from tests.server_logs import server_logs
from tests.waiting import PATIENCE, wait_until

TRUST = ssl.create_default_context()
"""For the tests' HTTP clients. Each would otherwise load all certificate authorities, which takes 40 ms."""
STOPPED_WITHIN = 30.0


@dataclass
class Service:
    """A `taproof serve` process. Its database is `directory / "taproof.db"`, created if it is missing."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes]
    environment: dict[str, str]
    project_id: str = ""
    """The project of the demo, owned by the sandbox's developer; "" without a sandbox."""
    access_token: str = ""
    """The access token of the sandbox's developer, whose plan is business."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.directory / "taproof.db"

    def screen(self) -> str:
        """Return everything printed to stdout so far."""
        return (self.directory / "stdout").read_text("utf-8")

    def log(self) -> str:
        """Return everything logged to stderr so far."""
        return (self.directory / "stderr").read_text("utf-8", errors="replace")

    def has_lost_its_port(self) -> bool:
        """Return whether the service ended because another program took its port after `free_port` had found it."""
        return self.process.poll() is not None and "Address already in use" in self.log()

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command of the command line on this service's database."""
        return subprocess.run(
            [sys.executable, "-m", "taproof", *arguments, "--database", f"sqlite:///{self.database}"],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def add_developer(self, email: str, plan: str = "free") -> str:
        """Add a developer while the service runs, and return an access token."""
        done = self.command("developers", "add", email, "--plan", plan, "--json")
        assert done.returncode == 0, done.stderr
        token: str = json.loads(done.stdout)["access_token"]
        return token

    def stop(self) -> int:
        """Send SIGTERM, wait, kill after a limit; return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


StartService = Callable[..., Service]


def launch(directory: Path, *arguments: str, sandbox: bool = True, **environment: str) -> Service:
    """Start a service on a free port and wait until it answers, which it does only once its store is open.

    It may not be ready: without a messenger, it never is.

    Args:
        directory: where its database, stdout and stderr go.
        arguments: further options of `taproof serve`.
        sandbox: whether with the sandbox messenger.
        environment: such as `TAPROOF_LOG_LEVEL="debug"`.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.upper().startswith("TAPROOF_")}
    # Tests call more often than any developer does. tests/api/limits/test_developers.py tests the limits.
    inherited |= {"TAPROOF_DEVELOPER_LIMIT": "off", "TAPROOF_DEVELOPER_WRITE_LIMIT": "off"}
    service = _start(directory, inherited | environment, *(["--sandbox"] if sandbox else []), *arguments)
    while service.has_lost_its_port():
        service = _start(directory, service.environment, *(["--sandbox"] if sandbox else []), *arguments)
    if sandbox:
        service.project_id = re.findall(r"\bproj_[A-Za-z0-9]+", service.screen())[0]
        service.access_token = re.findall(r"\btap_[A-Za-z0-9]+", service.screen())[0]
    return service


def _start(directory: Path, environment: dict[str, str], *arguments: str) -> Service:
    """Start a service on a free port, and wait until it answers or has ended because its port is in use."""
    port = free_port()
    command = [*guarded(directory / "long_steps"), "serve", "--port", str(port)]
    command += ["--database", f"sqlite:///{directory / 'taproof.db'}", *arguments]
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=out, stderr=err)
    service = Service(directory, port, process, environment)
    server_logs[directory / "stderr"] = process
    try:
        _wait_until_it_answers(service)
    except BaseException:
        service.stop()
        raise
    return service


def wait_for_server(process: "subprocess.Popen[bytes]", url: str, output: Path, patience: float = PATIENCE) -> None:
    """Wait until a program answers without an error; otherwise end it. A failure shows the end of its output."""

    def answers() -> bool:
        assert process.poll() is None, "The program has ended."
        with contextlib.suppress(httpx.TransportError):
            return not httpx.get(url, verify=TRUST).is_error
        return False

    server_logs[output] = process
    try:
        wait_until(answers, f"an answer at {url}", patience)
    except AssertionError:
        process.terminate()
        raise


def _wait_until_it_answers(service: Service) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if service.process.poll() is not None:
            if service.has_lost_its_port():
                return
            break
        # The screen is printed just after the server listens. Reading it does not slow down the start.
        if "Ctrl+C" in service.screen():
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{service.base_url}/healthz", verify=TRUST).status_code == 200:
                    return
        time.sleep(0.05)
    pytest.fail(f"The service did not answer:\n{service.screen()}\n{service.log()[-150:]}")


@pytest.fixture(autouse=True)
def loop_is_never_held() -> Iterator[None]:
    """Fail a test if a service that `launch` started held its event loop for more than 50 ms during it."""
    yield
    if reports := new_reports():
        pytest.fail(reports, pytrace=False)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return the shared sandbox."""
    service = launch(tmp_path_factory.mktemp("service"))
    yield service
    service.stop()


@pytest.fixture
def start_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartService]:
    """Return a function that starts a service for this test; see `launch`. `directory` may be reused."""
    started = []

    def start(*arguments: str, directory: Path | None = None, sandbox: bool = True, **environment: str) -> Service:
        place = directory or tmp_path_factory.mktemp("own_service")
        started.append(launch(place, *arguments, sandbox=sandbox, **environment))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[httpx.Client]:
    """Return an HTTP client of the shared service without credentials."""
    with httpx.Client(base_url=service.base_url, timeout=60, verify=TRUST) as client:
        yield client


@dataclass
class Developer:
    """A developer's access to the API; paths are relative to /api/v1/dev."""

    client: httpx.Client
    access_token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.access_token}"}

    def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        return self.client.request(method, f"/api/v1/dev{path}", headers=self.headers, **request)

    def ask(self, method: str, path: str, **request: Any) -> Any:
        """Make a call that must succeed, and return its answer."""
        response = self.call(method, path, **request)
        assert response.status_code == 200, response.text
        return response.json()

    def create_project(self, name: str = "Shop", **fields: Any) -> "OwnProject":
        return OwnProject(self, self.ask("POST", "/projects", json={"name": name, **fields}))


@dataclass
class OwnProject:
    """A project with both of its secrets, as returned by its creation."""

    developer: Developer
    created: dict[str, Any]
    id: str = field(init=False)
    secret_key: str = field(init=False)
    webhook_secret: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = self.created["id"]
        self.secret_key = self.created["secret_key"]
        self.webhook_secret = self.created["webhook_secret"]

    def generate(self) -> dict[str, str]:
        """Start a public session and return `{session_token, deeplink, expires_at}`."""
        response = self.developer.client.post("/api/v1/generate/public", json={"project_id": self.id})
        assert response.status_code == 200, response.text
        answer: dict[str, str] = response.json()
        return answer

    def verify(self, session_token: str) -> dict[str, Any]:
        """Poll a session publicly."""
        body = {"project_id": self.id, "session_token": session_token}
        response = self.developer.client.post("/api/v1/verify/public", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def read(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.developer.ask("GET", f"/projects/{self.id}")
        return answer


@dataclass
class Phone:
    """A simulated user of the sandbox."""

    client: httpx.Client
    user: dict[str, Any]

    @property
    def messenger_id(self) -> str:
        return str(self.user["id"])

    def open(self, deeplink: str) -> list[dict[str, Any]]:
        """Open a sign-in link; return the chat's messages once the bot has replied."""
        answer = self.post("open", {"deeplink": deeplink})
        assert answer["answered"], "the bot did not reply"
        messages: list[dict[str, Any]] = answer["messages"]
        return messages

    def send(self, text: str) -> None:
        """Send a message to the bot, and wait for its answer."""
        assert self.post("send", {"text": text, "wait": 10})["answered"], "the bot did not answer"

    def tap(self, button: str, message_id: int | None = None) -> str | None:
        """Tap `Confirm`, `Cancel` or a button by its label, of the newest message with buttons unless one is named.

        Returns:
            What the bot showed above the chat, or None.
        """
        body: dict[str, Any] = {"button": button}
        answer = self.post("tap", body if message_id is None else body | {"message_id": message_id})
        assert answer["answered"], "the bot did not answer the tap"
        alert: str | None = answer["alert"]
        return alert

    def sign_in(self, session: dict[str, str], button: str = "Confirm") -> None:
        """Open the link of an answer of generate, and decide the session."""
        self.open(session["deeplink"])
        self.tap(button)

    def link_back(self) -> str | None:
        """Return the link of the button that leads back to the browser; None until the bot shows it after Confirm."""
        shown = self.client.get(f"/sandbox/users/{self.messenger_id}/messages").json()["messages"]
        buttons = [button for message in shown for row in message["inline_keyboard"] for button in row]
        return next((button["url"] for button in buttons if "#taproof_return=" in button.get("url", "")), None)

    def post(self, act: str, body: dict[str, Any]) -> dict[str, Any]:
        response = self.client.post(f"/sandbox/users/{self.messenger_id}/{act}", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


def make_bot(client: httpx.Client) -> dict[str, Any]:
    """Create a bot with the sandbox's @BotFather."""
    response = client.post("/sandbox/bots", json={"username": f"shop_{token_hex(6)}_bot"})
    assert response.status_code == 200, response.text
    made: dict[str, Any] = response.json()
    return made


NewPhone = Callable[..., Phone]


def make_phone(client: httpx.Client, first_name: str = "Ada", **fields: Any) -> Phone:
    """Create a simulated user; the fields are those of POST /sandbox/users."""
    response = client.post("/sandbox/users", json={"first_name": first_name, **fields})
    assert response.status_code == 200, response.text
    return Phone(client, response.json())


@pytest.fixture
def new_phone(client: httpx.Client) -> NewPhone:
    """Return a function that creates a simulated user of the shared service; see `make_phone`."""
    return lambda first_name="Ada", **fields: make_phone(client, first_name, **fields)


@pytest.fixture
def phone(new_phone: NewPhone) -> Phone:
    """Return a simulated user with every optional field. No two users share a username."""
    return new_phone("Ada", last_name="Lovelace", username=f"ada_{token_hex(8)}", language_code="en")


@pytest.fixture(scope="session")
def developer(service: Service, client: httpx.Client) -> Developer:
    """Return the sandbox's developer, on the business plan."""
    return Developer(client, service.access_token)


@pytest.fixture(scope="session")
def stranger(service: Service, client: httpx.Client) -> Developer:
    """Return another developer of the shared service, on the free plan, added with the command line."""
    return Developer(client, service.add_developer("stranger@example.com"))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a webhook receiver on loopback."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def project(developer: Developer) -> OwnProject:
    """Return a new project of the sandbox's developer."""
    return developer.create_project()
