"""Conformance: only the lease's holder records an attempt, and an endpoint that keeps failing is turned off."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import cast

from tests.storage.seed import Seed, present, run

from taproof.contract.delivery import ATTEMPTS_SHOWN, DeliveryState
from taproof.core.clock import DAY, SECOND
from taproof.core.deliveries import DeliveryRecord
from taproof.core.projects import Project, ProjectChanges
from taproof.storage.protocol import Storage

LEASE = 30 * SECOND
URL = "https://example.com/"
LATER = DAY


async def seen(storage: Storage, project: Project, event_id: str) -> DeliveryRecord:
    return present(await storage.deliveries.read_delivery(project.developer_id, event_id))


async def endpoint(storage: Storage, project: Project) -> tuple[object, ...]:
    """Return the state of a project's endpoint and its URL."""
    found = present(await storage.projects.read_project(project.id))
    off = (found.webhook_off_at, found.webhook_off_reason, found.webhook_off_url)
    return (found.webhook_url, found.webhook_failing_since, *off)


WORKS = (URL, None, None, None, None)
FINAL: tuple[DeliveryState, ...] = ("delivered", "failed")


async def test_finish_attempt_ends_an_event_for_good(storage: Storage, seed: Seed) -> None:
    """A delivered or failed event is not claimed again. The whole attempt is kept, with the time when it ended."""
    for state in FINAL:
        project = await seed.project(webhook_url=URL)
        delivery = await seed.claimed(project)
        attempt = seed.attempt(1, 204, seed.now + 5)
        assert await storage.deliveries.finish_attempt(delivery, attempt, state, seed.now + 17)
        assert not await storage.deliveries.finish_attempt(delivery, attempt, "delivered", seed.now + 17)
        assert await storage.deliveries.claim_deliveries(seed.now + LATER, seed.now + LATER + LEASE, 10) == []
        event = delivery.event
        (session,) = await storage.sessions.list_sessions([project.id], None, None, 2, seed.now)
        assert await seen(storage, project, event.id) == DeliveryRecord(
            event_id=event.id,
            project_id=project.id,
            type=event.type,
            created_at=event.created_at,
            state=state,
            due_at=seed.now + 17,
            leased_until=0,
            finished_at=seed.now + 5 + attempt.duration,
            interrupted=0,
            session_id=session.id,
            attempts=(attempt,),
        )


async def test_finish_attempt_lets_an_event_be_due_again(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The event is due again only at its time, at the next stage of the schedule. All attempts are kept."""
    project = await seed.project(webhook_url=URL)
    delivery = await seed.claimed(project)
    attempts = [seed.attempt(1, 503), seed.attempt(2, None), seed.attempt(3, 200)]
    at = seed.now
    for number, attempt in enumerate(attempts):
        assert (delivery.attempt, delivery.stage) == (number + 1, number)
        state: DeliveryState = "delivered" if attempt.status == 200 else "due"
        assert await other_node.deliveries.finish_attempt(delivery, attempt, state, at + 60_000)
        assert (await seen(storage, project, delivery.event.id)).attempts == tuple(attempts[: number + 1])
        at += 60_000
        assert await storage.deliveries.claim_deliveries(at - 1, at + LEASE, 10) == []
        if state == "due":
            (delivery,) = await storage.deliveries.claim_deliveries(at, at + LEASE, 10)
    assert (await seen(storage, project, delivery.event.id)).state == "delivered"


async def test_finish_attempt_needs_the_lease(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A worker whose lease has lapsed cannot record an outcome after another worker took the event over."""
    project = await seed.project(webhook_url=URL)
    slow = await seed.claimed(project)
    (quick,) = await other_node.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10)
    assert not await seed.attempted(slow, "failed", seed.now + LEASE)
    assert await other_node.deliveries.finish_attempt(quick, seed.attempt(), "delivered", seed.now + LEASE)
    assert not await seed.attempted(slow, "due", seed.now + LEASE)
    record = await seen(storage, project, slow.event.id)
    assert (record.state, record.interrupted, len(record.attempts)) == ("delivered", 1, 1)
    assert await endpoint(storage, project) == WORKS


