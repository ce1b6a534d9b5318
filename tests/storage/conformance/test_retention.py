"""Conformance: old rows are erased in bounded steps, the figures stay, and current sign-ins are not affected."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.databases import NOW, expired_event
from tests.storage.seed import Seed, present, run

from taproof.contract.delivery import DeliveryState
from taproof.core.accounts import AuditPurge
from taproof.core.clock import DAY, MINUTE
from taproof.core.projects import Project, ProjectChanges
from taproof.core.sessions import NewSession
from taproof.storage.protocol import Storage

LEASE = 30_000
FINAL: tuple[DeliveryState, ...] = ("delivered", "failed")


async def all_steps(purge: Callable[[int, int], Awaitable[int]], before: int, limit: int) -> list[int]:
    """Purge until nothing is left; return the number of erased rows of each step."""
    steps = []
    while erased := await purge(before, limit):
        steps.append(erased)
    assert await purge(before, limit) == 0
    return steps


async def sessions_of_every_kind(seed: Seed, project: Project, at: int) -> list[NewSession]:
    """Store a session of each status, created at that time by the same user."""
    pending, opened = await seed.session(project, at), await seed.opened(project, at=at)
    confirmed, used = await seed.confirmed(project, at=at), await seed.confirmed(project, at=at)
    cancelled = await seed.opened(project, at=at)
    assert await seed.storage.sessions.consume_session(used.key, at) is not None
    assert await seed.storage.sessions.cancel_session(cancelled.key, "1001", at, seed.event(project))
    return [pending, opened, confirmed, used, cancelled]


async def test_prepare_days_makes_room_for_all_of_them(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The first and the last day are included.

    Two nodes may repeat the call concurrently, and stored rows do not change.
    """
    today = seed.now // DAY
    project = await seed.project()
    kept = await seed.confirmed(project)
    before = await storage.sessions.read_session(kept.key)
    for _ in range(2):
        await asyncio.gather(
            *(store.sessions.prepare_days(today - 1, today + 3) for store in (storage, other_node) * 3),
            seed.session(project, at=seed.now + 2 * DAY),
        )
    sessions = [await seed.session(project, at=seed.now + days * DAY) for days in range(-1, 4)]
    for session in sessions:
        seen = present(await other_node.sessions.poll_session(session.key))
        assert seen.status == "pending"
    assert await storage.sessions.read_session(kept.key) == before


async def test_purge_sessions_erases_what_was_created_before_that_day(storage: Storage, seed: Seed) -> None:
    """Sessions up to the last millisecond of the day before are erased in every state, pending included.

    Later ones stay.
    """
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


async def test_purge_sessions_leaves_every_figure(storage: Storage, other_node: Storage, seed: Seed) -> None:
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


async def test_purge_sessions_goes_in_steps(storage: Storage, other_node: Storage, seed: Seed) -> None:
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


