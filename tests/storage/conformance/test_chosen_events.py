"""Conformance: a webhook gets the events that its project has chosen, recorded in the transaction of their cause."""

import asyncio
from typing import get_args

import pytest
from tests.databases import NOW, expired_event
from tests.storage.seed import Seed

from taproof.contract.delivery import EventType
from taproof.contract.project import ProjectEvent
from taproof.core.clock import MINUTE
from taproof.core.deliveries import DeliveryRecord
from taproof.core.projects import Project, ProjectChanges
from taproof.core.sessions import NewSession
from taproof.storage.protocol import Storage

URL = "https://example.com/hook"
ALL_EVENTS: tuple[ProjectEvent, ...] = get_args(ProjectEvent)
LATER = NOW + 10 * MINUTE


async def recorded(storage: Storage, project: Project) -> list[DeliveryRecord]:
    return await storage.deliveries.list_deliveries(project.id, None, None, None, 200)


async def change(storage: Storage, project: Project, changes: ProjectChanges) -> None:
    assert await storage.projects.update_project(project.developer_id, project.id, changes, NOW)


@pytest.mark.parametrize("chosen", ALL_EVENTS)
async def test_confirm_session_and_the_others_record_what_is_chosen(
    storage: Storage, seed: Seed, chosen: ProjectEvent
) -> None:
    """Of a confirmed, a cancelled, a reported and an expired session, only the chosen events are recorded."""
    project = await seed.project(webhook_url=URL, webhook_events=(chosen,))
    confirmed, cancelled, reported = [await seed.opened(project) for _ in range(3)]
    expired = await seed.session(project)
    event = seed.event(project)
    assert await storage.sessions.confirm_session(confirmed.key, seed.identity("1001"), NOW, event)
    assert await storage.sessions.cancel_session(cancelled.key, "1001", NOW, seed.event(project, "auth.cancelled"))
    assert await seed.report(reported.key, "1001", NOW) == "cancelled"
    assert await storage.sessions.expire_sessions(LATER, 10, expired_event) == 1
    of_session = {
        "auth.confirmed": {confirmed.id},
        "auth.cancelled": {cancelled.id, reported.id},
        "auth.reported": {reported.id},
        "auth.expired": {expired.id},
    }
    found = await recorded(storage, project)
    assert {(each.type, each.session_id) for each in found} == {(chosen, each) for each in of_session[chosen]}


async def test_expire_sessions_records_events_for_those_who_chose_them(storage: Storage, seed: Seed) -> None:
    """Events are recorded even while the project is paused, but not without a webhook or the choice."""
    events: tuple[ProjectEvent, ...] = ("auth.expired",)
    chosen, paused, gone = [await seed.project(webhook_url=URL, webhook_events=events) for _ in range(3)]
    unchosen, bare = await seed.project(webhook_url=URL), await seed.project(webhook_events=events)
    sessions = {
        project.id: [await seed.session(project), await seed.opened(project)]
        for project in (chosen, paused, gone, unchosen, bare)
    }
    await change(storage, paused, ProjectChanges(is_active=False))
    await seed.delete(gone)
    assert await storage.sessions.expire_sessions(LATER, 100, expired_event) == 10
    for project in (gone, unchosen, bare):
        assert await recorded(storage, project) == []
    for project in (chosen, paused):
        found = await recorded(storage, project)
        assert {each.session_id for each in found} == {each.id for each in sessions[project.id]}
        assert {(each.type, each.created_at, each.due_at, each.state) for each in found} == {
            ("auth.expired", LATER, LATER, "due")
        }
    claimed = await storage.deliveries.claim_deliveries(LATER, LATER, 10)
    assert sorted(each.event.encrypted_body for each in claimed) == sorted(
        b"encrypted evt_" + each.id.removeprefix("sess_").encode()
        for each in (*sessions[chosen.id], *sessions[paused.id])
    )


