"""Webhook events: what is recorded, what is sent, under which signature (contract.md, Webhooks)."""

import json
import re
from typing import TYPE_CHECKING

import apsw
import pytest
from standardwebhooks import Webhook

from taproof.core.clock import iso8601, system_clock
from taproof.core.errors import SealBroken
from taproof.core.model import Identity, ProjectChanges
from taproof.storage import sql

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"


async def test_the_body_of_a_confirmation(node: "Node") -> None:
    """Exactly the fields of the contract; the handle is null when there is none."""
    project, _ = await node.project(webhook_url=URL)
    for username, shown in (("ada", "ada"), ("", None)):
        token = await node.opened(project)
        node.clock.now += 1_000
        await node.signin.confirm_session(token, Identity("1001", 'Зоя "👩\u200d💻" <b>', username))
        (delivery,) = await node.webhooks.claim_deliveries(10)
        request = node.webhooks.sign_delivery(delivery)
        body = json.loads(request.body)
        assert re.fullmatch(r"evt_[A-Za-z0-9]{22}", body.pop("id"))
        assert body == {
            "event": "auth.confirmed",
            "project_id": project.id,
            "session_token": token,
            "messenger_id": "1001",
            "messenger_name": 'Зоя "👩\u200d💻" <b>',
            "messenger_username": shown,
            "confirmed_at": iso8601(node.clock.now),
        }


async def test_the_body_of_a_cancellation(node: "Node") -> None:
    """Nothing of the user's identity is in it."""
    project, _ = await node.project(webhook_url=URL)
    token = await node.opened(project)
    node.clock.now += 1_000
    await node.signin.cancel_session(token, "1001")
    (delivery,) = await node.webhooks.claim_deliveries(10)
    body = json.loads(node.webhooks.sign_delivery(delivery).body)
    assert body == {
        "id": delivery.event.id,
        "event": "auth.cancelled",
        "project_id": project.id,
        "session_token": token,
        "cancelled_at": iso8601(node.clock.now),
    }


async def test_the_headers_verify_with_the_current_secret(node: "Node") -> None:
    """The secret of the moment of claiming: one that was regenerated after the event is the one that counts."""
    node.clock.now = system_clock()
    developer = await node.developer()
    project, _ = await node.project(developer, webhook_url=URL)
    await node.confirmed(project)
    secrets = await node.projects.regenerate_secrets(developer, project.id)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    request = node.webhooks.sign_delivery(delivery)
    assert request.url == URL
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["User-Agent"] == "Taproof/test"
    assert request.headers["webhook-id"] == delivery.event.id
    Webhook(secrets.webhook_secret).verify(request.body, request.headers)


async def test_every_attempt_sends_the_same_id_and_bytes(node: "Node") -> None:
    """A receiver tells a repetition by its id; the signature's time is that of the attempt."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    (first,) = await node.webhooks.claim_deliveries(10)
    one = node.webhooks.sign_delivery(first)
    node.clock.now += 60_000
    (second,) = await node.webhooks.claim_deliveries(10)
    two = node.webhooks.sign_delivery(second)
    assert (one.body, one.headers["webhook-id"]) == (two.body, two.headers["webhook-id"])
    assert int(two.headers["webhook-timestamp"]) - int(one.headers["webhook-timestamp"]) == 60


async def test_the_store_holds_no_session_token_of_an_event(node: "Node") -> None:
    """Only a hash of a token may lie in the store: bodies are sealed."""
    project, _ = await node.project(webhook_url=URL)
    token = await node.confirmed(project)
    stored = node.storage._reader.execute("SELECT sealed_body FROM webhook_events").fetchall()
    (body,) = stored[0]
    assert isinstance(body, bytes)
    assert token.encode() not in body
    assert b"auth.confirmed" not in body


async def test_an_altered_or_moved_event_is_not_sent(node: "Node") -> None:
    """Two bodies that were exchanged in the store do not open."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    await node.confirmed(project, "1002")
    writer = node.storage._writer._connection
    bodies = writer.execute("SELECT id, sealed_body FROM webhook_events").fetchall()
    for (event_id, _), (_, body) in zip(bodies, reversed(bodies), strict=True):
        writer.execute("UPDATE webhook_events SET sealed_body = ? WHERE id = ?", (body, event_id))
    for delivery in await node.webhooks.claim_deliveries(10):
        with pytest.raises(SealBroken):
            node.webhooks.sign_delivery(delivery)


async def test_no_url_no_event(node: "Node") -> None:
    """Neither then nor when a URL is set later."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await node.confirmed(project)
    await node.projects.update_project(developer, project.id, ProjectChanges(webhook_url=URL))
    assert await node.webhooks.claim_deliveries(10) == []
    await node.confirmed(project)
    assert len(await node.webhooks.claim_deliveries(10)) == 1


async def test_a_crash_between_decision_and_event_undoes_both(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """One transaction: the tap that was not recorded whole can be repeated, and then sends one event."""
    project, _ = await node.project(webhook_url=URL)
    token = await node.opened(project)
    with monkeypatch.context() as crash:
        crash.setattr(sql, "RECORD_EVENT", "INSERT INTO no_such_table VALUES (1)")
        with pytest.raises(apsw.SQLError):
            await node.signin.confirm_session(token, Identity("1001", "Ada", ""))
        with pytest.raises(apsw.SQLError):
            await node.signin.cancel_session(token, "1001")
    assert (await node.signin.verify_session(project.id, token, public=True)).status == "pending"
    assert await node.webhooks.claim_deliveries(10) == []
    assert (await node.signin.confirm_session(token, Identity("1001", "Ada", ""))).changed
    assert len(await node.webhooks.claim_deliveries(10)) == 1
