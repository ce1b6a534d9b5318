"""Webhook events: what is recorded, what is sent, under which signature (contract.md, Webhooks)."""

import json
import re
from typing import TYPE_CHECKING

import apsw
import pytest
from standardwebhooks import Webhook
from tests.service.conftest import acting

from taproof.contract.delivery import AttemptError
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND, iso8601, system_clock
from taproof.core.deliveries import AttemptOutcome, PassedOver
from taproof.core.errors import DecryptionFailed
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.retry_schedule import RETRY_DELAYS
from taproof.service.webhooks import (
    ANSWER_KEPT,
    FAILING_LIMIT,
    LEASE,
    WebhookResponse,
    answer_associated_data,
)
from taproof.storage.queries import deliveries as delivery_queries

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"


async def test_the_body_of_a_confirmation(node: "Node") -> None:
    """Exactly the fields of the contract; the handle is null when there is none."""
    project, _ = await node.project(webhook_url=URL)
    for username, shown in (("ada", "ada"), ("", None)):
        token = await node.opened(project)
        node.clock.now += 1_000
        await node.signin.confirm_session(token, MessengerIdentity("1001", 'Зоя "👩\u200d💻" <b>', username))
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
    secrets = await node.projects.regenerate_secrets(acting(developer), project.id)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    request = node.webhooks.sign_delivery(delivery)
    assert request.url == URL
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["User-Agent"] == "Taproof/test"
    assert request.headers["webhook-id"] == delivery.event.id
    Webhook(secrets.webhook_secret).verify(request.body, dict(request.headers))


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
    """Only a hash of a token may lie in the store: bodies are encrypted."""
    project, _ = await node.project(webhook_url=URL)
    token = await node.confirmed(project)
    stored = node.storage.database.reader.execute("SELECT encrypted_body FROM webhook_events").fetchall()
    (body,) = stored[0]
    assert isinstance(body, bytes)
    assert token.encode() not in body
    assert b"auth.confirmed" not in body


async def test_an_altered_or_moved_event_is_not_sent(node: "Node") -> None:
    """Two bodies that were exchanged in the store do not open."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    await node.confirmed(project, "1002")
    writer = node.storage.database.writer._connection
    bodies = writer.execute("SELECT id, encrypted_body FROM webhook_events").fetchall()
    for (event_id, _), (_, body) in zip(bodies, reversed(bodies), strict=True):
        writer.execute("UPDATE webhook_events SET encrypted_body = ? WHERE id = ?", (body, event_id))
    for delivery in await node.webhooks.claim_deliveries(10):
        with pytest.raises(DecryptionFailed):
            node.webhooks.sign_delivery(delivery)


async def test_no_url_no_event(node: "Node") -> None:
    """Neither then nor when a URL is set later."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await node.confirmed(project)
    await node.projects.update_project(acting(developer), project.id, ProjectChanges(webhook_url=URL))
    assert await node.webhooks.claim_deliveries(10) == []
    await node.confirmed(project)
    assert len(await node.webhooks.claim_deliveries(10)) == 1


