"""kill -9 loses nothing that was acknowledged, and SIGTERM lets current work finish."""

import json
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import apsw
import httpx
import pytest
from tests.e2e.conftest import Developer, OwnProject, Service, launch, make_phone
from tests.e2e.receiver import Receiver
from tests.e2e.test_wait import answer_on, call, waiting
from tests.waiting import wait_until

ENOUGH = 60


@dataclass
class Survivor:
    """A service that was killed while it worked and restarted on the same database."""

    service: Service
    project: OwnProject
    acknowledged: list[str]
    """Tokens of sessions that generate had returned before the kill."""
    confirmed: str
    """The token of the session that was confirmed just before the kill."""
    first_bots: set[int] = field(default_factory=set)
    """Ids of the bots that had handled updates before the kill."""


def bots(service: Service) -> set[int]:
    connection = apsw.Connection(str(service.database))
    try:
        return {bot_id for (bot_id,) in connection.execute("SELECT DISTINCT bot_id FROM bot_updates")}
    finally:
        connection.close()


def create_sessions(base_url: str, project_id: str, acknowledged: list[str], enough: threading.Event) -> None:
    """Create sessions until the service dies, and record each one that was answered."""
    with httpx.Client(base_url=base_url, timeout=60) as client:
        try:
            while True:
                response = client.post("/api/v1/generate/public", json={"project_id": project_id})
                acknowledged.append(response.json()["session_token"])
                if len(acknowledged) >= ENOUGH:
                    enough.set()
        except (httpx.TransportError, json.JSONDecodeError):
            return


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survivor]:
    """Start a service, kill -9 it while it works, and start it again."""
    directory = tmp_path_factory.mktemp("survivor")
    service = launch(directory)
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        project = Developer(client, service.access_token).create_project("Survivor")
        session = project.generate()
        phone = make_phone(client, "Ada")
        phone.open(session["deeplink"])
        acknowledged: list[str] = []
        enough = threading.Event()
        with ThreadPoolExecutor(4) as threads:
            for _ in range(4):
                threads.submit(create_sessions, service.base_url, project.id, acknowledged, enough)
            phone.tap("Confirm")
            assert enough.wait(60)
            service.process.send_signal(signal.SIGKILL)
    assert service.stop() == -signal.SIGKILL
    first_bots = bots(service)

    service = launch(directory)
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        project.developer = Developer(client, service.access_token)
        yield Survivor(service, project, acknowledged, session["session_token"], first_bots)
    service.stop()


def test_acknowledged_sessions_survive_a_kill(survivor: Survivor) -> None:
    """A session that generate has returned is durable, whenever the process is killed."""
    assert len(survivor.acknowledged) >= ENOUGH
    assert {survivor.project.verify(token)["status"] for token in survivor.acknowledged} == {"pending"}
    counted = survivor.project.read()["sessions_count"]
    # One more for each of the four callers may be stored without an answer.
    assert len(survivor.acknowledged) + 1 <= counted <= len(survivor.acknowledged) + 1 + 4


def test_a_confirmation_survives_a_kill(survivor: Survivor) -> None:
    """A confirmed session is still confirmed after a crash, and is read once."""
    answer = survivor.project.verify(survivor.confirmed)
    assert (answer["status"], answer["messenger_name"]) == ("confirmed", "Ada")
    assert survivor.project.verify(survivor.confirmed) == {"status": "used"}


def test_signing_in_after_a_kill(survivor: Survivor) -> None:
    """The simulated bot gets a new id at each start, so that old updates are not mistaken for new ones."""
    session = survivor.project.generate()
    make_phone(survivor.project.developer.client, "Grace").sign_in(session)
    assert survivor.project.verify(session["session_token"])["messenger_name"] == "Grace"
    assert survivor.first_bots
    assert bots(survivor.service) - survivor.first_bots


def test_sigterm_finishes_what_is_under_way(survivor: Survivor, receiver: Receiver) -> None:
    """SIGTERM answers open requests and waiting clients, finishes a webhook in flight, and exits with 0.

    This is the last test of the file, because it ends the service of the others.
    """
    receiver.go_on.clear()
    service = survivor.service
    client = survivor.project.developer.client
    project = survivor.project.developer.create_project("Hook", webhook_url=receiver.url)
    session = project.generate()
    make_phone(client, "Grace").sign_in(session, "Cancel")
    receiver.wait_for(1)
    waiters = [call(service, survivor.project, survivor.project.generate()) for _ in range(20)]
    wait_until(lambda: waiting(service) == len(waiters))

    body = json.dumps({"project_id": project.id}).encode()
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        head = (
            "POST /api/v1/generate/public HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body[:5])
        # Another request on the way back shows that the server has read the earlier bytes.
        client.get("/healthz")
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: '"event": "stopping"' in service.log())
        for waiter in waiters:
            with waiter:
                assert answer_on(waiter) == {"status": "pending"}
        connection.sendall(body[5:])
        answer = b""
        while chunk := connection.recv(65_536):
            answer += chunk
    receiver.go_on.set()
    assert service.process.wait(30) == 0

    assert answer.startswith(b"HTTP/1.1 200 "), answer
    token = json.loads(answer.partition(b"\r\n\r\n")[2])["session_token"]
    assert [json.loads(each.body)["event"] for each in receiver.delivered] == ["auth.cancelled"]
    connection_to_store = apsw.Connection(str(service.database))
    try:
        states = connection_to_store.execute(
            "SELECT state FROM webhook_events WHERE project_id = ?", (project.id,)
        ).fetchall()
        (stored,) = connection_to_store.execute(
            "SELECT count(*) FROM sessions WHERE project_id = ?", (project.id,)
        ).fetchone() or (0,)
    finally:
        connection_to_store.close()
    assert states == [("delivered",)]
    assert token
    assert stored == 2
    assert "Traceback" not in service.log()
