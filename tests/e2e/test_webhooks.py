"""Webhooks as a receiver gets them, from the real sender over real HTTP (spec, Events; contract, Webhooks)."""

import hashlib
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from tests.e2e.conftest import Developer, NewPhone, OwnProject, Phone
from tests.e2e.receiver import Delivered, Receiver
from tests.e2e.test_spec_tables import instant
from tests.waiting import wait_until


def settle(developer: Developer, receiver: Receiver, phone: Phone) -> list[Delivered]:
    """Wait until a later event of another project has arrived, and return the other events that arrived before it.

    A delivery that was due before would have come first.
    """
    phone.sign_in(developer.create_project("Last", webhook_url=f"{receiver.url}/last").generate())
    wait_until(lambda: any(each.path == "/last" for each in receiver.delivered), "the last webhook")
    return [each for each in receiver.delivered if each.path != "/last"]


def assert_genuine(delivered: Delivered, webhook_secret: str) -> None:
    """Check both signatures over exactly the received bytes, as a receiver does."""
    expected = hmac.new(webhook_secret.encode(), delivered.body, hashlib.sha256).hexdigest()
    assert delivered.headers["x-service-signature"] == expected
    Webhook(webhook_secret).verify(delivered.body, delivered.headers)


def test_confirmed_and_cancelled(developer: Developer, receiver: Receiver, phone: Phone, new_phone: NewPhone) -> None:
    """Each decision is sent once, with the contract's body and both kinds of signature, without the proof."""
    project = developer.create_project(webhook_url=f"{receiver.url}/hooks?shop=1")
    confirmed, nameless, cancelled, undecided = (project.generate() for _ in range(4))
    phone.sign_in(confirmed)
    new_phone("Грета").sign_in(nameless)
    phone.sign_in(cancelled, "Cancel")
    phone.open(undecided["deeplink"])
    receiver.wait_for(3)
    project.verify(confirmed["session_token"])
    arrived = settle(developer, receiver, phone)
    assert len(arrived) == 3
    bodies = {}
    for delivered in arrived:
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


def deliveries(project: OwnProject, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = project.developer.ask("GET", f"/projects/{project.id}/deliveries{query}")[
        "deliveries"
    ]
    return found


def wait_for_status(project: OwnProject, status: str) -> dict[str, Any]:
    """Wait until a project's only delivery has this status and no sender holds it."""

    def settled() -> dict[str, Any] | None:
        [found] = deliveries(project)
        return found if found["status"] == status and found["attempts"] and not found["sending"] else None

    found: dict[str, Any] = wait_until(settled, status)
    return found


def test_a_receiver_that_is_gone(developer: Developer, receiver: Receiver, phone: Phone) -> None:
    """410 turns the webhook off, and the project shows that until its URL is set again (contract, Webhooks)."""
    project = developer.create_project(webhook_url=f"{receiver.url}/gone")
    phone.sign_in(project.generate())
    wait_for_status(project, "failed")
    # The event fails first, and the webhook is turned off right after, in a separate statement.
    wait_until(lambda: not project.read()["webhook_url"], "the webhook is off")
    read = project.read()
    assert read["webhook_turned_off"]["reason"] == "gone"
    assert read["webhook_turned_off"]["url"] == f"{receiver.url}/gone"
    phone.sign_in(project.generate())
    developer.ask("PATCH", f"/projects/{project.id}", json={"webhook_url": receiver.url})
    assert project.read()["webhook_turned_off"] is None
    phone.sign_in(project.generate())
    assert [each.path for each in receiver.wait_for(2)] == ["/gone", "/"]


def test_an_event_is_sent_again_on_request(developer: Developer, receiver: Receiver, phone: Phone) -> None:
    """A resend on request is sent at once with the same id and body, and adds one attempt (issue)."""
    project = developer.create_project(webhook_url=receiver.url)
    phone.sign_in(project.generate(), "Cancel")
    event_id = wait_for_status(project, "delivered")["id"]
    developer.ask("POST", f"/deliveries/{event_id}/resend")
    first, second = receiver.wait_for(2)
    assert first.body == second.body
    assert_genuine(second, project.webhook_secret)
    found = wait_for_status(project, "delivered")
    assert [each["number"] for each in found["attempts"]] == [1, 2]


def test_a_webhook_test(developer: Developer, receiver: Receiver, phone: Phone) -> None:
    """A webhook test sends a signed webhook.test and returns its result, success or failure (issue)."""
    project = developer.create_project(webhook_url=receiver.url)
    found = developer.ask("POST", f"/projects/{project.id}/webhook-test")
    [delivered] = receiver.delivered
    assert_genuine(delivered, project.webhook_secret)
    body = json.loads(delivered.body)
    assert body == {
        "id": found["id"],
        "event": "webhook.test",
        "project_id": project.id,
        "created_at": found["created_at"],
    }
    assert (found["status"], found["attempts"][0]["status"]) == ("delivered", 200)
    assert json.loads(found["attempts"][0]["answer"]) == body
    developer.ask("PATCH", f"/projects/{project.id}", json={"webhook_url": f"{receiver.url}/broken"})
    assert developer.ask("POST", f"/projects/{project.id}/webhook-test")["attempts"][0]["status"] == 500
    developer.ask("PATCH", f"/projects/{project.id}", json={"webhook_url": "http://127.0.0.1:9/"})
    refused = developer.ask("POST", f"/projects/{project.id}/webhook-test")
    assert (refused["status"], refused["attempts"][0]["error_code"]) == ("failed", "connection_refused")
    assert [each["status"] for each in deliveries(project)] == ["failed", "failed", "delivered"]
    assert len(deliveries(project, "?event=webhook.test&status=failed")) == 2
    assert len(settle(developer, receiver, phone)) == 2


def test_a_rotation(developer: Developer, receiver: Receiver, phone: Phone) -> None:
    """Until the promotion both secrets verify webhooks and the old one proofs; then the new one does (issue)."""
    project = developer.create_project(webhook_url=receiver.url)
    path = f"/projects/{project.id}/webhook-secret"
    old = project.webhook_secret
    new = developer.ask("POST", f"{path}/rotate")["next_webhook_secret"]
    session = project.generate()
    phone.sign_in(session)
    [during] = receiver.wait_for(1)
    assert_genuine(during, old)
    Webhook(new).verify(during.body, during.headers)
    jwt.decode(project.verify(session["session_token"])["proof"], old, ["HS256"])
    assert developer.ask("POST", f"{path}/promote")["webhook_secret"] == new
    session = project.generate()
    phone.sign_in(session)
    [_, after] = receiver.wait_for(2)
    assert_genuine(after, new)
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(after.body, after.headers)
    jwt.decode(project.verify(session["session_token"])["proof"], new, ["HS256"])
