"""List deliveries, resend them and send tests (contract.md, Webhooks)."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.databases import every_driver
from tests.service.conftest import acting

from taproof.contract.delivery import DeliveryState, EventType
from taproof.core.accounts import Developer
from taproof.core.clock import MINUTE, SECOND
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import DeliveryNotFound, InvalidRequest, ProjectNotFound, SignInReported, WebhookNotSet
from taproof.core.projects import Project, ProjectChanges
from taproof.service import deliveries
from taproof.service.deliveries import DeliveryPage, SeenDelivery
from taproof.service.webhooks import ANSWER_KEPT, LEASE, WebhookResponse

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"
UNKNOWN = "evt_" + "0" * 22


async def own_project(node: "Node") -> tuple[Developer, Project]:
    developer = await node.developer()
    project, _ = await node.project(developer, webhook_url=URL)
    return developer, project


async def page(
    node: "Node",
    developer: Developer,
    project: Project,
    event_type: EventType | None = None,
    state: DeliveryState | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> DeliveryPage:
    return await node.deliveries.list_deliveries(
        developer, project.id, event_type=event_type, state=state, limit=limit, cursor=cursor
    )


async def only(node: "Node", developer: Developer, project: Project) -> SeenDelivery:
    (found,) = (await page(node, developer, project)).deliveries
    return found


async def attempt(node: "Node", answer: WebhookResponse) -> None:
    """Let a worker make the next attempt at whatever is due."""
    (delivery,) = await node.webhooks.claim_deliveries(10)
    node.clock.now += answer.duration
    await node.webhooks.finish_attempt(delivery, answer)


# ---- the list


async def test_every_attempt_is_shown(node: "Node") -> None:
    """Each attempt shows time, duration, and answer or error. The delivery shows its next attempt or its end."""
    developer, project = await own_project(node)
    start = node.clock.now
    await node.confirmed(project)
    found = await only(node, developer, project)
    assert (found.record.state, found.record.due_at, found.sending, found.answers) == ("due", start, False, ())
    await attempt(node, WebhookResponse(7, 503, body=b"Service Unavailable"))
    found = await only(node, developer, project)
    assert found.record.state == "due"
    assert start + 5 * SECOND <= found.record.due_at <= start + 7 * SECOND
    node.clock.now += 10 * SECOND
    await attempt(node, WebhookResponse(9, error="connection_refused"))
    node.clock.now += 2 * MINUTE
    await attempt(node, WebhookResponse(1, 204))
    found = await only(node, developer, project)
    assert (found.record.state, found.record.finished_at) == ("delivered", node.clock.now)
    shown = [(each.number, each.duration, each.status, each.error) for each in found.record.attempts]
    assert shown == [(1, 7, 503, None), (2, 9, None, "connection_refused"), (3, 1, 204, None)]
    assert [each.started_at for each in found.record.attempts] == [
        start,
        start + 10 * SECOND + 7,
        start + 10 * SECOND + 2 * MINUTE + 16,
    ]
    assert found.answers == ("Service Unavailable", None, None)
    assert await node.deliveries.read_delivery(developer, found.record.event_id) == found


async def test_an_event_in_a_workers_hand_is_being_sent(node: "Node") -> None:
    """Until the worker's lease is over: then it is due, and what became of the attempt is not known."""
    developer, project = await own_project(node)
    await node.confirmed(project)
    await node.webhooks.claim_deliveries(10)
    assert (await only(node, developer, project)).sending
    node.clock.now += LEASE - 1
    assert (await only(node, developer, project)).sending
    node.clock.now += 1
    assert not (await only(node, developer, project)).sending
    await attempt(node, WebhookResponse(5, 200))
    found = await only(node, developer, project)
    assert (found.record.interrupted, len(found.record.attempts)) == (1, 1)


