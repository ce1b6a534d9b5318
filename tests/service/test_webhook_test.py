"""A webhook test sends one signed event immediately and returns its result (contract.md, Webhooks)."""

import asyncio
import json

import pytest
from tests.service.conftest import Node, acting
from tests.service.test_deliveries import URL, only
from tests.waiting import until

from taproof import verify_webhook
from taproof.core.accounts import Actor, Developer
from taproof.core.clock import MINUTE, iso8601, system_clock
from taproof.core.errors import ProjectNotFound, WebhookNotSet
from taproof.core.projects import Project, ProjectChanges
from taproof.service.deliveries import TESTS_OF_ONE_LIMIT, SeenDelivery
from taproof.service.webhooks import WebhookResponse


async def test_a_test_is_signed_and_sent_at_once(node: Node) -> None:
    """A test is one post with the contract's body, checked by the SDK; it is recorded and not retried."""
    developer = await node.developer()
    project, secrets = await node.project(developer, webhook_url=URL)
    node.clock.now = system_clock()
    node.receiver.answer = WebhookResponse(12, 202, body=b"thanks")
    found = await node.deliveries.send_test(acting(developer), project.id)
    (request,) = node.receiver.sent
    assert request.url == URL
    assert request.headers["User-Agent"] == "Taproof/test"
    event = verify_webhook(request.body, request.headers, secrets.webhook_secret)
    assert (event.id, event.type) == (found.record.event_id, "webhook.test")
    assert json.loads(request.body) == {
        "id": found.record.event_id,
        "event": "webhook.test",
        "project_id": project.id,
        "created_at": iso8601(node.clock.now),
    }
    assert (found.record.type, found.record.state, found.sending) == ("webhook.test", "delivered", False)
    (made,) = found.record.attempts
    assert (made.number, made.duration, made.status, made.error) == (1, 12, 202, None)
    assert found.answers == ("thanks",)
    assert await only(node, developer, project) == found
    assert await node.webhooks.claim_deliveries(10) == []


async def test_a_test_that_fails_is_the_answer_too(node: Node) -> None:
    """A failed test is not retried and does not affect the endpoint: it is neither failing nor, at 410, turned off."""
    developer, project = await node.owned(webhook_url=URL)
    for answer in (
        WebhookResponse(5, 500, body=b"broken"),
        WebhookResponse(5, 410),
        WebhookResponse(9, error="timeout"),
    ):
        node.receiver.answer = answer
        found = await node.deliveries.send_test(acting(developer), project.id)
        assert (found.record.state, found.record.finished_at) == ("failed", node.clock.now)
        (made,) = found.record.attempts
        assert (made.duration, made.status, made.error) == (answer.duration, answer.status, answer.error)
        node.clock.now += MINUTE
        assert await node.webhooks.claim_deliveries(10) == []
        assert await node.projects.read_project(developer, project.id) == project


async def test_a_project_deleted_during_its_test_is_not_found(node: Node) -> None:
    """A test of a project that is deleted in the meantime is not recorded."""
    developer, project = await node.owned(webhook_url=URL)
    node.receiver.open.clear()
    test = asyncio.create_task(node.deliveries.send_test(acting(developer), project.id))
    await until(lambda: len(node.receiver.sent) == 1)
    await node.projects.delete_project(acting(developer), project.id)
    node.receiver.open.set()
    with pytest.raises(ProjectNotFound):
        await test


async def test_receivers_that_hang_hold_up_few(node: Node) -> None:
    """A developer has at most 4 running tests in a process.

    Others of that developer wait, and other developers do not.
    """
    node.receiver.open.clear()
    developers = [await node.owned(webhook_url=URL) for _ in range(5)]

    async def sent() -> int:
        """Return how many tests were sent, once every test that is under way has read its project."""
        await node.projects.read_project(developers[0][0], developers[0][1].id)
        return len(node.receiver.sent)

    many = [asyncio.create_task(node.deliveries.send_test(*_call(developers[0]))) for _ in range(20)]
    await until(lambda: len(node.receiver.sent) >= TESTS_OF_ONE_LIMIT)
    assert await sent() == TESTS_OF_ONE_LIMIT
    others = [asyncio.create_task(node.deliveries.send_test(*_call(each))) for each in developers[1:] for _ in range(5)]
    await until(lambda: len(node.receiver.sent) >= TESTS_OF_ONE_LIMIT * len(developers))
    assert await sent() == TESTS_OF_ONE_LIMIT * len(developers)
    node.receiver.open.set()
    done = await asyncio.gather(*many, *others)
    assert len({each.record.event_id for each in done}) == len(node.receiver.sent) == 40
    del many, others, done
    await until(lambda: not node.deliveries._tests_by_developer)


async def test_a_webhook_removed_while_a_test_waits_is_not_called(node: Node) -> None:
    """The test uses the URL at the time of sending."""
    developer, project = await node.owned(webhook_url=URL)
    node.receiver.open.clear()
    tests = [
        asyncio.create_task(node.deliveries.send_test(acting(developer), project.id))
        for _ in range(TESTS_OF_ONE_LIMIT + 1)
    ]
    await until(lambda: len(node.receiver.sent) == TESTS_OF_ONE_LIMIT)
    await node.projects.update_project(acting(developer), project.id, ProjectChanges(webhook_url=""))
    node.receiver.open.set()
    results = await asyncio.gather(*tests, return_exceptions=True)
    assert [type(each) for each in results] == [SeenDelivery] * TESTS_OF_ONE_LIMIT + [WebhookNotSet]
    assert len(node.receiver.sent) == TESTS_OF_ONE_LIMIT


def _call(owned: tuple[Developer, Project]) -> tuple[Actor, str]:
    return acting(owned[0]), owned[1].id
