"""Many processes and nodes share one store and one bot, and another one takes over when one of them dies."""

import base64
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from tests.conftest import Figure
from tests.e2e.conftest import TRUST, Service, StartService
from tests.e2e.raw_http import assert_refusals
from tests.ports import free_port
from tests.postgres_server import fresh_database
from tests.waiting import wait_until

BOT_TOKEN = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"
KEY = base64.b64encode(bytes(range(32))).decode()
PASSWORD = "a-password-5c1b"
TAKEN_OVER_WITHIN = 10.0

PATIENCE = 60.0


class BotApi:
    """A Bot API server that repeats updates until they are acknowledged. A call's address names its node.

    `silent` names a node whose messages are delayed, as on a slow network.
    """

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.silent = ""
        self.prompt: dict[str, Any] | None = None
        """The last message with buttons since the user's last message."""
        self.held = threading.Event()
        self._end = threading.Event()
        self._last_id = 900_000_000
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # The Bot API client sends every call as POST.
                _, node, _, method = self.path.split("/")
                given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                answer = json.dumps({"ok": True, "result": api.answer(node, method, given)}).encode()
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, node: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{node}"

    def answer(self, node: str, method: str, given: dict[str, Any]) -> Any:
        self.calls.append((node, method, given))
        if method == "getUpdates":
            offset = given.get("offset", 0)
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
            if not self.updates:
                self._end.wait(0.1)
            return list(self.updates)
        if method == "getMe":
            return {"id": 123456789, "is_bot": True, "first_name": "Shop", "username": "shop_bot"}
        if method in {"sendMessage", "editMessageText"}:
            if node == self.silent:
                self.held.set()
                self._end.wait(PATIENCE)
                return True  # The service has stopped or given up.
            text = unescape(re.sub(r"</?code>", "", given["text"]))
            bot = {"id": 123456789, "is_bot": True, "first_name": "Shop"}
            sent = {**_message(len(self.calls)), "from": bot, "text": text}
            if method == "sendMessage" and "reply_markup" in given:
                self.prompt = sent = {**sent, "reply_markup": given["reply_markup"]}
            return sent
        return True

    def pollers(self) -> set[str]:
        """Return the nodes that have polled since the last call."""
        calls, self.calls = self.calls, []
        return {node for node, method, _ in calls if method == "getUpdates"}

    def write(self, text: str) -> None:
        """The result."""
        self.prompt = None
        self._update(message={**_message(501), "from": _user(), "text": text})

    def tap(self, label: str) -> None:
        """Wait for the prompt that answers the last message, then tap one of its buttons."""
        prompt = wait_until(lambda: self.prompt, "the bot sends a prompt")
        buttons = [button for row in prompt["reply_markup"]["inline_keyboard"] for button in row]
        (data,) = [button["callback_data"] for button in buttons if button["text"] == label]
        self._update(callback_query={"id": "1", "from": _user(), "chat_instance": "1", "message": prompt, "data": data})

    def _update(self, **content: Any) -> None:
        self._last_id += 1
        self.updates = [*self.updates, {"update_id": self._last_id, **content}]


def _user() -> dict[str, Any]:
    return {"id": 11, "is_bot": False, "first_name": "Ada", "language_code": "en"}


def _message(message_id: int) -> dict[str, Any]:
    return {"message_id": message_id, "chat": {"id": 11, "first_name": "Ada", "type": "private"}, "date": 1_795_214_643}


@pytest.fixture
def bot_api() -> Iterator[BotApi]:
    api = BotApi()
    yield api
    api.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the URL of a database that several processes share."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'shared.db'}"
        return
    with fresh_database() as dsn:
        # The server accepts every connection; the password only serves to detect leaks.
        yield dsn.replace("postgres@", f"postgres:{PASSWORD}@")


StartNode = Callable[..., Service]


@pytest.fixture
def start_node(start_service: StartService, database: str, bot_api: BotApi) -> StartNode:
    """Return a function that starts a node; `name` identifies it to the Bot API server."""

    def start(name: str, *arguments: str, **environment: str) -> Service:
        settings = {
            "TAPROOF_BOT_TOKEN": BOT_TOKEN,
            "TAPROOF_BOT_API_URL": bot_api.url(name),
            "TAPROOF_MASTER_KEY": KEY,
            **environment,
        }
        return start_service("--database", database, *arguments, sandbox=False, **settings)

    return start


