"""Each alert of deploy/prometheus fires for a real fault of a real service.

The rules are those of the file, except that their durations are divided, usually by 60: five minutes become five
seconds. Before the fault, the alert is silent.
"""

import base64
import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.e2e.conftest import TRUST, Developer, OwnProject, Phone, Service, StartService, make_phone
from tests.ports import free_port
from tests.postgres_server import PostgresServer, execute, fresh_database
from tests.server_logs import server_logs
from tests.slow.monitoring.conftest import Watch
from tests.slow.monitoring.prometheus import until

KEY: Final = base64.b64encode(bytes(range(32))).decode()
TOKEN: Final = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"


@contextmanager
def acting(*acts: Callable[[], object]) -> Iterator[None]:
    """Repeat each action in its own thread until the end of the block; the service may refuse any call."""
    over = threading.Event()

    def repeat(act: Callable[[], object]) -> None:
        while not over.is_set():
            with contextlib.suppress(httpx.TransportError):
                act()

    with ThreadPoolExecutor(len(acts)) as pool:
        working = [pool.submit(repeat, act) for act in acts]
        try:
            yield
        finally:
            over.set()
        for each in working:
            each.result()


@contextmanager
def receiver(status: int) -> Iterator[str]:
    """Yield the address of a receiver of webhooks that always answers this status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    """Return a client whose base URL the test sets."""
    with httpx.Client(timeout=60, verify=TRUST) as client:
        yield client


def project_of(client: httpx.Client, service: Service, **fields: Any) -> OwnProject:
    """Point the client at the service, and create a project of the sandbox's developer there."""
    client.base_url = httpx.URL(service.base_url)
    return Developer(client, service.access_token).create_project(**fields)


def create(service: Service) -> httpx.Response:
    """Try to start a sign-in; any answer is accepted."""
    url = f"{service.base_url}/api/v1/generate/public"
    return httpx.post(url, json={"project_id": service.project_id}, timeout=60, verify=TRUST)


def verify(service: Service, session_token: str, **more: object) -> httpx.Response:
    """Poll a session; any answer is accepted."""
    body = {"project_id": service.project_id, "session_token": session_token, **more}
    return httpx.post(f"{service.base_url}/api/v1/verify/public", json=body, timeout=60, verify=TRUST)


def fault(service: Service, **fields: object) -> None:
    """Let calls of a method of the sandbox's Bot API fail."""
    answer = httpx.post(f"{service.base_url}/sandbox/faults", json=fields, timeout=60, verify=TRUST)
    assert answer.status_code == 200, answer.text


def test_a_killed_process(start_service: StartService, watch: Watch) -> None:
    """The only process is killed with `kill -9`."""
    service = start_service()
    prometheus = watch(service)
    assert prometheus.firing() == set()
    service.process.kill()
    prometheus.until_fires("TaproofDown")


def test_a_database_that_is_stopped(start_service: StartService, watch: Watch) -> None:
    """PostgreSQL stops while clients poll: the probe and the clients notice."""
    server = PostgresServer()
    try:
        with fresh_database(server=server) as dsn:
            service = start_service("--database", dsn, TAPROOF_MASTER_KEY=KEY)
            token = create(service).json()["session_token"]
            prometheus = watch(service)
            assert not {"TaproofDatabaseUnreachable", "TaproofErrors"} & prometheus.firing()
            server.stop()
            try:
                with acting(lambda: verify(service, token)):
                    prometheus.until_fires("TaproofDatabaseUnreachable")
                    prometheus.until_fires("TaproofErrors", lambda: create(service))
            finally:
                server.start()
            until(lambda: "TaproofDatabaseUnreachable" not in prometheus.firing(), "The alert ends with the fault.")
            service.stop()
    finally:
        server.close()


def test_a_messenger_that_cannot_be_reached_at_the_start(tmp_path: Path, watch: Watch, closed_port: int) -> None:
    """Without an answer of the messenger, the bot's name is unknown and no link can be created."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAPROOF_")}
    environment |= {"TAPROOF_BOT_TOKEN": TOKEN, "TAPROOF_BOT_API_URL": f"http://127.0.0.1:{closed_port}"}
    command = [sys.executable, "-m", "taproof", "serve", "--port", str(port)]
    command += ["--database", f"sqlite:///{tmp_path / 'taproof.db'}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    service = Service(tmp_path, port, process, environment)
    server_logs[tmp_path / "log"] = process
    try:
        prometheus = watch(service)
        prometheus.until_fires("TaproofNotReady")
    finally:
        service.stop()


def test_a_file_that_another_program_locks(start_service: StartService, watch: Watch) -> None:
    """While another program holds SQLite's lock on writes, sign-ins take as long as it does."""
    service = start_service()
    prometheus = watch(service)
    assert "TaproofSlow" not in prometheus.firing()
    with contextlib.closing(sqlite3.connect(service.database, isolation_level=None, timeout=60)) as database:

        def lock() -> None:
            database.execute("BEGIN IMMEDIATE")
            time.sleep(2)  # The fault. It is shorter than the service's patience, so that its calls succeed late.
            database.execute("COMMIT")

        with acting(*[lambda: create(service)] * 4):
            prometheus.until_fires("TaproofSlow", lock)