async def test_expire_sessions_and_a_decision_at_the_same_instant(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """A session has the event of its outcome, and no other."""
    project = await seed.project(webhook_url=URL, webhook_events=ALL_EVENTS)
    opened = [await seed.opened(project) for _ in range(20)]

    async def decide(number: int, session: NewSession) -> bool:
        kind: EventType = "auth.confirmed" if number % 2 else "auth.cancelled"
        event, sessions = seed.event(project, kind, LATER - 1), other_node.sessions
        if number % 2:
            return bool(await sessions.confirm_session(session.key, seed.identity("1001"), LATER - 1, event))
        return bool(await sessions.cancel_session(session.key, "1001", LATER - 1, event))

    expired, *decided = await asyncio.gather(
        storage.sessions.expire_sessions(LATER, 100, expired_event), *map(decide, range(20), opened)
    )
    expired += await storage.sessions.expire_sessions(LATER, 100, expired_event)
    assert expired + sum(decided) == 20
    types = {each.session_id: each.type for each in await recorded(storage, project)}
    assert types == {
        session.id: ("auth.cancelled", "auth.confirmed")[number % 2] if done else "auth.expired"
        for number, (session, done) in enumerate(zip(opened, decided, strict=True))
    }
    counted = await storage.counts.read_daily_counts([project.id], 0)
    assert sum(each.expired + each.confirmed + each.cancelled for each in counted) == 20


async def test_expire_sessions_and_the_end_of_the_webhook_at_the_same_instant(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Whichever is first, no event stays due for a removed webhook."""
    for _ in range(10):
        project = await seed.project(webhook_url=URL, webhook_events=ALL_EVENTS)
        for _ in range(5):
            await seed.session(project)
        await asyncio.gather(
            storage.sessions.expire_sessions(LATER, 100, expired_event),
            change(other_node, project, ProjectChanges(webhook_url="")),
        )
        await storage.sessions.expire_sessions(LATER, 100, expired_event)
        assert {each.state for each in await recorded(storage, project)} <= {"ended"}


async def test_update_project_leaves_recorded_events_alone(storage: Storage, seed: Seed) -> None:
    """Events that are due when the choice changes are still sent; the next ones are not recorded."""
    project = await seed.project(webhook_url=URL, webhook_events=ALL_EVENTS)
    await seed.session(project)
    assert await storage.sessions.expire_sessions(LATER, 10, expired_event) == 1
    await change(storage, project, ProjectChanges(webhook_events=("auth.confirmed",)))
    await seed.session(project)
    assert await storage.sessions.expire_sessions(LATER, 10, expired_event) == 1
    (delivery,) = await storage.deliveries.claim_deliveries(LATER, LATER + 30_000, 10)
    assert await seed.attempted(delivery, "delivered", LATER)
    assert [each.state for each in await recorded(storage, project)] == ["delivered"]


async def test_erase_user_takes_every_event_of_a_session(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Those of a report and of an expiry too, even while sessions expire; other users' events stay."""
    project = await seed.project(webhook_url=URL, webhook_events=ALL_EVENTS)
    for user in ("1001", "2002"):
        used, confirmed = await seed.confirmed(project, user), await seed.confirmed(project, user)
        assert await storage.sessions.consume_session(used.key, NOW)
        for session in (used, confirmed, await seed.opened(project, user)):
            assert await seed.report(session.key, user, NOW + 1)
        await seed.opened(project, user)
    others = await seed.opened(project, "2002")

    async def erase() -> None:
        while await other_node.erasure.erase_sessions("1001", project.id, None, 3, describe=lambda _: []):
            pass

    await asyncio.gather(storage.sessions.expire_sessions(LATER, 100, expired_event), erase())
    await erase()
    await storage.sessions.expire_sessions(LATER, 100, expired_event)
    found = await recorded(storage, project)
    assert sorted(each.type for each in found) == [
        "auth.cancelled",
        *["auth.confirmed"] * 2,
        *["auth.expired"] * 2,
        *["auth.reported"] * 3,
    ]
    assert others.id in {each.session_id for each in found}