async def test_finish_attempt_needs_the_lease_also_after_a_resend(storage: Storage, seed: Seed) -> None:
    """After a resend, the outcome of an earlier lease is not recorded."""
    project = await seed.project(webhook_url=URL)
    slow = await seed.claimed(project)
    assert await storage.deliveries.resend_delivery(project.developer_id, slow.event.id, seed.now + LEASE)
    assert not await seed.attempted(slow, "failed", seed.now + LEASE)
    (again,) = await storage.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10)
    assert not await seed.attempted(slow, "failed", seed.now + LEASE)
    assert await seed.attempted(again, "delivered", seed.now + LEASE)
    assert (await seen(storage, project, slow.event.id)).interrupted == 1


async def test_finish_attempt_of_a_removed_webhook_changes_nothing(storage: Storage, seed: Seed) -> None:
    """The URL was removed, or the project deleted, during the attempt."""
    for way in ("emptied", "deleted"):
        project = await seed.project(webhook_url=URL)
        delivery = await seed.claimed(project)
        if way == "emptied":
            await seed.update(project, webhook_url="")
        else:
            await seed.delete(project)
            await seed.purge_projects()
        assert not await seed.attempted(delivery, "failed")
        if way == "emptied":
            record = await seen(storage, project, delivery.event.id)
            assert (record.state, record.leased_until, record.attempts) == ("ended", 0, ())
            assert await endpoint(storage, project) == ("", *WORKS[1:])
    assert await storage.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10) == []


async def test_finish_attempt_takes_many_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Each of a hundred attempts on two nodes is recorded once, even if two workers report the same one."""
    ada = await seed.developer()
    projects = [await seed.project(ada, webhook_url=URL) for _ in range(4)]
    for number in range(100):
        await seed.due_event(projects[number % 4])
    held = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 100)
    states: list[DeliveryState] = ["delivered", "failed", "due"]
    finishing = [
        store.deliveries.finish_attempt(each, seed.attempt(), states[number % 3], seed.now + LEASE)
        for number, each in enumerate(held)
        for store in (storage, other_node, storage)
    ]
    finished = await asyncio.gather(*finishing)
    assert [sum(finished[at : at + 3]) for at in range(0, 300, 3)] == [1] * 100
    for number, each in enumerate(held):
        record = await seen(storage, projects[0], each.event.id)
        assert (record.state, record.attempts) == (states[number % 3], (seed.attempt(),))
    assert len(await storage.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 100)) == 33


async def test_finish_attempt_keeps_the_latest_attempts(storage: Storage, seed: Seed) -> None:
    """Stored attempts of an event are bounded. Others keep theirs, and a worker without the lease erases nothing."""
    project = await seed.project(webhook_url=URL)
    busy, calm = await seed.due_event(project), await seed.due_event(project)
    last = ATTEMPTS_SHOWN + 3
    for number in range(1, last + 1):
        held = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
        finishing = (
            storage.deliveries.finish_attempt(
                each, seed.attempt(each.attempt), "due", seed.now + (LATER if each.event == calm and number > 4 else 0)
            )
            for each in held
        )
        assert all(await asyncio.gather(*finishing))
    late = replace(next(each for each in held if each.event == busy), attempt=2 * last)
    assert not await storage.deliveries.finish_attempt(late, seed.attempt(2 * last), "due", seed.now)
    for event, numbers in ((busy, list(range(4, last + 1))), (calm, [1, 2, 3, 4, 5])):
        stored = await run(storage, f"SELECT number FROM webhook_attempts WHERE event_id = '{event.id}'")  # noqa: S608
        assert sorted(stored) == [(number,) for number in numbers]
        assert [each.number for each in (await seen(storage, project, event.id)).attempts] == numbers


async def test_finish_attempt_tells_since_when_the_endpoint_fails(storage: Storage, seed: Seed) -> None:
    """The endpoint fails from the first failed attempt that reached it until the first success.

    Others are not affected.
    """
    project, other = await seed.project(webhook_url=URL), await seed.project(webhook_url=URL)
    assert await seed.attempted(await seed.claimed(project), "failed", reached=False)
    assert await endpoint(storage, project) == WORKS
    assert await seed.attempted(await seed.claimed(project), "due", seed.now + 3, seed.now + LATER)
    assert await endpoint(storage, project) == (URL, seed.now + 3, None, None, None)
    for reached in (True, False):
        assert await seed.attempted(await seed.claimed(project), "failed", seed.now + 9, reached=reached)
    assert await endpoint(storage, project) == (URL, seed.now + 3, None, None, None)
    assert await seed.attempted(await seed.claimed(other), "delivered")
    assert await endpoint(storage, project) == (URL, seed.now + 3, None, None, None)
    assert await seed.attempted(await seed.claimed(project), "delivered", seed.now + 11)
    assert await endpoint(storage, project) == WORKS
    assert await seed.attempted(await seed.claimed(project), "failed", seed.now + 20)
    assert await endpoint(storage, project) == (URL, seed.now + 20, None, None, None)
    assert await endpoint(storage, other) == WORKS
    assert [each.webhook_failing_since for each in await storage.projects.list_projects(project.developer_id)] == [
        seed.now + 20
    ]


async def test_claim_deliveries_tells_whether_the_endpoint_fails(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """The endpoint counts as failing on every node, until an attempt or a developer's test succeeds."""
    project = await seed.project(webhook_url=URL)
    states: tuple[DeliveryState, ...] = ("failed", "delivered", "failed")
    for state, before in zip(states, (False, True, False), strict=True):
        await seed.due_event(project)
        (delivery,) = await other_node.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
        assert delivery.endpoint_fails == before
        assert await storage.deliveries.finish_attempt(delivery, seed.attempt(1, None), state, seed.now)
    for test_state, after in (("failed", True), ("delivered", False)):
        test = seed.event(project, "webhook.test")
        assert await storage.deliveries.record_delivery(
            project.developer_id, test, seed.attempt(1, None), cast("DeliveryState", test_state)
        )
        await seed.due_event(project)
        (delivery,) = await other_node.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
        assert delivery.endpoint_fails == after