def test_a_messenger_that_limits_the_bot(start_service: StartService, watch: Watch, client: httpx.Client) -> None:
    """The messenger delays the outcome of each decision by four seconds."""
    service = start_service()
    project = project_of(client, service)
    prometheus = watch(service)
    phones = [make_phone(client, f"User {number}") for number in range(4)]
    assert "TaproofTapsSlow" not in prometheus.firing()

    def sign_in(phone: Phone) -> None:
        fault(service, method="editMessageText", error_code=429, retry_after=4)
        phone.sign_in(project.generate())

    with acting(*[partial(sign_in, phone) for phone in phones]):
        prometheus.until_fires("TaproofTapsSlow")


def test_a_bot_that_receives_nothing(start_service: StartService, watch: Watch) -> None:
    """The messenger answers getUpdates with 502 while clients start sign-ins."""
    service = start_service()
    prometheus = watch(service)
    assert not {"TaproofBotNotReceiving", "TaproofNoDecisions"} & prometheus.firing()
    fault(service, method="getUpdates", error_code=502, times=1_000)
    # The poll that is under way ends with an update; the next one fails.
    with httpx.Client(base_url=service.base_url, timeout=60, verify=TRUST) as sandbox:
        phone = make_phone(sandbox)
        sandbox.post(f"/sandbox/users/{phone.messenger_id}/send", json={"text": "/help"})
    prometheus.until_fires("TaproofBotNotReceiving")
    with acting(lambda: create(service)):
        prometheus.until_fires("TaproofNoDecisions")


def test_taps_that_come_without_their_message(start_service: StartService, watch: Watch, client: httpx.Client) -> None:
    """Somebody has changed the bot's mode of callback queries, and the messenger refuses to change it back."""
    service = start_service()
    project = project_of(client, service)
    made = client.post("/sandbox/bots", json={"username": "acme_login_bot"}).json()
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"bot_token": made["token"]})
    prometheus = watch(service)
    phone = make_phone(client)

    def tap() -> None:
        phone.open(project.generate()["deeplink"])
        body = {"button": "Confirm", "bot": "acme_login_bot"}
        assert client.post(f"/sandbox/users/{phone.messenger_id}/tap", json=body).json()["answered"]

    tap()
    assert "TaproofTapsRefused" not in prometheus.firing()
    mode = {"callback_query_mode": "inline"}
    assert client.post(f"/sandbox/bot{made['token']}/setMySettings", json=mode).status_code == 200
    fault(service, method="setMySettings", error_code=404, times=1_000, bot="acme_login_bot")
    prometheus.until_fires("TaproofTapsRefused", tap)


def test_leases_that_another_holds(start_service: StartService, watch: Watch) -> None:
    """Another holder has taken every lease for a day, as a node whose clock is a day ahead would."""
    service = start_service()
    prometheus = watch(service)
    until(lambda: prometheus.query("sum(taproof_leader) == 3"), "The service does all the work.")
    assert "TaproofNoLeader" not in prometheus.firing()
    with contextlib.closing(sqlite3.connect(service.database, isolation_level=None, timeout=60)) as database:
        database.execute("UPDATE leases SET holder = 'another', held_until = held_until + 86400000")
    prometheus.until_fires("TaproofNoLeader")


def test_processes_that_die_again_and_again(start_service: StartService, watch: Watch) -> None:
    """Each process of --workers is killed three times, and replaced each time."""
    link = {"TAPROOF_MESSENGER_LINK_BASE": "https://t.me/acme_sign_in_bot"}
    service = start_service("--workers", "2", "--role", "api", sandbox=False, **link)
    prometheus = watch(service, factor=6)  # The pause before a replacement grows, so the range has to be long enough.
    starts = 'changes(process_start_time_seconds{job="taproof"}[30m])'
    assert "TaproofRestarting" not in prometheus.firing()
    for number in range(1, 4):
        for children in Path(f"/proc/{service.process.pid}/task").glob("*/children"):
            for child in children.read_text("ascii").split():
                os.kill(int(child), signal.SIGKILL)
        replaced = f"min({starts}) == {number}"
        until(partial(prometheus.query, replaced), "Both processes are replaced.")
    prometheus.until_fires("TaproofRestarting")