async def test_a_crash_between_decision_and_event_undoes_both(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are one transaction: a tap that was not recorded whole can be repeated, and then sends one event."""
    project, _ = await node.project(webhook_url=URL)
    token = await node.opened(project)
    with monkeypatch.context() as crash:
        crash.setattr(delivery_queries, "RECORD_EVENT", "INSERT INTO no_such_table VALUES (1)")
        with pytest.raises(apsw.SQLError):
            await node.signin.confirm_session(token, MessengerIdentity("1001", "Ada", ""))
        with pytest.raises(apsw.SQLError):
            await node.signin.cancel_session(token, "1001")
    assert (await node.signin.verify_session(project.id, token, public=True)).status == "pending"
    assert await node.webhooks.claim_deliveries(10) == []
    assert (await node.signin.confirm_session(token, MessengerIdentity("1001", "Ada", ""))).changed
    assert len(await node.webhooks.claim_deliveries(10)) == 1


# ---- what becomes of an attempt

FAILED = WebhookResponse(120, 500)


async def attempt(node: "Node", answer: WebhookResponse = FAILED) -> AttemptOutcome:
    """Claim the one event that is due, and let its attempt end with `answer`."""
    (delivery,) = await node.webhooks.claim_deliveries(10)
    return await node.webhooks.finish_attempt(delivery, answer)


async def fail_to_the_end(node: "Node", outcome: AttemptOutcome = "dead") -> None:
    """Make all nine attempts of the one event that is due; each fails, the last one with this outcome."""
    for _ in RETRY_DELAYS:
        assert await attempt(node) == "retried"
        node.clock.now += 13 * HOUR
    assert await attempt(node) == outcome


async def shown(node: "Node", project: Project) -> Project:
    """Return a project as it is now."""
    found = await node.storage.projects.read_project(project.id)
    assert found is not None
    return found


async def test_retries_follow_the_schedule_and_the_ninth_failure_is_the_last(node: "Node") -> None:
    """Each waits at least as long as the contract says and at most a fifth longer; then the event is dead-lettered."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    for number, delay in enumerate(RETRY_DELAYS, 1):
        assert await attempt(node) == "retried"
        node.clock.now += delay - 1
        assert await node.webhooks.claim_deliveries(10) == [], number
        node.clock.now += delay // 5 + 1
    assert await attempt(node) == "dead"
    node.clock.now += 30 * DAY
    assert await node.webhooks.claim_deliveries(10) == []
    (record,) = await node.storage.deliveries.list_deliveries(project.id, None, None, None, 10)
    assert (record.state, [each.number for each in record.attempts]) == ("failed", list(range(1, 10)))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (WebhookResponse(1, 204), "delivered"),
        (WebhookResponse(1, 199), "retried"),
        (WebhookResponse(1, 300), "retried"),
        (WebhookResponse(1, 503), "retried"),
        (WebhookResponse(10_000, error="timeout"), "retried"),
        (WebhookResponse(0, error="not_signed"), "retried"),
        (WebhookResponse(0, error="circuit_open"), "skipped"),
        (WebhookResponse(1, 410), "turned_off"),
    ],
)
async def test_how_an_attempt_is_counted(node: "Node", answer: WebhookResponse, outcome: AttemptOutcome) -> None:
    """Any 2xx is success; what was not sent for the endpoint's sake is told from what was sent in vain."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    assert await attempt(node, answer) == outcome


async def test_an_attempt_is_kept_with_the_beginning_of_its_answer(node: "Node") -> None:
    """Time, duration, status, and at most a kilobyte, masked and encrypted: a receiver may send a token back."""
    project, _ = await node.project(webhook_url=URL)
    token = await node.confirmed(project)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    answer = WebhookResponse(120, 500, body=token.encode() + b"\xff" + b"x y " * 500)
    await node.webhooks.finish_attempt(delivery, answer)
    (record,) = await node.storage.deliveries.list_deliveries(project.id, None, None, None, 10)
    (kept,) = record.attempts
    assert (kept.started_at, kept.duration, kept.status, kept.error) == (node.clock.now - 120, 120, 500, None)
    assert kept.encrypted_answer is not None
    assert token.encode() not in kept.encrypted_answer
    opened = node.encryptor.decrypt(kept.encrypted_answer, answer_associated_data(delivery.event.id, 1))
    assert opened == "…\ufffd" + ("x y " * 250)[: ANSWER_KEPT - len(token) - 1]


async def test_410_turns_the_webhook_off_and_ends_the_rest(node: "Node") -> None:
    """The receiver said that it is gone for good: nothing more is sent there, and the developer sees why."""
    project, _ = await node.project(webhook_url=URL)
    for user in range(3):
        await node.confirmed(project, str(user))
    first, *_ = await node.webhooks.claim_deliveries(1)
    assert await node.webhooks.finish_attempt(first, WebhookResponse(1, 410)) == "turned_off"
    off = await shown(node, project)
    assert (off.webhook_url, off.webhook_off_url, off.webhook_off_reason) == ("", URL, "gone")
    assert off.webhook_off_at == node.clock.now
    records = await node.storage.deliveries.list_deliveries(project.id, None, None, None, 10)
    assert sorted(each.state for each in records) == ["ended", "ended", "failed"]
    node.clock.now += 30 * DAY
    assert await node.webhooks.claim_deliveries(10) == []


async def test_a_late_410_of_the_former_url_leaves_the_new_one_alone(node: "Node") -> None:
    """The developer has mended the URL while an attempt to the old one was under way."""
    developer = await node.developer()
    project, _ = await node.project(developer, webhook_url=URL)
    await node.confirmed(project)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    await node.projects.update_project(
        acting(developer), project.id, ProjectChanges(webhook_url="https://example.org/")
    )
    assert await node.webhooks.finish_attempt(delivery, WebhookResponse(1, 410)) == "dead"
    assert (await shown(node, project)).webhook_url == "https://example.org/"


async def test_five_days_of_nothing_but_failures_turn_the_webhook_off(node: "Node") -> None:
    """Judged when an event is given up; what else is due is ended, and the developer sees why."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    began = node.clock.now
    await fail_to_the_end(node)
    assert (await shown(node, project)).webhook_url == URL
    node.clock.now = began + FAILING_LIMIT
    await node.confirmed(project, "1002")
    await fail_to_the_end(node, "turned_off")
    off = await shown(node, project)
    assert (off.webhook_url, off.webhook_off_url, off.webhook_off_reason) == ("", URL, "failing")


