"""The service keeps working while the messenger, the store or the rest of a request is missing."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import apsw
import httpx
from tests.e2e.conftest import OwnProject, Phone, Service, StartService
from tests.ports import free_port
from tests.waiting import wait_until

from taproof.config.settings import load_settings

BOT_TOKEN = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"
SANDBOX_PATHS = [
    "/demo",
    "/demo/shop",
    "/demo/stage.js",
    "/sandbox",
    "/sandbox/phone",
    "/sandbox/phone.js",
    "/sandbox/users",
    "/sandbox/users/1001/messages",
    "/sandbox/faults",
    f"/sandbox/bot{BOT_TOKEN}/getMe",
    "/bot/webhook",
]


class BotApiStub(BaseHTTPRequestHandler):
    """A Bot API with one bot, to which nobody writes."""

    def do_POST(self) -> None:  # The Bot API client sends every call as POST.
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/getUpdates"):
            threading.Event().wait(0.5)
        bot = {"id": 123456789, "is_bot": True, "first_name": "Shop", "username": "shop_bot"}
        self._answer({"ok": True, "result": [] if self.path.endswith("/getUpdates") else bot})

    def _answer(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def bot_api(port: int) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", port), BotApiStub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def begin(service: Service, started: bytes) -> socket.socket:
    """Send the beginning of a request and never the rest."""
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    connection.sendall(started)
    return connection


def generate(client: httpx.Client, project_id: str) -> httpx.Response:
    return client.post("/api/v1/generate/public", json={"project_id": project_id})


def create_project(service: Service) -> str:
    """Create a project with the command line, as an operator does."""
    service.add_developer("ada@example.com")
    done = service.command("projects", "create", "--developer", "ada@example.com", "Shop", "--json")
    assert done.returncode == 0, done.stderr
    project_id: str = json.loads(done.stdout)["id"]
    return project_id


def test_a_real_service_without_its_messenger(start_service: StartService) -> None:
    """The API serves while the Bot API is down but is not ready, and the bot connects by itself once it is up.

    A real service has no sandbox routes. Meanwhile, an incomplete header is dropped after its deadline.
    """
    port = free_port()
    service = start_service(sandbox=False, TAPROOF_BOT_TOKEN=BOT_TOKEN, TAPROOF_BOT_API_URL=f"http://127.0.0.1:{port}")
    half_a_header = begin(service, b"GET /healthz HTTP/1.1\r\nHost: loc")
    project_id = create_project(service)
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        for path in SANDBOX_PATHS:
            for method in ("GET", "POST", "DELETE"):
                response = client.request(method, path)
                assert (response.status_code, response.headers["x-error-code"]) == (404, "not_found"), path
        response = generate(client, project_id)
        assert response.status_code == 503
        assert response.headers["x-error-code"] == "messenger_unavailable"
        assert int(response.headers["retry-after"]) > 0
        ready = client.get("/readyz")
        assert (ready.status_code, ready.headers["x-error-code"]) == (503, "not_ready")
        assert ready.json()["error"].startswith("The username of the service's bot is not known yet")
        assert client.get("/healthz").status_code == 200
        assert "bot_username_unknown" in service.log()

        with bot_api(port):
            for _ in range(400):
                response = generate(client, project_id)
                if response.status_code == 200:
                    break
                threading.Event().wait(0.1)
            assert client.get("/readyz").status_code == 200
            session = response.json()
            assert session["deeplink"] == f"https://t.me/shop_bot?start={session['session_token']}"
            with half_a_header:
                assert not half_a_header.recv(1_000).startswith(b"HTTP/1.1 200")
            assert service.stop() == 0
    assert BOT_TOKEN.partition(":")[2] not in service.log() + service.screen()


def test_the_bots_name_reaches_a_process_without_its_token(start_service: StartService) -> None:
    """An API node with an old name in its settings makes links with the name that the bot's node has learned."""
    port = free_port()
    with bot_api(port):
        bot = start_service(
            sandbox=False,
            TAPROOF_ROLE="bot",
            TAPROOF_BOT_TOKEN=BOT_TOKEN,
            TAPROOF_BOT_API_URL=f"http://127.0.0.1:{port}",
        )
        api = start_service(
            directory=bot.directory,
            sandbox=False,
            TAPROOF_ROLE="api",
            TAPROOF_MESSENGER_LINK_BASE="https://t.me/old_name_bot",
        )
        project_id = create_project(api)
        with httpx.Client(base_url=api.base_url, timeout=60) as client:
            wait_until(lambda: "https://t.me/shop_bot?" in generate(client, project_id).json()["deeplink"])