def command(database: str, *arguments: str) -> Any:
    """Run a command that must succeed, and return its answer."""
    done = subprocess.run(
        [sys.executable, "-m", "taproof", *arguments, "--json"],
        env=os.environ | {"TAPROOF_DATABASE_URL": database, "TAPROOF_MASTER_KEY": KEY},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    return json.loads(done.stdout)


def create_project(database: str) -> str:
    command(database, "developers", "add", "ada@example.com")
    project_id: str = command(database, "projects", "create", "--developer", "ada@example.com", "Shop")["id"]
    return project_id


def lines(service: Service, event: str) -> list[dict[str, Any]]:
    """Return the log lines of one event."""
    found = [json.loads(line) for line in service.log().splitlines() if f'"event": "{event}"' in line]
    return [line for line in found if line["event"] == event]


def leases(service: Service, event: str = "lease_taken") -> set[str]:
    """Return the first word of each lease: "project" is the lease for project bots."""
    return {line["lease"].split()[0] for line in lines(service, event)}


def ask(service: Service, verb: str, **body: str) -> dict[str, Any]:
    """Call a session endpoint on a new connection, so that any process may answer."""
    response = httpx.post(f"{service.base_url}/api/v1/{verb}/public", json=body, timeout=30, verify=TRUST)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def generate(service: Service, project_id: str) -> dict[str, Any]:
    """Start a session once the bot's name is known, which takes a moment."""

    def begun() -> httpx.Response | None:
        response = httpx.post(
            f"{service.base_url}/api/v1/generate/public", json={"project_id": project_id}, timeout=30, verify=TRUST
        )
        return response if response.status_code == 200 else None

    answer: dict[str, Any] = wait_until(begun, "a session is started").json()
    return answer


# ---- nodes


def test_two_nodes_and_one_bot(start_node: StartNode, database: str, bot_api: BotApi) -> None:
    """One node polls, any node serves; another takes over from a killed node, and each update has one effect.

    Nobody takes over while the leader lives. After a kill the takeover takes at most ten seconds, after a stop none.
    """
    project_id = create_project(database)
    nodes = {"first": start_node("first"), "second": start_node("second")}
    wait_until(lambda: any(leases(node) >= {"bot", "housekeeping"} for node in nodes.values()), "somebody polls")
    (holder,) = [name for name, node in nodes.items() if "bot" in leases(node)]
    (other,) = nodes.keys() - {holder}

    # Whichever node starts the session and whichever is polled, the tap counts.
    session = generate(nodes[other], project_id)
    token = session["session_token"]
    assert session["deeplink"].startswith("https://t.me/shop_bot?start=")
    bot_api.write(f"/start {token}")
    bot_api.tap("Confirm")
    polled = {"project_id": project_id, "session_token": token}
    wait_until(lambda: not bot_api.updates, "both updates are acknowledged")
    answers = [ask(nodes[name], "verify", **polled)["status"] for name in (holder, other, holder)]
    assert answers == ["confirmed", "used", "used"]
    assert bot_api.pollers() == {holder}

    # Killed while handling an update: it was claimed, but its reply was not sent.
    bot_api.silent = holder
    token = generate(nodes[holder], project_id)["session_token"]
    bot_api.write(f"/start {token}")
    assert bot_api.held.wait(PATIENCE)
    nodes[holder].process.kill()
    killed_at = time.time()
    nodes[holder].process.wait()
    wait_until(lambda: leases(nodes[other]) >= {"bot", "housekeeping"}, "the other takes over")
    for taken in lines(nodes[other], "lease_taken"):
        assert 0 < datetime.fromisoformat(taken["timestamp"]).timestamp() - killed_at <= TAKEN_OVER_WITHIN
    wait_until(lambda: not bot_api.updates, "the update in hand is handled")
    bot_api.tap("Confirm")
    polled["session_token"] = token
    wait_until(lambda: ask(nodes[other], "verify", **polled)["status"] == "confirmed", "the user is signed in")
    replies = [name for name, method, _ in bot_api.calls if method == "sendMessage"]
    assert replies == [holder, other]

    # A rolling deploy: the new node waits, and takes over as soon as the old one has stopped.
    bot_api.silent = ""
    third = start_node("third")
    wait_until(lambda: "bot_known" in third.log(), "the third node runs")
    assert leases(third) == set()
    assert nodes[other].stop() == 0
    wait_until(lambda: leases(third) >= {"bot", "housekeeping"}, "the third takes over")
    (given_up,) = [line for line in lines(nodes[other], "lease_given_up") if line["lease"].startswith("bot")]
    (taken,) = [line for line in lines(third, "lease_taken") if line["lease"].startswith("bot")]
    assert given_up["timestamp"] <= taken["timestamp"]

    shown = [node.log() + node.screen() for node in (*nodes.values(), third)]
    assert PASSWORD not in "".join(shown)
    assert "Traceback" not in "".join(shown)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_roles(start_node: StartNode, database: str, bot_api: BotApi) -> None:
    """Each node does only the work of its role, answers health checks, and together they sign a user in."""
    project_id = create_project(database)
    api = start_node("api", "--role", "api")
    worker = start_node("worker", "--role", "worker", TAPROOF_BOT_TOKEN="")
    bot = start_node("bot", "--role", "bot")
    wait_until(lambda: leases(worker) == {"housekeeping"} and leases(bot) == {"bot", "project"}, "each has its own")
    assert leases(api) == set()
    for node in (worker, bot):
        for path in ("/healthz", "/readyz", "/metrics"):
            assert httpx.get(f"{node.base_url}{path}", verify=TRUST).status_code == 200
        for path in ("/api/v1/generate/public", "/api/v1/dev/me", "/docs", "/openapi.json", "/bot/webhook", "/"):
            response = httpx.post(f"{node.base_url}{path}", json={}, verify=TRUST)
            assert (response.status_code, response.headers["x-error-code"]) == (404, "not_found"), path
        assert "/api/v1" not in node.screen()
    token = generate(api, project_id)["session_token"]
    bot_api.write(f"/start {token}")
    bot_api.tap("Confirm")
    polled = {"project_id": project_id, "session_token": token}
    wait_until(lambda: ask(api, "verify", **polled)["status"] == "confirmed", "the user is signed in")
    assert bot_api.pollers() == {"bot"}


def test_leaked_signing_keys(start_node: StartNode, database: str, figure: Figure) -> None:
    """A command replaces the keys while two nodes publish them; soon afterwards, no node publishes an old one."""
    nodes = [start_node(name) for name in ("first", "second")]

    def published() -> list[set[str]]:
        answers = [httpx.get(f"{node.base_url}/oidc/jwks", verify=TRUST) for node in nodes]
        return [{jwk["kid"] for jwk in answer.json()["keys"]} for answer in answers]

    old = published()
    assert old[0] == old[1]
    new = {key["kid"] for key in command(database, "oidc", "rotate-keys", "--now", "--yes")["keys"]}
    answered_at = time.monotonic()
    wait_until(lambda: not any(kids & old[0] for kids in published()), "no node publishes an old key")
    figure("seconds until no node publishes an old key", round(time.monotonic() - answered_at, 1))
    assert all(kids > new for kids in published())


# ---- processes


def children(pid: int) -> set[int]:
    try:
        return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()))
    except FileNotFoundError:
        return set()


