"""List deliveries, resend them and send tests (contract.md, Webhooks)."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.databases import every_driver
from tests.service.conftest import acting

from taproof.core.accounts import Developer
from taproof.core.entropy import system_entropy
from taproof.core.errors import DeliveryNotFound, InvalidRequest, SignInReported
from taproof.core.projects import Project, ProjectChanges
from taproof.service.deliveries import Deliveries, DeliveryPage, SeenDelivery
from taproof.service.webhooks import ANSWER_KEPT, LEASE, WebhookResponse

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"


async def page(
    node: "Node", developer: Developer, project: Project, limit: int = 50, cursor: str | None = None
) -> DeliveryPage:
    return await node.deliveries.list_deliveries(
        developer, project.id, event_type=None, state=None, limit=limit, cursor=cursor
    )


async def only(node: "Node", developer: Developer, project: Project) -> SeenDelivery:
    (found,) = (await page(node, developer, project)).deliveries
    return found


async def attempt(node: "Node", answer: WebhookResponse) -> None:
    """Let a worker make the next attempt at each due delivery."""
    (delivery,) = await node.webhooks.claim_deliveries(10)
    node.clock.now += answer.duration
    await node.webhooks.finish_attempt(delivery, answer)


async def test_an_event_in_a_workers_hand_is_being_sent(node: "Node") -> None:
    """During the worker's lease, the event is being sent; afterwards it is due, and the attempt has no known result."""
    developer, project = await node.owned(webhook_url=URL)
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


async def test_a_page_ends_before_its_attempts_are_too_many(node: "Node") -> None:
    """10,000 answers are not decrypted in one call; the cursor leads to every delivery once."""
    node.deliveries = Deliveries(
        node.storage,
        node.encryptor,
        node.clock,
        system_entropy,
        node.webhooks,
        post=node.receiver.post,
        recorded=node.receiver.recorded,
        page_attempts=4,
        read_at_once=3,
    )
    developer, project = await node.owned(webhook_url=URL)
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


async def test_nothing_that_was_sent_is_shown(node: "Node") -> None:
    """The answer of a receiver that echoes its request shows no session token, nor half of one where it is cut."""
    developer, project = await node.owned(webhook_url=URL)
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


async def test_an_ordinary_answer_is_shown_as_it_came(node: "Node") -> None:
    """Words, markup and ids of up to 42 characters are shown.

    Invalid UTF-8 is replaced, and only the first KB is kept.
    """
    developer, project = await node.owned(webhook_url=URL)
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


async def test_malformed_ids_do_not_reach_the_store(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL would refuse a NUL or half of a surrogate pair with an error."""
    developer = await node.developer()

    async def fail(*_: object) -> None:
        raise AssertionError

    for name in ("resend_delivery", "read_delivery", "list_deliveries"):
        monkeypatch.setattr(node.storage.deliveries, name, fail)
    monkeypatch.setattr(node.storage.projects, "read_project", fail)
    for bad_id in ("", "x", "evt_", "evt_\0" + "0" * 21, "evt_\ud800" + "0" * 21, "e" * 1_000_000):
        with pytest.raises(DeliveryNotFound):
            await node.deliveries.resend_delivery(acting(developer), bad_id)
        with pytest.raises(DeliveryNotFound):
            await node.deliveries.read_delivery(developer, bad_id)
        with pytest.raises(InvalidRequest):
            await node.deliveries.send_test(acting(developer), bad_id)
        with pytest.raises(InvalidRequest):
            await node.deliveries.list_deliveries(developer, bad_id, event_type=None, state=None, limit=1, cursor=None)


@every_driver
async def test_resent_by_many_at_once_it_is_due_once(node: "Node", other_node: "Node") -> None:
    """With many requests on two nodes and workers that claim concurrently, one worker makes one attempt."""
    developer, project = await node.owned(webhook_url=URL)
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
    """A reported event is not resent, whether it was delivered or not. If it was ever sent, the reporter is told so."""
    developer, project = await node.owned(webhook_url=URL)
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
