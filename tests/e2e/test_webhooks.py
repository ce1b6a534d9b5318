"""Webhooks as a receiver gets them, from the real worker over real HTTP (spec, Events; contract, Webhooks)."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from tests.e2e.conftest import Developer, NewPhone, OwnProject, Phone
from tests.e2e.test_spec_tables import instant

PATIENCE = 20.0
SETTLED = 2.0
"""Seconds in which a second delivery would have come: the worker looks twice a second."""


@dataclass
class Delivered:
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A server of an application that takes webhooks; `/moved` redirects to `/`, and `/broken` fails."""

    def __init__(self) -> None:
        self.delivered: list[Delivered] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.delivered.append(Delivered(self.path, headers, body))
                self.send_response({"/moved": 307, "/broken": 500}.get(self.path, 204))
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST  # noqa: N815 — likewise the name that http.server asks for.

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def wait_for(self, count: int) -> list[Delivered]:
        deadline = time.monotonic() + PATIENCE
        while len(self.delivered) < count:
            assert time.monotonic() < deadline, "no webhook came"
            time.sleep(0.05)
        return self.delivered


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield receiver
    receiver.server.shutdown()
    thread.join()
    receiver.server.server_close()


def assert_genuine(delivered: Delivered, webhook_secret: str) -> None:
    """Check both signatures over exactly the bytes that came, as a receiver does."""
    expected = hmac.new(webhook_secret.encode(), delivered.body, hashlib.sha256).hexdigest()
    assert delivered.headers["x-service-signature"] == expected
    Webhook(webhook_secret).verify(delivered.body, delivered.headers)


def test_confirmed_and_cancelled(developer: Developer, receiver: Receiver, phone: Phone, new_phone: NewPhone) -> None:
    """Each decision is sent once, with the contract's body and both kinds of signature; the proof is not in it."""
    project = developer.create_project(webhook_url=f"{receiver.url}/hooks?shop=1")
    confirmed, nameless, cancelled, undecided = (project.generate() for _ in range(4))
    phone.sign_in(confirmed)
    new_phone("Грета").sign_in(nameless)
    phone.sign_in(cancelled, "Cancel")
    phone.open(undecided["deeplink"])
    receiver.wait_for(3)
    project.verify(confirmed["session_token"])
    time.sleep(SETTLED)
    assert len(receiver.delivered) == 3
    bodies = {}
    for delivered in receiver.delivered:
        assert delivered.path == "/hooks?shop=1"
        assert_genuine(delivered, project.webhook_secret)
        assert delivered.headers["content-type"].startswith("application/json")
        assert delivered.headers["user-agent"].startswith("Taproof/")
        assert "authorization" not in delivered.headers
        body = json.loads(delivered.body)
        assert body["id"] == delivered.headers["webhook-id"]
        assert body["id"].startswith("evt_")
        assert abs(int(delivered.headers["webhook-timestamp"]) - time.time()) < 60
        bodies[body["session_token"]] = body
    assert len({body["id"] for body in bodies.values()}) == 3
    now = datetime.now(UTC)
    for body in bodies.values():
        decided_at = body.get("confirmed_at") or body.get("cancelled_at")
        assert now - timedelta(minutes=1) < instant(decided_at) <= now
    yes, no = bodies[confirmed["session_token"]], bodies[cancelled["session_token"]]
    assert yes == {
        "id": yes["id"],
        "event": "auth.confirmed",
        "project_id": project.id,
        "session_token": confirmed["session_token"],
        "messenger_id": phone.messenger_id,
        "messenger_name": "Ada Lovelace",
        "messenger_username": phone.user["username"],
        "confirmed_at": yes["confirmed_at"],
    }
    assert no == {
        "id": no["id"],
        "event": "auth.cancelled",
        "project_id": project.id,
        "session_token": cancelled["session_token"],
        "cancelled_at": no["cancelled_at"],
    }
    assert bodies[nameless["session_token"]]["messenger_username"] is None
    assert bodies[nameless["session_token"]]["messenger_name"] == "Грета"


def test_other_secrets_do_not_check(developer: Developer, receiver: Receiver, phone: Phone) -> None:
    """Neither another project's secret nor the secret key checks, nor does an altered body (spec, Authentication)."""
    project = developer.create_project(webhook_url=receiver.url)
    phone.sign_in(project.generate())
    [delivered] = receiver.wait_for(1)
    assert_genuine(delivered, project.webhook_secret)
    other = developer.create_project().webhook_secret
    with pytest.raises(WebhookVerificationError):
        Webhook(other).verify(delivered.body, delivered.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(project.webhook_secret).verify(delivered.body + b" ", delivered.headers)
    forged = hmac.new(project.secret_key.encode(), delivered.body, hashlib.sha256).hexdigest()
    assert delivered.headers["x-service-signature"] != forged


def test_regenerated_secret_signs(developer: Developer, receiver: Receiver, phone: Phone) -> None:
    """After regenerate the old webhook secret signs nothing any more (contract, Developer endpoints)."""
    project = developer.create_project(webhook_url=receiver.url)
    new = developer.ask("POST", f"/projects/{project.id}/regenerate")["webhook_secret"]
    phone.sign_in(project.generate())
    [delivered] = receiver.wait_for(1)
    assert_genuine(delivered, new)
    with pytest.raises(WebhookVerificationError):
        Webhook(project.webhook_secret).verify(delivered.body, delivered.headers)


@pytest.mark.parametrize("path", ["/moved", "/broken"])
def test_no_redirect_and_no_retry(developer: Developer, receiver: Receiver, phone: Phone, path: str) -> None:
    """Redirects are never followed, and this version sends an event once (contract, Webhooks; issue)."""
    project = developer.create_project(webhook_url=receiver.url + path)
    phone.sign_in(project.generate())
    receiver.wait_for(1)
    time.sleep(SETTLED)
    assert [delivered.path for delivered in receiver.delivered] == [path]


def test_no_webhook(project: OwnProject, receiver: Receiver, phone: Phone) -> None:
    """A project with an empty webhook URL receives no deliveries, whether never set or removed (spec, Events)."""
    path = f"/projects/{project.id}"
    project.developer.ask("PATCH", path, json={"webhook_url": receiver.url})
    project.developer.ask("PATCH", path, json={"webhook_url": ""})
    phone.sign_in(project.generate())
    time.sleep(SETTLED)
    assert receiver.delivered == []