async def test_pages_lead_through_all_deliveries_of_one_project(node: "Node") -> None:
    """Newest first, each once; the last page has no cursor, also when it is full; filters hold on every page."""
    developer, project = await own_project(node)
    other, _ = await node.project(developer, webhook_url=URL)
    await node.confirmed(other)
    for number in range(10):
        node.clock.now += number % 2
        token = await node.opened(project)
        if number < 4:
            await node.signin.cancel_session(token, "1001")
        else:
            await node.deliveries.send_test(acting(developer), project.id)
    for event_type, state, count in (
        (None, None, 10),
        ("auth.cancelled", None, 4),
        ("webhook.test", None, 6),
        (None, "due", 4),
        (None, "delivered", 6),
        ("webhook.test", "delivered", 6),
        ("auth.confirmed", None, 0),
        ("webhook.test", "failed", 0),
    ):
        for limit in (1, 3, count or 1, 200):
            found: list[SeenDelivery] = []
            pages, cursor = 0, None
            while pages == 0 or cursor is not None:
                got = await page(node, developer, project, event_type, state, limit, cursor)  # type: ignore[arg-type]
                found += got.deliveries
                pages, cursor = pages + 1, got.next_cursor
            assert pages == max(1, -(-count // limit))
            assert len({each.record.event_id for each in found}) == len(found) == count
            keys = [(each.record.created_at, each.record.event_id) for each in found]
            assert keys == sorted(keys, reverse=True)
            assert {each.record.project_id for each in found} <= {project.id}


async def test_a_page_ends_before_its_attempts_are_too_many(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 answers are not opened for one call; the cursor leads on to every delivery, each once."""
    monkeypatch.setattr(deliveries, "PAGE_ATTEMPTS", 4)
    monkeypatch.setattr(deliveries, "_READ_AT_ONCE", 3)
    developer, project = await own_project(node)
    made: list[str] = []
    for resent in (0, 0, 6, 1, 0, 2, 0, 0, 0, 0):
        node.clock.now += 1
        event_id = (await node.deliveries.send_test(acting(developer), project.id)).record.event_id
        made.append(event_id)
        for _ in range(resent):
            await node.deliveries.resend_delivery(acting(developer), event_id)
            await attempt(node, WebhookResponse(1, 200, body=b"x"))
    for limit in (1, 2, 5, 200):
        pages: list[list[SeenDelivery]] = []
        cursor = None
        while not pages or cursor is not None:
            got = await page(node, developer, project, limit=limit, cursor=cursor)
            pages.append(got.deliveries)
            cursor = got.next_cursor
        assert [each.record.event_id for one in pages for each in one] == made[::-1]
        for one in pages:
            assert len(one) == 1 or sum(len(each.answers) for each in one) <= 4
            assert 1 <= len(one) <= limit


@pytest.mark.parametrize("cursor", ["", "x", "\ud800", "MS5zZXNzXzE", "MS5ldnRfAA"])
async def test_garbage_for_a_cursor_is_an_invalid_request(node: "Node", cursor: str) -> None:
    """Also one of another list, and one with a NUL in it, which must not reach the store."""
    developer, project = await own_project(node)
    with pytest.raises(InvalidRequest, match=r"^cursor "):
        await page(node, developer, project, cursor=cursor)


async def test_nothing_that_was_sent_is_shown(node: "Node") -> None:
    """A receiver that sends back what it got shows no session token nor, where its answer is cut, half of one."""
    developer, project = await own_project(node)
    for cut in range(0, 44, 3):
        token = await node.confirmed(project)
        (delivery,) = await node.webhooks.claim_deliveries(10)
        body = node.webhooks.sign_delivery(delivery).body
        assert token.encode() in body
        ahead = b"Got: "
        if cut:
            ahead = b"." * (ANSWER_KEPT - body.index(token.encode()) - cut)
        await node.webhooks.finish_attempt(delivery, WebhookResponse(5, 500, body=ahead + body))
        (found,) = (await page(node, developer, project, limit=1)).deliveries
        (answer,) = found.answers
        assert answer is not None
        assert answer.startswith(("Got: {", "."))
        assert token[:20] not in answer
        assert token not in repr(found)
        node.clock.now += 1
        await node.projects.update_project(acting(developer), project.id, ProjectChanges(webhook_url=""))
        await node.projects.update_project(acting(developer), project.id, ProjectChanges(webhook_url=URL))


async def test_an_ordinary_answer_is_shown_as_it_came(node: "Node") -> None:
    """Words, markup, ids of up to 42 characters; what is not UTF-8 is replaced, and only the first KB is there."""
    developer, project = await own_project(node)
    for body, shown in (
        ("<h1>Ошибка 👩\u200d💻</h1>\0\n".encode(), "<h1>Ошибка 👩\u200d💻</h1>\0\n"),
        (b"request 0123456789abcdef0123456789abcdef", "request 0123456789abcdef0123456789abcdef"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"x y " * 5_000, "x y " * 256),
        (b"", None),
    ):
        node.clock.now += 1
        node.receiver.answer = WebhookResponse(5, 400, body=body)
        assert (await node.deliveries.send_test(acting(developer), project.id)).answers == (shown,)


async def test_an_answer_that_cannot_be_opened_is_left_out(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the attempt is shown all the same."""
    developer, project = await own_project(node)
    await node.deliveries.send_test(acting(developer), project.id)
    monkeypatch.setattr(node.deliveries, "_encryptor", Encryptor(new_master_key(system_entropy)))
    found = await only(node, developer, project)
    assert (found.answers, found.record.attempts[0].status) == ((None,), 200)


# ---- whose they are


async def test_another_developers_deliveries_do_not_exist(node: "Node") -> None:
    """404 and never 403, whatever is asked, and nothing is changed or sent."""
    owner, project = await own_project(node)
    stranger, _ = await own_project(node)
    await node.confirmed(project)
    await attempt(node, WebhookResponse(5, 410))
    before = await page(node, owner, project)
    (event_id,) = (each.record.event_id for each in before.deliveries)
    with pytest.raises(ProjectNotFound):
        await page(node, stranger, project)
    with pytest.raises(ProjectNotFound):
        await node.deliveries.send_test(acting(stranger), project.id)
    for each in (event_id, UNKNOWN):
        with pytest.raises(DeliveryNotFound):
            await node.deliveries.resend_delivery(acting(stranger), each)
        with pytest.raises(DeliveryNotFound):
            await node.deliveries.read_delivery(stranger, each)
    assert await page(node, owner, project) == before
    assert (node.receiver.sent, node.receiver.times_recorded) == ([], 0)
    assert await node.webhooks.claim_deliveries(10) == []


async def test_a_deleted_projects_deliveries_are_gone(node: "Node") -> None:
    """At once, though housekeeping erases them later; nothing of them is sent again."""
    developer, project = await own_project(node)
    event_id = (await node.deliveries.send_test(acting(developer), project.id)).record.event_id
    await node.projects.delete_project(acting(developer), project.id)
    with pytest.raises(ProjectNotFound):
        await page(node, developer, project)
    with pytest.raises(ProjectNotFound):
        await node.deliveries.send_test(acting(developer), project.id)
    with pytest.raises(DeliveryNotFound):
        await node.deliveries.resend_delivery(acting(developer), event_id)
    with pytest.raises(DeliveryNotFound):
        await node.deliveries.read_delivery(developer, event_id)


@pytest.mark.parametrize("bad_id", ["", "x", "evt_", "evt_\0" + "0" * 21, "evt_\ud800" + "0" * 21, "e" * 1_000_000])
async def test_malformed_ids_do_not_reach_the_store(node: "Node", monkeypatch: pytest.MonkeyPatch, bad_id: str) -> None:
    """An event id that was never given out is unknown; what is no project id is an invalid request."""
    developer = await node.developer()

    async def fail(*_: object) -> None:
        raise AssertionError

    for name in ("resend_delivery", "read_delivery", "list_deliveries"):
        monkeypatch.setattr(node.storage.deliveries, name, fail)
    monkeypatch.setattr(node.storage.projects, "read_project", fail)
    with pytest.raises(DeliveryNotFound):
        await node.deliveries.resend_delivery(acting(developer), bad_id)
    with pytest.raises(DeliveryNotFound):
        await node.deliveries.read_delivery(developer, bad_id)
    with pytest.raises(InvalidRequest):
        await node.deliveries.send_test(acting(developer), bad_id)
    with pytest.raises(InvalidRequest):
        await node.deliveries.list_deliveries(developer, bad_id, event_type=None, state=None, limit=1, cursor=None)


# ---- sending again


@pytest.mark.parametrize("answer", [WebhookResponse(5, 200), WebhookResponse(5, 500)])
async def test_an_event_is_sent_again_with_the_same_id_and_body(node: "Node", answer: WebhookResponse) -> None:
    """In any status, a resent event is due at once, the sender is woken, and the attempts are counted on."""
    developer, project = await own_project(node)
    await node.confirmed(project)
    (first,) = await node.webhooks.claim_deliveries(10)
    await node.webhooks.finish_attempt(first, answer)
    node.clock.now += SECOND
    resent = await node.deliveries.resend_delivery(acting(developer), first.event.id)
    assert (resent.record.state, resent.record.due_at, resent.sending) == ("due", node.clock.now, False)
    assert resent.record.finished_at is None
    assert len(resent.record.attempts) == 1
    assert node.receiver.times_recorded == 1
    (again,) = await node.webhooks.claim_deliveries(10)
    assert (again.event, again.attempt, again.stage) == (first.event, 2, 0)
    assert node.webhooks.sign_delivery(again).body == node.webhooks.sign_delivery(first).body


async def test_a_dead_letter_has_all_retries_again(node: "Node") -> None:
    """The schedule begins anew with each resend."""
    developer, project = await own_project(node)
    await node.confirmed(project)
    counts = []
    for _ in range(2):
        while (await only(node, developer, project)).record.state == "due":
            node.clock.now = max(node.clock.now, (await only(node, developer, project)).record.due_at)
            await attempt(node, WebhookResponse(5, 500))
        counts.append(len((await only(node, developer, project)).record.attempts))
        found = await only(node, developer, project)
        assert found.record.state == "failed"
        await node.deliveries.resend_delivery(acting(developer), found.record.event_id)
    assert counts == [9, 18]


async def test_an_event_that_is_being_sent_is_left_to_its_worker(node: "Node") -> None:
    """Else two workers would have it in hand, and the receiver would get it twice."""
    developer, project = await own_project(node)
    await node.confirmed(project)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    assert (await node.deliveries.resend_delivery(acting(developer), delivery.event.id)).sending
    assert await node.webhooks.claim_deliveries(10) == []
    assert await node.webhooks.finish_attempt(delivery, WebhookResponse(5, 200)) == "delivered"
    assert (await only(node, developer, project)).record.state == "delivered"


@every_driver
async def test_resent_by_many_at_once_it_is_due_once(node: "Node", other_node: "Node") -> None:
    """With many requests on two nodes and workers that claim meanwhile, one worker makes one attempt."""
    developer, project = await own_project(node)
    await node.confirmed(project)
    await attempt(node, WebhookResponse(5, 500))
    event_id = (await only(node, developer, project)).record.event_id
    for turn in range(1, 4):
        claimed = await asyncio.gather(
            *(each.deliveries.resend_delivery(acting(developer), event_id) for each in (node, other_node) * 4),
            *(each.webhooks.claim_deliveries(10) for each in (node, other_node) * 2),
        )
        hands = [delivery for each in claimed if isinstance(each, list) for delivery in each]
        hands += await node.webhooks.claim_deliveries(10)
        assert len(hands) == 1
        await node.webhooks.finish_attempt(hands[0], WebhookResponse(5, 200))
        assert len((await only(node, developer, project)).record.attempts) == turn + 1
        assert await node.webhooks.claim_deliveries(10) == []


@pytest.mark.parametrize("answer", [WebhookResponse(5, 200), WebhookResponse(5, 500), None])
async def test_a_reported_sign_in_is_not_sent_again(node: "Node", answer: WebhookResponse | None) -> None:
    """A reported event is not resent, delivered or not. If it was sent at all, the reporter is told so."""
    developer, project = await own_project(node)
    token = await node.confirmed(project)
    if answer is not None:
        await attempt(node, answer)
    seen = await node.signin.report_session(token, "1001")
    assert (seen.outcome, seen.was_used) == ("reported", answer is not None)
    found = await only(node, developer, project)
    with pytest.raises(SignInReported, match="not sent again"):
        await node.deliveries.resend_delivery(acting(developer), found.record.event_id)
    assert await node.webhooks.claim_deliveries(10) == []
    await node.projects.update_project(acting(developer), project.id, ProjectChanges(webhook_url=""))
    with pytest.raises(SignInReported):
        await node.deliveries.resend_delivery(acting(developer), found.record.event_id)


async def test_without_a_webhook_nothing_is_sent_again(node: "Node") -> None:
    """The sentence says what to do first; with a URL set anew it is sent there."""
    developer, project = await own_project(node)
    await node.confirmed(project)
    await node.projects.update_project(acting(developer), project.id, ProjectChanges(webhook_url=""))
    found = await only(node, developer, project)
    assert found.record.state == "ended"
    with pytest.raises(WebhookNotSet, match="webhook_url"):
        await node.deliveries.resend_delivery(acting(developer), found.record.event_id)
    with pytest.raises(WebhookNotSet):
        await node.deliveries.send_test(acting(developer), project.id)
    assert await only(node, developer, project) == found
    await node.projects.update_project(
        acting(developer), project.id, ProjectChanges(webhook_url="https://example.net/new")
    )
    await node.deliveries.resend_delivery(acting(developer), found.record.event_id)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    assert delivery.webhook_url == "https://example.net/new"