def lives(pid: int) -> bool:
    """Return whether a process is alive; a zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def metrics(service: Service) -> dict[str, float]:
    """Return every sample of whichever process answers."""
    text = httpx.get(f"{service.base_url}/metrics", verify=TRUST).text
    return {name: float(value) for name, value in re.findall(r"^([a-z]\S*) (\S+)$", text, re.MULTILINE)}


def counted(service: Service) -> set[tuple[float, float]]:
    """Return what the processes say about the created sessions, by the counter and by the histogram."""
    found = [metrics(service) for _ in range(8)]
    return {(each["taproof_sessions_created_total"], each["taproof_generate_seconds_count"]) for each in found}


def test_processes_that_share_a_port(start_node: StartNode, database: str) -> None:
    """Connections spread, counts add up, a killed process is replaced and its counts stay, and SIGTERM ends all."""
    project_id = create_project(database)
    service = start_node("all", "--workers", "2")
    supervisor = service.process.pid
    pids = children(supervisor)
    assert len(pids) == 2
    assert service.screen().count("Ctrl+C") == 1

    # Many connections are opened, because the kernel distributes them at random.
    before = metrics(service)
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        during = metrics(service)
    for process in ("1", "2"):
        name = f'process_open_fds{{process="{process}"}}'
        assert during[name] - before[name] > 10

    assert_refusals(lambda: socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE))
    generate(service, project_id)
    for _ in range(20):
        generate(service, project_id)
    assert counted(service) == {(21.0, 21.0)}
    accept = {"Accept": "application/openmetrics-text"}
    text = httpx.get(f"{service.base_url}/metrics", verify=TRUST, headers=accept).text
    families = {family.name: family for family in parse_openmetrics(text)}  # type: ignore[no-untyped-call]
    assert families["taproof_generate_seconds"].type == "histogram"
    names = {sample.name for family in families.values() for sample in family.samples}
    assert [name for name in names if name.endswith("_created")] == []
    cpu = {name for name in metrics(service) if name.startswith("process_cpu_seconds_total")}
    assert cpu == {f'process_cpu_seconds_total{{process="{process}"}}' for process in ("1", "2")}

    killed = min(pids)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(children(supervisor) - {killed}) == 2, "the killed one is replaced")
    (died,) = lines(service, "process_died")
    assert (died["pid"], died["cause"]) == (killed, "SIGKILL")
    wait_until(lambda: len(lines(service, "bot_known")) == 3, "the new one serves")
    assert counted(service) == {(21.0, 21.0)}
    for _ in range(8):
        generate(service, project_id)
    assert counted(service) == {(29.0, 29.0)}

    pids = children(supervisor)
    assert service.stop() == 0
    assert [pid for pid in pids if lives(pid)] == []
    assert len(lines(service, "stopping")) == 2
    assert service.screen().count("Ctrl+C") == 1
    assert PASSWORD not in service.log() + service.screen()
    assert "Traceback" not in service.log()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_nobody_outlives_the_supervisor(start_node: StartNode, database: str) -> None:
    """When the supervisor is killed with -9, its processes notice, finish their work and exit."""
    service = start_node("all", "--workers", "3")
    pids = children(service.process.pid)
    assert len(pids) == 3
    # They answer before they lead, and only a lease that was acquired can be released.
    wait_until(lambda: leases(service, "lease_taken") == {"bot", "project", "housekeeping"}, "all leases are held")
    service.process.kill()
    service.process.wait()
    wait_until(lambda: not any(lives(pid) for pid in pids), "all have ended")
    assert len(lines(service, "stopping")) == 3
    assert leases(service, "lease_given_up") == {"bot", "project", "housekeeping"}
    socket.create_server(("127.0.0.1", service.port)).close()  # The port is free again.


def supervised(program: str, directory: Path) -> "subprocess.Popen[str]":
    """Start two processes after `program` has patched the service inside them."""
    arguments = [
        "serve",
        "--workers",
        "2",
        "--port",
        str(free_port()),
        "--bot-token",
        BOT_TOKEN,
        "--bot-api-url",
        "http://[::1]:9",
    ]
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"{textwrap.dedent(program)}\nimport taproof.__main__; taproof.__main__.main()",
            *arguments,
        ],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_process_that_hangs_is_killed(tmp_path: Path) -> None:
    """SIGTERM to the supervisor also ends a hanging process, and the exit code is still 0."""
    with supervised(
        "import taproof.runtime.supervisor; taproof.runtime.supervisor.STOP_SECONDS = 2", tmp_path
    ) as service:
        assert service.stdout is not None
        for line in service.stdout:
            if "Ctrl+C" in line:
                break
        pids = children(service.pid)
        assert len(pids) == 2
        os.kill(min(pids), signal.SIGSTOP)
        service.send_signal(signal.SIGTERM)
        _, log = service.communicate(timeout=PATIENCE)
    assert service.returncode == 0
    assert [pid for pid in pids if lives(pid)] == []
    assert log.count('"event": "processes_killed"') == 1


def test_processes_that_cannot_start(tmp_path: Path) -> None:
    """If every process dies before it serves, again and again, the supervisor reports it and exits."""
    program = """
        import taproof.runtime.app, taproof.runtime.supervisor

        taproof.runtime.supervisor.LONGEST_PAUSE = 0.1  # Between one try and the next.

        async def die(settings, sibling):
            raise LookupError("a bug")

        taproof.runtime.app.serve = die
    """
    with supervised(program, tmp_path) as service:
        screen, log = service.communicate(timeout=120)
    assert service.returncode == 1
    assert screen == ""
    # At the sixth death the other process may just have been replaced, and dies too.
    assert log.count('"event": "process_failed"') in {6, 7}
    assert log.count('"event": "processes_given_up"') == 1
    assert log.splitlines()[-1].startswith("The processes of --workers (TAPROOF_WORKERS) die before they are ready.")


# ---- one driver at a time


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
def test_a_service_loads_its_own_driver_only(database: str) -> None:
    """A service on one store does not import the driver of the other."""
    other = "asyncpg" if database.startswith("sqlite") else "apsw"
    program = textwrap.dedent(f"""
        import asyncio, sys
        import taproof.cli.doctor.examine, taproof.cli.main
        import taproof.runtime.app, taproof.runtime.services, taproof.runtime.supervisor
        from taproof.config.settings import load_settings

        async def run():
            async with taproof.runtime.services.open_services(load_settings({{}})):
                pass

        asyncio.run(run())
        assert {other!r} not in sys.modules
    """)
    settings = {"TAPROOF_DATABASE_URL": database, "TAPROOF_MASTER_KEY": KEY}
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **settings}, check=True, timeout=120)