async def test_purge_sessions_leaves_events_that_are_due(storage: Storage, seed: Seed) -> None:
    """An event that could not be delivered yet is still delivered after its session is erased."""
    project = await seed.project(webhook_url="https://example.com/")
    event = await seed.due_event(project, seed.now - DAY)
    assert await all_steps(storage.sessions.purge_sessions, seed.now // DAY, 100) == [1]
    due = await storage.deliveries.claim_deliveries(seed.now, seed.now + LEASE, 10)
    assert [delivery.event for delivery in due] == [event]


async def test_purge_events_erases_what_is_finished(storage: Storage, seed: Seed) -> None:
    """Delivered, failed and ended events are erased, each exactly at its time."""
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


async def test_purge_events_leaves_what_is_due(storage: Storage, seed: Seed) -> None:
    """A due event stays, however old, whether it is untried, claimed, or its lease has expired."""
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


async def test_purge_events_goes_in_steps(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A step never exceeds the limit, and two nodes erase each event once."""
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


async def test_purge_events_takes_the_attempts_along(storage: Storage, seed: Seed) -> None:
    """An erased event's attempts are erased too; a remaining event keeps its own."""
    project = await seed.project(webhook_url="https://example.com/")
    kept, gone = await seed.claimed(project), await seed.claimed(project)
    assert await seed.attempted(kept, "due")
    assert await seed.attempted(gone, "failed")
    assert await storage.deliveries.purge_events(seed.now + DAY, 10) == 1
    assert await run(storage, "SELECT event_id FROM webhook_attempts") == [(kept.event.id,)]


async def test_purge_deleted_projects_takes_attempts_and_endpoint_along(storage: Storage, seed: Seed) -> None:
    """Attempts and endpoint are erased; another project of the same developer keeps its own."""
    ada = await seed.developer()
    doomed, kept = [await seed.project(ada, webhook_url="https://example.com/") for _ in range(2)]
    for project in (doomed, kept):
        for _ in range(3):
            assert await seed.attempted(await seed.claimed(project), "failed")
    await storage.projects.delete_project(ada.id, doomed.id)
    assert await storage.deliveries.list_deliveries(doomed.id, None, None, None, 10) == []
    await seed.purge_projects(2)
    for table, count in (("webhook_events", 3), ("webhook_attempts", 3), ("webhook_endpoints", 1)):
        assert await run(storage, f"SELECT COUNT(*) FROM {table}") == [(count,)], table  # noqa: S608
    left = await storage.deliveries.list_deliveries(kept.id, None, None, None, 10)
    assert [len(each.attempts) for each in left] == [1] * 3
    assert present(await storage.projects.read_project(kept.id)).webhook_failing_since == seed.now


async def test_purge_user_days_goes_in_steps(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A step never exceeds the limit; the given day itself stays, and sign-ins of the same users continue."""
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


EDGE = NOW // DAY * DAY


async def test_purge_audit_entries_erases_what_is_older(storage: Storage, seed: Seed) -> None:
    """In bounded steps, oldest first. Entries at or after the limit stay, and so do the logs of others."""
    old = [seed.entry("dev_1", at=EDGE - 9 + number) for number in range(9)]
    kept = [seed.entry("dev_1", at=EDGE), seed.entry("dev_1", at=EDGE + 5)]
    of_bob = [seed.entry("dev_2", at=EDGE - 1), seed.entry("dev_2", at=EDGE + 1)]
    of_cleo = seed.entry("dev_3", at=EDGE + 2)
    for entry in (*old, *kept, *of_bob, of_cleo):
        await storage.audit.add_audit_entry(entry)
    assert await storage.audit.read_audit_purge("dev_1") is None
    assert await storage.audit.purge_audit_entries(EDGE, NOW, 4) == 4
    assert await storage.audit.read_audit_purge("dev_1") == AuditPurge(EDGE, 4, NOW)
    # The others are about to be erased: a log does not end in the middle of a day.
    assert await storage.audit.list_audit_entries("dev_1", None, 99) == kept[::-1]
    assert await storage.audit.purge_audit_entries(EDGE, NOW + 1, 4) == 4
    assert await storage.audit.purge_audit_entries(EDGE, NOW + 2, 4) == 2
    assert await storage.audit.purge_audit_entries(EDGE, NOW + 3, 4) == 0
    assert await storage.audit.read_audit_purge("dev_1") == AuditPurge(EDGE, 9, NOW + 2)
    assert await storage.audit.read_audit_purge("dev_2") == AuditPurge(EDGE, 1, NOW + 2)
    assert await storage.audit.read_audit_purge("dev_3") is None
    assert await storage.audit.list_audit_entries("dev_1", None, 99) == kept[::-1]
    assert await storage.audit.list_audit_entries("dev_2", None, 99) == of_bob[1:]
    assert await storage.audit.list_audit_entries("dev_3", None, 99) == [of_cleo]
    assert sorted(await run(storage, "SELECT id FROM audit_entries")) == sorted(
        (entry.id,) for entry in (*kept, of_bob[1], of_cleo)
    )


async def test_read_audit_purge_is_one_row(storage: Storage, seed: Seed) -> None:
    """A hundred days of erasing leave one row with the total; its limit only increases."""
    for day in range(100):
        await storage.audit.add_audit_entry(seed.entry("dev_1", at=EDGE + day * DAY))
        assert await storage.audit.purge_audit_entries(EDGE + (day + 1) * DAY, NOW + day, 10) == 1
    assert await storage.audit.purge_audit_entries(EDGE, NOW, 10) == 0
    assert await storage.audit.read_audit_purge("dev_1") == AuditPurge(EDGE + 100 * DAY, 100, NOW + 99)
    assert len(await run(storage, "SELECT * FROM audit_purges")) == 1
    assert await run(storage, "SELECT id FROM audit_entries") == []


@pytest.mark.parametrize("before", [EDGE, EDGE + 1])
async def test_nothing_is_erased_that_is_not_written_down(storage: Storage, seed: Seed, before: int) -> None:
    """The database refuses to erase entries that no purge record covers."""
    covered, later, of_bob = (seed.entry("dev_1", at=EDGE - 1), seed.entry("dev_1", at=EDGE + 1), seed.entry("dev_2"))
    for entry in (covered, later, of_bob):
        await storage.audit.add_audit_entry(entry)
    assert await storage.audit.purge_audit_entries(before, NOW, 10) == 1
    for entry in (later, of_bob):
        with pytest.raises(Exception, match="append-only"):
            await run(storage, f"DELETE FROM audit_entries WHERE id = '{entry.id}'")  # noqa: S608
    assert await storage.audit.list_audit_entries("dev_1", None, 9) == [later]
    assert await storage.audit.list_audit_entries("dev_2", None, 9) == [of_bob]