async def test_update_project_with_a_webhook_forgets_its_failing(storage: Storage, seed: Seed) -> None:
    """Setting the URL, even the same one, restarts the five days. Other changes do not."""
    for url in (URL, "https://example.org/"):
        project = await seed.project(webhook_url=URL)
        update = partial(storage.projects.update_project, project.developer_id, project.id)
        assert await seed.attempted(await seed.claimed(project), "failed")
        await update(ProjectChanges(name="New"), seed.now)
        assert await endpoint(storage, project) == (URL, seed.now, None, None, None)
        assert present(await update(ProjectChanges(webhook_url=url), seed.now)).webhook_failing_since is None
        assert await endpoint(storage, project) == (url, *WORKS[1:])


async def test_turn_off_webhook_ends_what_is_due_and_says_why(storage: Storage, seed: Seed) -> None:
    """The developer sees the time, the reason and the URL. Due events end, and no new ones are recorded."""
    project, other = await seed.project(webhook_url=URL), await seed.project(webhook_url=URL)
    kept = await seed.due_event(other)
    assert await seed.attempted(await seed.claimed(project, seed.now - 9), "failed", seed.now - 9)
    waiting, in_hand = await seed.due_event(project), await seed.claimed(project, seed.now - 1)
    assert await storage.deliveries.turn_off_webhook(project.id, URL, "gone", seed.now + 7, None)
    assert await endpoint(storage, project) == ("", seed.now - 9, seed.now + 7, "gone", URL)
    for event in (waiting, in_hand.event):
        record = await seen(storage, project, event.id)
        assert (record.state, record.finished_at, record.leased_until) == ("ended", seed.now + 7, 0)
    assert not await seed.attempted(in_hand, "delivered")
    session = await seed.opened(project)
    assert await storage.sessions.cancel_session(session.key, "1001", seed.now, seed.event(project))
    due = await storage.deliveries.claim_deliveries(seed.now + LATER, seed.now + LATER + LEASE, 10)
    assert [delivery.event for delivery in due] == [kept]
    assert await endpoint(storage, other) == WORKS


