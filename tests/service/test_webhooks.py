"""Webhook events: recording, sending and signing (contract.md, Webhooks)."""

import json
import re
from typing import TYPE_CHECKING

import apsw
import pytest
from tests.service.conftest import acting

from taproof.core.clock import DAY, HOUR, MINUTE, SECOND, iso8601
from taproof.core.deliveries import AttemptOutcome
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.retry_schedule import RETRY_DELAYS
from taproof.service.webhooks import (
    FAILING_LIMIT,
    LEASE,
    WebhookResponse,
)
from taproof.storage.queries import deliveries as delivery_queries

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"


async def test_the_body_of_a_confirmation(node: "Node") -> None:
    """The body has exactly the fields of the contract; the handle is null if there is none."""
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


async def test_a_crash_between_decision_and_event_undoes_both(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision and event are one transaction: after a crash, the tap can be repeated, and then causes one event."""
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


FAILED = WebhookResponse(120, 500)


async def attempt(node: "Node", answer: WebhookResponse = FAILED) -> AttemptOutcome:
    """Claim the one due event, and end its attempt with `answer`."""
    (delivery,) = await node.webhooks.claim_deliveries(10)
    return await node.webhooks.finish_attempt(delivery, answer)


async def fail_to_the_end(node: "Node", outcome: AttemptOutcome = "dead") -> None:
    """Make all nine attempts of the one due event; each fails, the last one with this outcome."""
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
    """Each delay is at least that of the contract and at most a fifth longer.

    After the last failure, the event is a dead letter.
    """
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


async def test_how_an_attempt_is_counted(node: "Node") -> None:
    """Any 2xx is a success.

    An attempt that was never sent, as with a wrong master key, does not count for the endpoint.
    """
    cases: tuple[tuple[WebhookResponse, AttemptOutcome, bool], ...] = (
        (WebhookResponse(1, 204), "delivered", False),
        (WebhookResponse(1, 199), "retried", True),
        (WebhookResponse(1, 300), "retried", True),
        (WebhookResponse(1, 503), "retried", True),
        (WebhookResponse(10_000, error="timeout"), "retried", True),
        (WebhookResponse(0, error="not_signed"), "retried", False),
        (WebhookResponse(0, error="circuit_open"), "skipped", False),
        (WebhookResponse(1, 410), "turned_off", True),
    )
    for answer, outcome, fails in cases:
        project, _ = await node.project(webhook_url=URL)
        await node.confirmed(project)
        assert await attempt(node, answer) == outcome, answer
        assert ((await shown(node, project)).webhook_failing_since is not None) is fails, answer


async def test_a_late_410_of_the_former_url_leaves_the_new_one_alone(node: "Node") -> None:
    """A developer changed the URL during an attempt to the old one, whose 410 does not turn off the new URL."""
    developer, project = await node.owned(webhook_url=URL)
    await node.confirmed(project)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    await node.projects.update_project(
        acting(developer), project.id, ProjectChanges(webhook_url="https://example.org/")
    )
    assert await node.webhooks.finish_attempt(delivery, WebhookResponse(1, 410)) == "dead"
    assert (await shown(node, project)).webhook_url == "https://example.org/"


async def test_five_days_of_nothing_but_failures_turn_the_webhook_off(node: "Node") -> None:
    """The webhook is turned off when an event is given up. Four days, such as a long weekend, are not enough."""
    project, _ = await node.project(webhook_url=URL)
    await node.confirmed(project)
    began = node.clock.now
    await fail_to_the_end(node)
    assert 4 * DAY < len(RETRY_DELAYS) * 13 * HOUR < FAILING_LIMIT
    assert (await shown(node, project)).webhook_url == URL
    node.clock.now = began + FAILING_LIMIT
    await node.confirmed(project, "1002")
    await fail_to_the_end(node, "turned_off")
    off = await shown(node, project)
    assert (off.webhook_url, off.webhook_off_url, off.webhook_off_reason) == ("", URL, "failing")


async def test_a_changed_url_gets_the_retry(node: "Node") -> None:
    """After the URL is changed, due events are sent to the new one."""
    developer, project = await node.owned(webhook_url=URL)
    await node.confirmed(project)
    await attempt(node)
    await node.projects.update_project(
        acting(developer), project.id, ProjectChanges(webhook_url="https://example.org/")
    )
    node.clock.now += MINUTE
    (delivery,) = await node.webhooks.claim_deliveries(10)
    assert (delivery.webhook_url, delivery.attempt) == ("https://example.org/", 2)


async def test_a_lease_leaves_time_for_an_attempt_and_for_the_one_before_it(node: "Node") -> None:
    """No attempt starts that could outlive its lease. An event that waited for one hanging post can still be sent."""
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