def test_a_link_base_of_ones_own(start_service: StartService, closed_port: int) -> None:
    """With a link base set, sessions can be started before the Bot API was ever reached, so the service is ready.

    After SIGTERM, a client that never sends the rest of its request does not keep the process running.
    """
    service = start_service(
        sandbox=False,
        TAPROOF_BOT_TOKEN=BOT_TOKEN,
        TAPROOF_BOT_API_URL=f"http://127.0.0.1:{closed_port}",
        TAPROOF_MESSENGER_LINK_BASE="https://t.me/shop_bot",
    )
    project_id = create_project(service)
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        assert client.get("/readyz").status_code == 200
        response = generate(client, project_id)
        assert response.status_code == 200
        assert response.json()["deeplink"].startswith("https://t.me/shop_bot?start=")
        head = b"POST /api/v1/generate/public HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with begin(service, head + b"Content-Length: 50\r\n\r\n{"):
            # Another request on the way back shows that the server has read the earlier bytes.
            client.get("/healthz").raise_for_status()
            assert service.stop() == 0


@contextmanager
def locked(service: Service) -> Iterator[None]:
    """Hold the store's write lock, as a backup or a hanging command would."""
    connection = apsw.Connection(str(service.database))
    try:
        connection.set_busy_timeout(30_000)
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def test_a_locked_store(service: Service, client: httpx.Client, project: OwnProject, phone: Phone) -> None:
    """While the store is locked, writes get 503 with Retry-After and polls continue; then everything works.

    A tap during the lock is not lost: the bot handles the update again.
    """
    session = project.generate()
    phone.open(session["deeplink"])
    before = project.read()["sessions_count"]
    with locked(service):
        responses: list[httpx.Response] = []
        refused = threading.Thread(target=lambda: responses.append(generate(client, project.id)))
        refused.start()
        polls = 0
        while refused.is_alive():
            assert project.verify(session["session_token"]) == {"status": "pending"}
            polls += 1
            refused.join(0.2)
        assert polls > 1
        assert client.get("/readyz").status_code == 200
    (response,) = responses
    assert response.status_code == 503
    assert response.headers["x-error-code"] == "store_unavailable"
    assert int(response.headers["retry-after"]) > 0
    assert list(response.json()) == ["error"]
    assert project.read()["sessions_count"] == before
    phone.tap("Confirm")
    assert project.verify(session["session_token"])["status"] == "confirmed"
    assert generate(client, project.id).status_code == 200


def test_the_sandbox_allows_webhook_updates() -> None:
    """The sandbox accepts webhook updates without a public address, because its messenger is in this process."""
    assert load_settings({"sandbox": True, "bot_updates": "webhook"}).bot_updates == "webhook"


def test_updates_by_webhook(start_service: StartService) -> None:
    """With webhook updates, the bot registers its address and secret, and a whole sign-in works.

    A forged update, which anybody could post in any user's name, is refused and changes nothing.
    """
    # The sandbox does not use this address, but webhook updates require one in the settings.
    service = start_service(TAPROOF_BOT_UPDATES="webhook", TAPROOF_BOT_API_URL="http://127.0.0.1:9")
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        session = generate(client, service.project_id).json()
        token = session["session_token"]
        users = client.get("/sandbox/users").json()["users"]
        phone = Phone(client, users[0])
        shown = phone.open(session["deeplink"])[-1]

        person = {"id": users[0]["id"], "is_bot": False, "first_name": users[0]["first_name"]}
        chat = {"id": person["id"], "type": "private", "first_name": person["first_name"]}
        rows = shown["inline_keyboard"]
        (data,) = [each["callback_data"] for row in rows for each in row if each["text"] == "Confirm"]
        prompt = {"message_id": shown["message_id"], "date": 1_795_000_000, "chat": chat, "text": shown["text"]}
        prompt["reply_markup"] = {"inline_keyboard": rows}
        query = {"id": "1", "from": person, "chat_instance": "1", "data": data, "message": prompt}
        for secret in ({}, {"X-Telegram-Bot-Api-Secret-Token": "A" * 64}, {"X-Telegram-Bot-Api-Secret-Token": ""}):
            forged = client.post("/bot/webhook", json={"update_id": 1, "callback_query": query}, headers=secret)
            assert forged.status_code == 401
        body = {"project_id": service.project_id, "session_token": token}
        assert client.post("/api/v1/verify/public", json=body).json() == {"status": "pending"}

        phone.tap("Confirm")
        assert client.post("/api/v1/verify/public", json=body).json()["messenger_id"] == phone.messenger_id