def test_a_process_that_may_open_few_files(start_service: StartService, watch: Watch) -> None:
    """The limit on open files is lowered to a few more than are open."""
    service = start_service()
    prometheus = watch(service)
    assert "TaproofFewFilesLeft" not in prometheus.firing()
    limit = len(list(Path(f"/proc/{service.process.pid}/fd").iterdir())) + 5
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    prometheus.until_fires("TaproofFewFilesLeft")


def test_more_waiting_calls_than_places(start_service: StartService, watch: Watch) -> None:
    """More clients wait for the same sessions than the limit allows."""
    service = start_service()
    prometheus = watch(service)
    assert "TaproofNoWaitingPlace" not in prometheus.firing()
    waits = [
        lambda token=token: verify(service, token, wait=5)
        for token in (create(service).json()["session_token"] for _ in range(3))
        for _ in range(10)
    ]
    with acting(*waits):
        prometheus.until_fires("TaproofNoWaitingPlace")


def test_a_client_that_starts_sign_ins_without_a_pause(start_service: StartService, watch: Watch) -> None:
    """Clients start more sign-ins of a project than its limit allows."""
    service = start_service(TAPROOF_GENERATE_LIMIT_PROJECT="10/minute")
    prometheus = watch(service)
    assert "TaproofRateLimiting" not in prometheus.firing()
    with acting(*[lambda: create(service)] * 4):
        prometheus.until_fires("TaproofRateLimiting")


def test_a_receiver_that_fails(start_service: StartService, watch: Watch, client: httpx.Client) -> None:
    """A receiver answers 500 to every event; another one answers 410, which turns its webhook off."""
    service = start_service()
    with receiver(500) as failing, receiver(410) as gone:
        project = project_of(client, service, webhook_url=failing)
        removed = project_of(client, service, webhook_url=gone)
        phone = make_phone(client)
        prometheus = watch(service)
        assert not {"TaproofWebhooksFailing", "TaproofWebhookDeadLetters"} & prometheus.firing()
        phone.sign_in(removed.generate())
        prometheus.until_fires("TaproofWebhookDeadLetters")
        prometheus.until_fires("TaproofWebhooksFailing", lambda: phone.sign_in(project.generate()))


def test_events_that_cannot_be_claimed(start_service: StartService, watch: Watch, client: httpx.Client) -> None:
    """Another program locks the table of events when one is about to be sent again."""
    with fresh_database() as dsn, receiver(500) as failing:
        service = start_service("--database", dsn, TAPROOF_MASTER_KEY=KEY)
        project = project_of(client, service, webhook_url=failing)
        prometheus = watch(service)
        make_phone(client).sign_in(project.generate())
        until(lambda: prometheus.query('taproof_webhook_attempts_total{outcome="retried"} > 0'), "The attempt fails.")
        assert "TaproofWebhooksLate" not in prometheus.firing()
        locking = "BEGIN; LOCK TABLE webhook_events IN SHARE MODE; SELECT pg_sleep(600)"
        ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND pid <> "
        with ThreadPoolExecutor(1) as pool:
            lock = pool.submit(execute, dsn, locking)
            try:
                prometheus.until_fires("TaproofWebhooksLate")
            finally:
                execute(dsn, f"{ending} pg_backend_pid()")
            with pytest.raises(RuntimeError, match="terminating connection"):
                lock.result()
        service.stop()


def test_a_project_bot_whose_token_is_revoked(start_service: StartService, watch: Watch, client: httpx.Client) -> None:
    """The token of a project's bot is revoked while the bot runs."""
    service = start_service()
    project = project_of(client, service)
    made = client.post("/sandbox/bots", json={"username": "acme_login_bot"}).json()
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"bot_token": made["token"]})
    prometheus = watch(service)
    until(lambda: prometheus.query('taproof_project_bots{state="running"} == 1'), "The bot runs.")
    steady = 'count_over_time(taproof_project_bots{state="broken"}[1m]) > 45'  # Longer than the rule looks back.
    until(lambda: prometheus.query(steady), "The number of broken bots is known for long enough.")
    assert "TaproofProjectBotBroken" not in prometheus.firing()
    client.post("/sandbox/bots/acme_login_bot/revoke", json={})
    prometheus.until_fires("TaproofProjectBotBroken")