async def test_four_days_of_failures_do_not_turn_the_webhook_off(node: "Node") -> None:
    """An endpoint may be down over a long weekend."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    await fail_to_the_end(node)
    assert 4 * DAY < len(RETRY_DELAYS) * 13 * HOUR < FAILING_LIMIT
    assert (await shown(node, project)).webhook_url == URL


async def test_one_success_between_failures_begins_the_five_days_anew(node: "Node") -> None:
    """An endpoint that takes an event now and then is not turned off, however often it fails."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    await fail_to_the_end(node)
    await node.confirmed(project, "1002")
    assert await attempt(node, WebhookResponse(1, 200)) == "delivered"
    await node.confirmed(project, "1003")
    await fail_to_the_end(node)
    assert (await shown(node, project)).webhook_url == URL


@pytest.mark.parametrize("error", ["circuit_open", "not_signed"])
async def test_what_was_not_sent_is_not_held_against_the_endpoint(node: "Node", error: AttemptError) -> None:
    """A wrong master key, or a circuit that is open, must not turn the webhooks of healthy receivers off."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    for _ in range(len(RETRY_DELAYS) + 1):
        await attempt(node, WebhookResponse(0, error=error))
        node.clock.now += DAY
    assert (await shown(node, project)).webhook_url == URL
    assert (await shown(node, project)).webhook_failing_since is None


async def test_a_changed_url_gets_the_retry(node: "Node") -> None:
    """A developer who mends the URL gets the events that are still due."""
    developer = await node.developer()
    project, _ = await node.project(developer, webhook_url=URL)
    await node.confirmed(project)
    await attempt(node)
    await node.projects.update_project(
        acting(developer), project.id, ProjectChanges(webhook_url="https://example.org/")
    )
    node.clock.now += MINUTE
    (delivery,) = await node.webhooks.claim_deliveries(10)
    assert (delivery.webhook_url, delivery.attempt) == ("https://example.org/", 2)


@pytest.mark.parametrize("how", ["emptied", "deleted"])
async def test_no_retry_without_a_url_or_without_a_project(node: "Node", how: str) -> None:
    """Its deliveries end, also the one that is under way just then."""
    developer = await node.developer()
    project, _ = await node.project(developer, webhook_url=URL)
    await node.confirmed(project)
    await node.confirmed(project, "1002")
    first, second = await node.webhooks.claim_deliveries(10)
    assert await node.webhooks.finish_attempt(first, FAILED) == "retried"
    if how == "emptied":
        await node.projects.update_project(acting(developer), project.id, ProjectChanges(webhook_url=""))
    else:
        await node.projects.delete_project(acting(developer), project.id)
        while await node.housekeeping.sweep():
            pass
    assert await node.webhooks.finish_attempt(second, FAILED) == "lost"
    node.clock.now += DAY
    assert await node.webhooks.claim_deliveries(10) == []


async def test_a_lease_leaves_time_for_an_attempt_and_for_the_one_before_it(node: "Node") -> None:
    """Nothing is begun that could outlive the lease, and an event that waited for one hanging post can still go."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    node.clock.now += 10 * SECOND
    assert node.webhooks.has_time(delivery)
    # A second more than an attempt may take: another node's clock may be so much ahead.
    node.clock.now = delivery.leased_until - 11 * SECOND
    assert not node.webhooks.has_time(delivery)
    node.clock.now -= 1
    assert node.webhooks.has_time(delivery)
    await node.webhooks.release_deliveries([delivery])
    (again,) = await node.webhooks.claim_deliveries(10)
    assert (again.attempt, again.leased_until) == (1, node.clock.now + LEASE)


async def test_claims_pass_over_projects_that_are_full(node: "Node") -> None:
    """A backlog for one receiver does not stand before the events of others."""
    busy, _ = await node.project(webhook_url=URL)
    for user in range(5):
        await node.confirmed(busy, str(user))
    other, _ = await node.project(webhook_url=URL)
    await node.confirmed(other)
    (delivery,) = await node.webhooks.claim_deliveries(3, PassedOver([busy.id]))
    assert delivery.event.project_id == other.id


async def test_the_age_of_the_oldest_due_event(node: "Node") -> None:
    """In seconds, 0 when nothing is due; an event that waits for its next attempt is not overdue."""
    assert await node.webhooks.oldest_due_age() == 0
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    node.clock.now += 2_500
    assert await node.webhooks.oldest_due_age() == 2.5
    await attempt(node)
    assert await node.webhooks.oldest_due_age() == 0
