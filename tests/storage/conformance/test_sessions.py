"""Conformance: the life of a session; of any number of callers one wins, on however many nodes."""

import asyncio
import itertools
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.databases import expired_event

from taproof.core.clock import DAY, MINUTE
from taproof.core.errors import ProjectNotFound, ProjectPaused, PublicAccessDisabled, SameDeviceRequired, TaproofError
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.core.sessions import ConsumedSession, Hint, PolledSession, Refused, ReturnPolicy, Session, SessionKey
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed

EDGE = 10 * MINUTE


async def test_create_session_stores_it_as_pending(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Once created, every node sees it, with nobody's name on it."""
    project = await seed.project()
    new = await seed.session(project)
    assert await other_node.sessions.read_session(new.key) == Session(
        new.key, new.id, project.id, project.name, "pending", new.created_at, new.created_at + EDGE
    )


async def test_create_session_obeys_the_projects_settings(storage: Storage, seed: "Seed") -> None:
    """A refusal names its reason, and stores and counts nothing. Only a public call needs public access."""
    for is_active, public_access, public, required, url in itertools.product((True, False), repeat=5):
        project = await seed.project(is_active=is_active, public_access=public_access)
        policy = ProjectChanges(same_device="require" if required else "off", allowed_origins=("https://a.example",))
        await storage.projects.update_project(project.developer_id, project.id, policy, seed.now)
        page = "https://a.example/" if url else None
        new = replace(seed.new_session(project), code_challenge=b"c" * 32, return_url=page)
        refusal: type[TaproofError] | None = None if is_active else ProjectPaused
        refusal = SameDeviceRequired if required and not url else refusal
        refusal = PublicAccessDisabled if public and not public_access else refusal
        case = (is_active, public_access, public, required, url)
        with nullcontext() if refusal is None else pytest.raises(refusal):
            assert await storage.sessions.create_session(new, public=public) == (required, False), case
        stored = await storage.sessions.read_session(new.key)
        counted = [row.requested for row in await storage.counts.read_daily_counts([project.id], 0)]
        assert (stored is not None, counted) == (refusal is None, [1] * (refusal is None)), case
        if stored is not None and stored.prompt is not None:
            assert (stored.prompt.return_url, stored.prompt.return_required) == (
                new.return_url if required else None,
                required,
            ), case


async def test_create_session_of_no_project_stores_nothing(storage: Storage, seed: "Seed") -> None:
    """An unknown project cannot fill the store, and one that is created at the same time gets its session."""
    project = await seed.project()
    known, unknown = seed.new_session(project), replace(seed.new_session(project), project_id="proj_unknown")
    created = await asyncio.gather(
        *(storage.sessions.create_session(each, public=False) for each in (unknown, known)), return_exceptions=True
    )
    assert [type(each) for each in created] == [ProjectNotFound, ReturnPolicy]
    assert await storage.counts.read_daily_counts(["proj_unknown"], 0) == []


async def test_poll_session_says_what_a_poll_needs(storage: Storage, seed: "Seed") -> None:
    """Project, public access as it is now, stored status and expiry; a token of another day finds nothing."""
    project = await seed.project()
    new = await seed.session(project)
    assert await storage.sessions.poll_session(new.key) == PolledSession(project.id, True, "pending", new.expires_at)  # noqa: FBT003 — a tuple.
    await storage.projects.update_project(
        project.developer_id, project.id, ProjectChanges(public_access=False), seed.now
    )
    polled = await storage.sessions.poll_session(new.key)
    assert polled is not None
    assert not polled.public_access
    assert await storage.sessions.poll_session(SessionKey(new.key.day + 1, new.key.token_hash)) is None
    assert await storage.sessions.poll_session(SessionKey(new.key.day, b"?" * 32)) is None
    other = await seed.project()
    confirmed = await seed.confirmed(other)
    polled = await storage.sessions.poll_session(confirmed.key)
    assert polled is not None
    assert polled.webhook_secrets == other.webhook_secrets
    await storage.sessions.consume_session(confirmed.key, seed.now)
    polled = await storage.sessions.poll_session(confirmed.key)
    assert polled is not None
    assert polled[-3:] == (None, None, None)


async def test_read_session_tells_its_viewer_of_a_block(storage: Storage, seed: "Seed") -> None:
    """Several accounts read one session at once; only the one that blocked its project is told so."""
    project, other = await seed.project(), await seed.project()
    new = await seed.session(project)
    assert await storage.users.block_project("1001", project.id, seed.now)
    assert await storage.users.block_project("2002", other.id, seed.now)
    viewers = ("1001", "2002", "", "1001")
    found = await asyncio.gather(*(storage.sessions.read_session(new.key, each) for each in viewers))
    assert [each is not None and each.prompt is not None and each.prompt.is_blocked for each in found] == [
        each == "1001" for each in viewers
    ]


async def test_set_hint_changes_a_pending_session_only(storage: Storage, seed: "Seed") -> None:
    """Opening and `set_hint` change it while the session is pending; a decided or unknown session has no new hint."""
    project = await seed.project()
    new = await seed.session(project)
    assert await hint_of(storage, new.key) is None
    assert await storage.sessions.open_session(new.key, "1001", seed.now, "choosing")
    assert await hint_of(storage, new.key) == "choosing"
    assert await storage.sessions.set_hint(new.key, "phone_asked")
    assert not await storage.sessions.set_hint(new.key, "phone_asked")
    assert await hint_of(storage, new.key) == "phone_asked"
    assert await storage.sessions.cancel_session(new.key, "1001", seed.now, seed.event(project))
    assert not await storage.sessions.set_hint(new.key, "opened")
    assert not await storage.sessions.set_hint(SessionKey(new.key.day, b"?" * 32), "opened")


async def hint_of(storage: Storage, key: SessionKey) -> Hint | None:
    polled = await storage.sessions.poll_session(key)
    assert polled is not None
    return polled.hint


async def test_read_session_shows_each_step(storage: Storage, seed: "Seed") -> None:
    """Times and identity are filled in one by one, and stay when the session is used."""
    project = await seed.project()
    new, now = await seed.session(project), seed.now
    expected = Session(new.key, new.id, project.id, project.name, "pending", now, now + EDGE)
    await storage.sessions.open_session(new.key, "1001", now + 1)
    expected = replace(expected, opened_at=now + 1, opener_id="1001")
    assert await storage.sessions.read_session(new.key) == expected
    identity = MessengerIdentity("1001", "Зоя 👩‍💻 'x\" <b>", "")
    await storage.sessions.confirm_session(new.key, identity, now + 2, seed.event(project))
    expected = replace(expected, status="confirmed", confirmed_at=now + 2, identity=identity)
    assert await storage.sessions.read_session(new.key) == expected
    await storage.sessions.consume_session(new.key, now + 3)
    assert await storage.sessions.read_session(new.key) == replace(expected, status="used", used_at=now + 3)
    cancelled = await seed.opened(project)
    await storage.sessions.cancel_session(cancelled.key, "1001", now + 4, seed.event(project, "auth.cancelled"))
    seen = await storage.sessions.read_session(cancelled.key)
    assert seen is not None
    assert (seen.status, seen.cancelled_at, seen.confirmed_at, seen.identity) == ("cancelled", now + 4, None, None)
    assert await storage.sessions.read_session(SessionKey(0, b"?" * 32)) is None


async def test_open_session_has_one_owner(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Twelve accounts open one link at once on two nodes: one owns it, and it counts as opened once."""
    project = await seed.project()
    new = await seed.session(project)
    won = await asyncio.gather(
        *(
            (storage, other_node)[number % 2].sessions.open_session(new.key, f"{number}", seed.now)
            for number in range(12)
        )
    )
    assert won.count(True) == 1
    seen = await storage.sessions.read_session(new.key)
    assert seen is not None
    assert seen.opener_id == f"{won.index(True)}"
    assert (await storage.counts.read_daily_counts([project.id], 0))[0].opened == 1
    assert not await storage.sessions.open_session(new.key, f"{won.index(True)}", seed.now)


async def test_open_session_of_a_deleted_project_changes_nothing(storage: Storage, seed: "Seed") -> None:
    """The account is refused, and nothing is counted."""
    project = await seed.project()
    new = await seed.session(project)
    assert await storage.projects.delete_project(project.developer_id, project.id)
    assert await storage.sessions.open_session(new.key, "1001", seed.now) == Refused(None)
    assert (await storage.counts.read_daily_counts([project.id], 0))[0].opened == 0


@pytest.mark.parametrize(("late_by", "works"), [(-1, True), (0, False), (1, False)])
async def test_open_session_ends_at_the_edge(storage: Storage, seed: "Seed", late_by: int, works: bool) -> None:  # noqa: FBT001 — a table's column.
    """An expired link stops working, whether or not anything has written the expiry down."""
    new = await seed.session(await seed.project())
    assert bool(await storage.sessions.open_session(new.key, "1001", new.expires_at + late_by)) is works


@pytest.mark.parametrize(("late_by", "works"), [(-1, True), (0, False), (1, False)])
async def test_confirm_session_ends_at_the_edge(storage: Storage, seed: "Seed", late_by: int, works: bool) -> None:  # noqa: FBT001 — a table's column.
    """A tap at or after the instant of expiry does not confirm."""
    project = await seed.project(webhook_url="https://example.com/")
    new = await seed.opened(project)
    event = seed.event(project)
    assert (
        bool(await storage.sessions.confirm_session(new.key, seed.identity("1001"), new.expires_at + late_by, event))
        is works
    )
    assert len(await storage.deliveries.claim_deliveries(seed.now + DAY, seed.now + 2 * DAY, 10)) == works


async def test_confirm_session_is_for_the_opener(storage: Storage, seed: "Seed") -> None:
    """Nobody else, and nobody before it was opened; nothing is recorded for them."""
    project = await seed.project(webhook_url="https://example.com/")
    unopened, opened = await seed.session(project), await seed.opened(project)
    for session, user in ((unopened, "1001"), (opened, "1002"), (opened, "1001 "), (opened, "")):
        assert not await storage.sessions.confirm_session(
            session.key, seed.identity(user), seed.now, seed.event(project)
        )
    assert await storage.counts.read_daily_users(project.developer_id, 0) == []
    assert await storage.deliveries.claim_deliveries(seed.now, seed.now + 1, 10) == []


async def test_confirm_session_records_an_event_only_if_a_webhook_is_set(storage: Storage, seed: "Seed") -> None:
    """A project with an empty URL receives no deliveries, also not later."""
    silent, loud = await seed.project(), await seed.project(webhook_url="https://example.com/")
    for project in (silent, loud):
        new = await seed.opened(project)
        assert await storage.sessions.confirm_session(new.key, seed.identity("1001"), seed.now, seed.event(project))
    changes = ProjectChanges(webhook_url="https://example.org/")
    await storage.projects.update_project(silent.developer_id, silent.id, changes, seed.now)
    due = await storage.deliveries.claim_deliveries(seed.now, seed.now + 1, 10)
    assert [(delivery.event.type, delivery.event.project_id) for delivery in due] == [("auth.confirmed", loud.id)]


@pytest.mark.parametrize(("late_by", "works"), [(-1, True), (0, False), (1, False)])
async def test_cancel_session_ends_at_the_edge(storage: Storage, seed: "Seed", late_by: int, works: bool) -> None:  # noqa: FBT001 — a table's column.
    """The same edge for Cancel."""
    project = await seed.project()
    new = await seed.opened(project)
    assert (
        bool(await storage.sessions.cancel_session(new.key, "1001", new.expires_at + late_by, seed.event(project)))
        is works
    )


async def test_cancel_session_is_for_the_opener(storage: Storage, seed: "Seed") -> None:
    """A stranger cannot end somebody's sign-in."""
    project = await seed.project()
    unopened, opened = await seed.session(project), await seed.opened(project)
    assert not await storage.sessions.cancel_session(unopened.key, "1001", seed.now, seed.event(project))
    assert not await storage.sessions.cancel_session(opened.key, "1002", seed.now, seed.event(project))
    assert await storage.sessions.cancel_session(opened.key, "1001", seed.now, seed.event(project))


async def test_cancel_session_and_confirm_at_once_make_one_decision(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """Eight taps on both buttons, on two nodes at the same instant: one outcome, one count, one event.

    Each refusal names the decision that came first.
    """
    project = await seed.project(webhook_url="https://example.com/")
    confirmed = 0
    for _ in range(10):
        new = await seed.opened(project)
        decisions = [
            decision
            for store in (storage, other_node) * 2
            for decision in (
                store.sessions.confirm_session(new.key, seed.identity("1001"), seed.now, seed.event(project)),
                store.sessions.cancel_session(new.key, "1001", seed.now, seed.event(project, "auth.cancelled")),
            )
        ]
        won = await asyncio.gather(*decisions)
        assert won.count(True) == 1
        seen = await other_node.sessions.read_session(new.key)
        assert seen is not None
        assert seen.status == ("cancelled" if won.index(True) % 2 else "confirmed")
        reasons = [each.found for each in won if isinstance(each, Refused)]
        assert {each and each.status for each in reasons} == {seen.status}
        confirmed += seen.status == "confirmed"
    counts = (await storage.counts.read_daily_counts([project.id], 0))[0]
    assert (counts.confirmed, counts.cancelled) == (confirmed, 10 - confirmed)
    assert len(await storage.deliveries.claim_deliveries(seed.now, seed.now + 1, 100)) == 10


async def test_consume_session_gives_the_identity_to_one_caller(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """Sixteen readers on two nodes: one gets it, and what it gets is whole."""
    project = await seed.project()
    new = await seed.confirmed(project)
    results = await asyncio.gather(
        *(store.sessions.consume_session(new.key, seed.now) for store in (storage, other_node) for _ in range(8))
    )
    expected = ConsumedSession(project.id, seed.identity("1001"), seed.now, project.webhook_secrets, seed.now, new.id)
    assert [result for result in results if result is not None] == [expected]
    assert (await storage.counts.read_daily_counts([project.id], 0))[0].used == 1


async def test_consume_session_needs_a_confirmed_one(storage: Storage, seed: "Seed") -> None:
    """Pending, opened, cancelled, expired, used and unknown sessions give nothing and stay as they are."""
    project = await seed.project()
    cancelled, expired, used = (
        await seed.opened(project),
        await seed.opened(project, at=0),
        await seed.confirmed(project),
    )
    await storage.sessions.cancel_session(cancelled.key, "1001", seed.now, seed.event(project))
    await storage.sessions.expire_sessions(seed.now, 10, expired_event)
    await storage.sessions.consume_session(used.key, seed.now)
    for session in (await seed.session(project), await seed.opened(project), cancelled, expired, used):
        before = await storage.sessions.read_session(session.key)
        assert await storage.sessions.consume_session(session.key, seed.now + 1) is None
        assert await storage.sessions.read_session(session.key) == before
    assert await storage.sessions.consume_session(SessionKey(0, b"?" * 32), seed.now) is None


async def test_consume_session_works_long_after_the_ten_minutes(storage: Storage, seed: "Seed") -> None:
    """Only a pending session expires: a confirmed one waits for its reader."""
    new = await seed.confirmed(await seed.project())
    assert await storage.sessions.expire_sessions(seed.now + 30 * DAY, 10, expired_event) == 0
    assert await storage.sessions.consume_session(new.key, seed.now + 30 * DAY) is not None


async def test_expire_sessions_takes_only_pending_ones_from_the_edge_on(storage: Storage, seed: "Seed") -> None:
    """Opened or not; decided ones stay; counted on the day of their creation, once."""
    project = await seed.project()
    pending, opened, decided = await seed.session(project), await seed.opened(project), await seed.confirmed(project)
    assert await storage.sessions.expire_sessions(pending.expires_at - 1, 10, expired_event) == 0
    # One that is overdue makes the sweep look in earnest: it alone is taken a millisecond before the others' edge.
    await seed.session(project, at=seed.now - 1)
    assert await storage.sessions.expire_sessions(pending.expires_at - 1, 10, expired_event) == 1
    assert await storage.sessions.expire_sessions(pending.expires_at, 10, expired_event) == 2
    assert await storage.sessions.expire_sessions(pending.expires_at, 10, expired_event) == 0
    states = [await storage.sessions.poll_session(session.key) for session in (pending, opened, decided)]
    assert [state and state.status for state in states] == ["expired", "expired", "confirmed"]
    assert (await storage.counts.read_daily_counts([project.id], 0))[0].expired == 3


async def test_expire_sessions_goes_in_steps_oldest_first(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Never more than the limit, over several projects and days, and no session twice by two nodes at once."""
    projects = [await seed.project() for _ in range(3)]
    for number in range(30):
        await seed.session(projects[number % 3], at=seed.now - number * 4 * 60 * MINUTE)
    later = seed.now + EDGE
    assert await storage.sessions.expire_sessions(later, 7, expired_event) == 7
    oldest_first = await storage.sessions.list_sessions([project.id for project in projects], "pending", None, 100, 0)
    assert len(oldest_first) == 23
    assert min(session.created_at for session in oldest_first) == seed.now - 22 * 4 * 60 * MINUTE
    done = 7
    while step := await asyncio.gather(
        *(store.sessions.expire_sessions(later, 7, expired_event) for store in (storage, other_node))
    ):
        if sum(step) == 0:
            break
        assert max(step) <= 7
        done += sum(step)
    assert done == 30
    counts = await storage.counts.read_daily_counts([project.id for project in projects], 0)
    assert sum(row.expired for row in counts) == 30
    assert all(row.expired == row.requested for row in counts)


async def test_expire_sessions_and_a_tap_in_the_last_millisecond_make_one_outcome(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """A node whose clock runs ahead sweeps while another confirms: either, never both, never neither."""
    project = await seed.project()
    for _ in range(10):
        new = await seed.opened(project)
        expired, confirmed = await asyncio.gather(
            storage.sessions.expire_sessions(new.expires_at, 10, expired_event),
            other_node.sessions.confirm_session(new.key, seed.identity("1"), new.expires_at - 1, seed.event(project)),
        )
        assert not confirmed  # Another account: the sweep must win, or the next one if the tap held the session.
        assert expired or await storage.sessions.expire_sessions(new.expires_at, 10, expired_event) == 1
        new = await seed.opened(project)
        expired, confirmed = await asyncio.gather(
            storage.sessions.expire_sessions(new.expires_at, 10, expired_event),
            other_node.sessions.confirm_session(
                new.key, seed.identity("1001"), new.expires_at - 1, seed.event(project)
            ),
        )
        assert expired + bool(confirmed) == 1
    counts = (await storage.counts.read_daily_counts([project.id], 0))[0]
    assert counts.expired + counts.confirmed == counts.requested == 20
