"""Conformance: old rows go in bounded steps, the figures stay, and nobody who is signing in notices."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.databases import expired_event

from taproof.contract.delivery import DeliveryState
from taproof.core.clock import DAY, MINUTE
from taproof.core.projects import Project, ProjectChanges
from taproof.core.sessions import NewSession
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.conftest import Seed

LEASE = 30_000
FINAL: tuple[DeliveryState, ...] = ("delivered", "failed")


async def all_steps(purge: Callable[[int, int], Awaitable[int]], before: int, limit: int) -> list[int]:
    """Purge until nothing is left to do; return how much each step erased."""
    steps = []
    while erased := await purge(before, limit):
        steps.append(erased)
    assert await purge(before, limit) == 0
    return steps


async def sessions_of_every_kind(seed: "Seed", project: Project, at: int) -> list[NewSession]:
    """Store a session of each status, created at that time, by one and the same person."""
    pending, opened = await seed.session(project, at), await seed.opened(project, at=at)
    confirmed, used = await seed.confirmed(project, at=at), await seed.confirmed(project, at=at)
    cancelled = await seed.opened(project, at=at)
    assert await seed.storage.sessions.consume_session(used.key, at) is not None
    assert await seed.storage.sessions.cancel_session(cancelled.key, "1001", at, seed.event(project))
    return [pending, opened, confirmed, used, cancelled]


# ---- room for sessions


async def test_prepare_days_makes_room_for_all_of_them(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """The first and the last are included; two nodes may do it at once and again, and nothing stored is touched."""
    today = seed.now // DAY
    project = await seed.project()
    kept = await seed.confirmed(project)
    before = await storage.sessions.read_session(kept.key)
    for _ in range(2):
        await asyncio.gather(
            *(store.sessions.prepare_days(today - 1, today + 3) for store in (storage, other_node) * 3)
        )
    sessions = [await seed.session(project, at=seed.now + days * DAY) for days in range(-1, 4)]
    for session in sessions:
        seen = await other_node.sessions.poll_session(session.key)
        assert seen is not None
        assert seen.status == "pending"
    assert await storage.sessions.read_session(kept.key) == before


async def test_prepare_days_takes_one_day(storage: Storage, seed: "Seed") -> None:
    """Tomorrow alone, and a day of long ago."""
    project = await seed.project()
    for day in (seed.now // DAY + 1, 3):
        await storage.sessions.prepare_days(day, day)
        session = await seed.session(project, at=day * DAY)
        assert await storage.sessions.poll_session(session.key) is not None


# ---- sessions


async def test_purge_sessions_erases_what_was_created_before_that_day(storage: Storage, seed: "Seed") -> None:
    """The last millisecond of the day before goes, the first of that day stays; of every status, pending ones too."""
    project = await seed.project()
    day = seed.now // DAY
    old = await sessions_of_every_kind(seed, project, day * DAY - 1)
    kept = await sessions_of_every_kind(seed, project, day * DAY)
    assert sum(await all_steps(storage.sessions.purge_sessions, day, 100)) == len(old)
    for session in old:
        assert await storage.sessions.poll_session(session.key) is None
        assert await storage.sessions.read_session(session.key) is None
        assert not await storage.sessions.open_session(session.key, "1001", session.created_at)
        assert await storage.sessions.consume_session(session.key, session.created_at) is None
    found = await storage.sessions.list_sessions([project.id], None, None, 100, seed.now)
    assert {session.id for session in found} == {session.id for session in kept}


async def test_purge_sessions_leaves_every_figure(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Counters and analytics outlive sessions."""
    project = await seed.project()
    for days in range(5):
        await sessions_of_every_kind(seed, project, seed.now - days * DAY)
    await storage.sessions.expire_sessions(seed.now, 100, expired_event)

    async def figures() -> object:
        return (
            await storage.counts.read_daily_counts([project.id], 0),
            await storage.counts.read_daily_users(project.developer_id, 0),
            await storage.projects.read_project(project.id),
        )

    before = await figures()
    assert await all_steps(other_node.sessions.purge_sessions, seed.now // DAY + 1, 3)
    assert await storage.sessions.list_sessions([project.id], None, None, 100, seed.now) == []
    assert await figures() == before


async def test_purge_sessions_counts_a_person_who_comes_back_once(storage: Storage, seed: "Seed") -> None:
    """The sessions of a person are gone, but not that the person was there: the distinct users stay exact."""
    project = await seed.project()
    today = seed.now // DAY
    await seed.confirmed(project, "1", at=seed.now - 5 * DAY)
    await seed.confirmed(project, "2", at=seed.now - 5 * DAY)
    await all_steps(storage.sessions.purge_sessions, today, 100)
    await seed.confirmed(project, "1")
    users = await storage.counts.read_daily_users(project.developer_id, 0)
    assert [(row.day, row.unique_users, row.latest_users) for row in users] == [(today - 5, 2, 1), (today, 1, 1)]


async def test_purge_sessions_goes_in_steps(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """A step is bounded, by the limit or by whole days; two nodes at once erase each session once."""
    project = await seed.project()
    today = seed.now // DAY
    for number in range(30):
        await seed.session(project, at=seed.now - (1 + number % 6) * DAY)
    first = await storage.sessions.purge_sessions(today, 4)
    assert 4 <= first <= 5
    left = await storage.sessions.list_sessions([project.id], None, None, 100, seed.now)
    assert len(left) == 30 - first
    erased = first
    while step := sum(
        await asyncio.gather(*(store.sessions.purge_sessions(today, 4) for store in (storage, other_node)))
    ):
        assert step <= 10
        erased += step
    assert erased == 30
    assert await storage.sessions.list_sessions([project.id], None, None, 100, seed.now) == []


async def test_purge_sessions_makes_no_poll_wait_or_fail(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """While days are erased, sign-ins of today go on through both nodes; those that are erased are found or not."""
    project = await seed.project()
    today = seed.now // DAY
    old = [await seed.session(project, at=seed.now - (1 + number % 4) * DAY) for number in range(20)]
    purging = asyncio.create_task(all_steps(other_node.sessions.purge_sessions, today, 1))
    slowest = 0.0
    rounds = 0
    while not purging.done() or rounds < 5:
        rounds += 1
        started = asyncio.get_running_loop().time()
        session = await seed.confirmed(project, f"{rounds}")
        for store in (storage, other_node):
            polled = await store.sessions.poll_session(session.key)
            assert polled is not None
            assert polled.status == "confirmed"
            gone = await store.sessions.poll_session(old[rounds % len(old)].key)
            assert gone is None or gone.status == "pending"
        assert await other_node.sessions.consume_session(session.key, seed.now) is not None
        slowest = max(slowest, asyncio.get_running_loop().time() - started)
    assert sum(await purging) == 20
    assert slowest < 2


async def test_purge_sessions_leaves_events_that_are_due(storage: Storage, seed: "Seed") -> None:
    """A webhook that could not be delivered yet is still delivered when its session is gone."""
    project = await seed.project(webhook_url="https://example.com/")
    event = await seed.due_event(project, seed.now - DAY)
    assert await all_steps(storage.sessions.purge_sessions, seed.now // DAY, 100) == [1]
    due = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert [delivery.event for delivery in due] == [event]


async def test_purge_sessions_is_done_at_once_when_there_is_nothing(storage: Storage, seed: "Seed") -> None:
    """An empty store, and one whose sessions are all of today; days that are prepared for stay prepared."""
    today = seed.now // DAY
    assert await storage.sessions.purge_sessions(today, 10) == 0
    await storage.sessions.prepare_days(today, today + 2)
    session = await seed.session(await seed.project())
    assert await storage.sessions.purge_sessions(today, 10) == 0
    assert await storage.sessions.poll_session(session.key) is not None


# ---- webhook events


async def test_purge_events_erases_what_is_finished(storage: Storage, seed: "Seed") -> None:
    """Delivered, failed, or ended with its webhook: each goes, but not before its time."""
    project, ended = [await seed.project(webhook_url="https://example.com/") for _ in range(2)]
    for number, state in enumerate(FINAL, 1):
        delivery = await seed.claimed(project)
        attempt = replace(seed.attempt(), duration=number)
        assert await storage.deliveries.finish_attempt(delivery, attempt, state, seed.now)
    await seed.due_event(ended)
    await storage.projects.update_project(ended.developer_id, ended.id, ProjectChanges(webhook_url=""), seed.now + 3)
    for until in range(1, 4):
        assert await storage.deliveries.purge_events(seed.now + until, 10) == 0
        assert await storage.deliveries.purge_events(seed.now + until + 1, 10) == 1


async def test_purge_events_leaves_what_is_due(storage: Storage, seed: "Seed") -> None:
    """However old, whether nobody has tried it yet, a worker has it in hand, or its lease has lapsed."""
    project = await seed.project(webhook_url="https://example.com/")
    events = {(await seed.due_event(project, seed.now - number * DAY)).id for number in range(3)}
    (in_hand,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 1)
    assert await storage.deliveries.purge_events(seed.now + 1_000 * DAY, 10) == 0
    assert await seed.attempted(in_hand, "delivered")
    due = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert {delivery.event.id for delivery in due} == events - {in_hand.event.id}
    assert await storage.deliveries.purge_events(seed.now + 1_000 * DAY, 10) == 1
    assert await seed.attempted(due[0], "due")
    assert await storage.deliveries.purge_events(seed.now + 1_000 * DAY, 10) == 0
    again = await storage.deliveries.claim_deliveries(seed.now + LEASE, seed.now + 2 * LEASE, 10)
    assert sorted(delivery.attempt for delivery in again) == [1, 2]


async def test_purge_events_goes_in_steps(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Never more than the limit, and no event twice by two nodes at once."""
    project = await seed.project(webhook_url="https://example.com/")
    for _ in range(20):
        await seed.due_event(project)
    for delivery in await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 20):
        await seed.attempted(delivery, "delivered")
    before = seed.now + seed.attempt().duration + 1
    assert await storage.deliveries.purge_events(before, 3) == 3
    erased = 3
    while steps := await asyncio.gather(*(store.deliveries.purge_events(before, 3) for store in (storage, other_node))):
        assert max(steps) <= 3
        erased += sum(steps)
        if sum(steps) == 0:
            break
    assert erased == 20


async def test_purge_events_takes_the_attempts_along(storage: Storage, seed: "Seed") -> None:
    """Nothing of them is left: another event of the same id has its own attempts only; one that stays keeps its."""
    project = await seed.project(webhook_url="https://example.com/")
    kept, gone = await seed.claimed(project), await seed.claimed(project)
    assert await seed.attempted(kept, "due")
    for number in (1, 2):
        assert await seed.attempted(replace(gone, attempt=number), "failed")
        assert await storage.deliveries.resend_delivery(project.developer_id, gone.event.id, seed.now)
        claimed = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
        (gone,) = [delivery for delivery in claimed if delivery.event.id == gone.event.id]
    assert await seed.attempted(gone, "failed")
    assert await storage.deliveries.purge_events(seed.now + DAY, 10) == 1
    assert await storage.deliveries.read_delivery(project.developer_id, gone.event.id) is None
    assert await storage.deliveries.record_delivery(project.developer_id, gone.event, seed.attempt(1, 200), "delivered")
    records = [await storage.deliveries.read_delivery(project.developer_id, each.event.id) for each in (gone, kept)]
    assert [record.attempts for record in records if record] == [(seed.attempt(1, 200),), (seed.attempt(),)]


async def test_purge_deleted_projects_takes_attempts_and_endpoint_along(storage: Storage, seed: "Seed") -> None:
    """Nothing of them is left: another project of the same id with an event of the same id begins anew."""
    ada = await seed.developer()
    doomed, kept = [await seed.project(ada, webhook_url="https://example.com/") for _ in range(2)]
    events = []
    for project in (doomed, kept):
        for _ in range(3):
            delivery = await seed.claimed(project)
            assert await seed.attempted(delivery, "failed")
            events.append(delivery.event)
    await storage.projects.delete_project(ada.id, doomed.id)
    assert await storage.deliveries.list_deliveries(doomed.id, None, None, None, 10) == []
    while await storage.projects.purge_deleted_projects(2):
        pass
    await storage.projects.create_project(doomed, b"k" * 32)
    assert await storage.projects.read_project(doomed.id) == doomed
    assert await storage.deliveries.list_deliveries(doomed.id, None, None, None, 10) == []
    for event in events[:3]:
        assert await storage.deliveries.record_delivery(project.developer_id, event, seed.attempt(1, 200), "delivered")
        record = await storage.deliveries.read_delivery(ada.id, event.id)
        assert record is not None
        assert record.attempts == (seed.attempt(1, 200),)
    assert [len(each.attempts) for each in await storage.deliveries.list_deliveries(kept.id, None, None, None, 10)] == [
        1
    ] * 3
    others = await storage.projects.read_project(kept.id)
    assert others is not None
    assert others.webhook_failing_since == seed.now


# ---- who confirmed when


async def test_purge_user_days_leaves_the_figures_of_later_days(storage: Storage, seed: "Seed") -> None:
    """Distinct users since any day that is kept stay what they were, per project and per developer."""
    ada = await seed.developer()
    shop, forum = await seed.project(ada), await seed.project(ada)
    today = seed.now // DAY
    for project, user, days_ago in (
        (shop, "1", 9),
        (shop, "1", 1),
        (forum, "1", 2),
        (shop, "2", 9),
        (forum, "2", 8),
        (forum, "3", 0),
        (shop, "3", 9),
    ):
        await seed.confirmed(project, user, at=seed.now - days_ago * DAY)
    users = await storage.counts.read_daily_users(ada.id, 0)
    counts = await storage.counts.read_daily_counts([shop.id, forum.id], 0)
    assert sum(await all_steps(storage.counts.purge_user_days, today - 7, 100)) == 4
    assert await storage.counts.read_daily_users(ada.id, 0) == users
    assert await storage.counts.read_daily_counts([shop.id, forum.id], 0) == counts


async def test_purge_user_days_counts_a_person_who_comes_back(storage: Storage, seed: "Seed") -> None:
    """Somebody who was forgotten is a new person of the days that are kept: once, however often, in two projects."""
    ada = await seed.developer()
    shop, forum = await seed.project(ada), await seed.project(ada)
    today = seed.now // DAY
    for user in ("forgotten", "forgotten too"):
        await seed.confirmed(shop, user, at=seed.now - 100 * DAY)
    await seed.confirmed(shop, "known", at=seed.now - 100 * DAY)
    await seed.confirmed(shop, "known", at=seed.now - 2 * DAY)
    await all_steps(storage.counts.purge_user_days, today - 90, 100)
    for _ in range(2):
        for project in (shop, forum):
            await seed.confirmed(project, "forgotten", at=seed.now - DAY)
            await seed.confirmed(project, "known", at=seed.now - DAY)
        await seed.confirmed(shop, "forgotten")
    kept = [
        (row.day, row.unique_users, row.latest_users)
        for row in await storage.counts.read_daily_users(ada.id, today - 90)
    ]
    assert kept == [(today - 2, 1, 0), (today - 1, 2, 1), (today, 1, 1)]
    of_shop = [
        (row.day, row.unique_users, row.latest_users)
        for row in await storage.counts.read_daily_counts([shop.id], today - 90)
    ]
    assert of_shop == [(today - 2, 1, 0), (today - 1, 2, 1), (today, 1, 1)]


async def test_purge_user_days_lets_a_project_be_deleted(storage: Storage, seed: "Seed") -> None:
    """The people of a deleted project leave the figures of the days that are kept; older days are forgotten."""
    ada = await seed.developer()
    doomed, kept = await seed.project(ada), await seed.project(ada)
    today = seed.now // DAY
    for project, user, days_ago in ((doomed, "1", 100), (doomed, "1", 0), (kept, "1", 1), (doomed, "2", 0)):
        await seed.confirmed(project, user, at=seed.now - days_ago * DAY)
    await all_steps(storage.counts.purge_user_days, today - 90, 1)
    await storage.projects.delete_project(ada.id, doomed.id)
    while await storage.projects.purge_deleted_projects(10):
        pass
    users = await storage.counts.read_daily_users(ada.id, today - 90)
    assert [(row.day, row.unique_users, row.latest_users) for row in users if row.unique_users] == [(today - 1, 1, 1)]
    assert sum(row.latest_users for row in users) == 1


async def test_purge_user_days_goes_in_steps(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Never more than the limit; the day itself stays; sign-ins of the same people go on meanwhile."""
    project = await seed.project()
    today = seed.now // DAY
    for number in range(20):
        await seed.confirmed(project, f"{number}", at=seed.now - 10 * DAY)
        await seed.confirmed(project, f"{number}", at=seed.now - DAY)
    erased = 0
    for number in range(20):
        one, two, _ = await asyncio.gather(
            storage.counts.purge_user_days(today - 1, 3),
            other_node.counts.purge_user_days(today - 1, 3),
            seed.confirmed(project, f"{number}", at=seed.now + MINUTE),
        )
        assert max(one, two) <= 3
        erased += one + two
    assert erased == 20
    users = await storage.counts.read_daily_users(project.developer_id, today - 1)
    assert [(row.day, row.unique_users, row.latest_users) for row in users] == [(today - 1, 20, 0), (today, 20, 20)]