async def test_turn_off_webhook_leaves_another_url_alone(storage: Storage, seed: Seed) -> None:
    """If the developer has changed or removed the URL or deleted the project, nothing changes."""
    project = await seed.project(webhook_url="https://example.org/")
    event = await seed.due_event(project)
    assert not await storage.deliveries.turn_off_webhook(project.id, URL, "gone", seed.now, None)
    assert not await storage.deliveries.turn_off_webhook("proj_unknown", URL, "gone", seed.now, None)
    assert await endpoint(storage, project) == ("https://example.org/", *WORKS[1:])
    assert [each.event for each in await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)] == [event]
    await seed.update(project, webhook_url="")
    for url in ("https://example.org/", ""):
        assert not await storage.deliveries.turn_off_webhook(project.id, url, "gone", seed.now, None)
    assert await endpoint(storage, project) == ("", *WORKS[1:])


async def test_turn_off_webhook_only_if_it_has_failed_for_so_long(storage: Storage, seed: Seed) -> None:
    """The time counts to the millisecond; an endpoint that works, or has worked since, is left alone."""
    project = await seed.project(webhook_url=URL)
    since = seed.now - 5 * DAY
    assert not await storage.deliveries.turn_off_webhook(project.id, URL, "failing", seed.now, since)
    assert await seed.attempted(await seed.claimed(project), "failed", since)
    waiting = await seed.due_event(project)
    assert not await storage.deliveries.turn_off_webhook(project.id, URL, "failing", seed.now, since - 1)
    assert (await seen(storage, project, waiting.id)).state == "due"
    assert await storage.deliveries.turn_off_webhook(project.id, URL, "failing", seed.now, since)
    assert await endpoint(storage, project) == ("", since, seed.now, "failing", URL)
    assert not await storage.deliveries.turn_off_webhook(project.id, URL, "failing", seed.now, since)


async def test_turn_off_webhook_is_over_when_a_url_is_set(storage: Storage, seed: Seed) -> None:
    """The note that it was off is gone, and events are recorded again; ended events stay ended."""
    project = await seed.project(webhook_url=URL)
    ended = await seed.due_event(project)
    assert await storage.deliveries.turn_off_webhook(project.id, URL, "gone", seed.now, None)
    await seed.update(project, name="New")
    assert await endpoint(storage, project) == ("", None, seed.now, "gone", URL)
    await seed.update(project, webhook_url=URL)
    assert await endpoint(storage, project) == WORKS
    delivery = await seed.claimed(project)
    assert delivery.event.id != ended.id
    assert await storage.deliveries.claim_deliveries(seed.now + LEASE - 1, seed.now + LATER, 10) == []


async def test_turn_off_webhook_loses_against_a_success_or_ends_it(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """On two nodes, either the success counts, or the webhook is off and all events have ended."""
    for _ in range(8):
        project = await seed.project(webhook_url=URL)
        assert await seed.attempted(await seed.claimed(project), "failed", seed.now - 5 * DAY)
        for _ in range(3):
            await seed.due_event(project)
        first, *rest = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 3)
        off, *delivered = await asyncio.gather(
            other_node.deliveries.turn_off_webhook(project.id, URL, "failing", seed.now, seed.now - 5 * DAY),
            storage.deliveries.finish_attempt(first, seed.attempt(1, 200), "delivered", seed.now),
            *(other_node.deliveries.finish_attempt(each, seed.attempt(1, 200), "delivered", seed.now) for each in rest),
        )
        assert delivered == [not off] * 3
        expected = ("", seed.now - 5 * DAY, seed.now, "failing", URL) if off else WORKS
        assert await endpoint(storage, project) == expected
