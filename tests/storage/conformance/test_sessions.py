"""Conformance: the life of a session; of any number of callers on any number of nodes, one wins."""

import asyncio
import itertools
from contextlib import nullcontext
from dataclasses import replace

import pytest
from tests.databases import NOW, expired_event
from tests.storage.seed import Seed, at_once, present

from taproof.contract.project import ProjectEvent
from taproof.core.clock import DAY, MINUTE
from taproof.core.errors import ProjectNotFound, ProjectPaused, PublicAccessDisabled, SameDeviceRequired, TaproofError
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.proof import signing_secrets
from taproof.core.sessions import (
    ConsumedSession,
    Hint,
    NewSession,
    PolledSession,
    ReturnPolicy,
    Session,
    SessionKey,
)
from taproof.storage.protocol import Storage

EDGE = 10 * MINUTE


async def test_create_session_stores_it_as_pending(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A created session is visible on every node, without an identity."""
    project = await seed.project()
    new = await seed.session(project)
    assert await other_node.sessions.read_session(new.key) == Session(
        new.key, new.id, project.id, project.name, "pending", new.created_at, new.created_at + EDGE
    )


async def test_create_session_obeys_the_projects_settings(storage: Storage, seed: Seed) -> None:
    """A refusal names its reason, and stores and counts nothing. Only a public call needs public access."""
    for is_active, public_access, public, required, url in itertools.product((True, False), repeat=5):
        project = await seed.project(is_active=is_active, public_access=public_access)
        policy = ProjectChanges(same_device="require" if required else "off", allowed_origins=("https://a.example",))
        await storage.projects.update_project(project.developer_id, project.id, policy, seed.now)
        page = "https://a.example/" if url else None
        new = seed.new_session(project, code_challenge=b"c" * 32, return_url=page)
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


async def test_create_session_of_no_project_stores_nothing(storage: Storage, seed: Seed) -> None:
    """An unknown project's session is not stored, and a project that is created at the same time gets its session."""
    project = await seed.project()
    known, unknown = seed.new_session(project), seed.new_session(project, project_id="proj_unknown")
    created = await asyncio.gather(
        *(storage.sessions.create_session(each, public=False) for each in (unknown, known)), return_exceptions=True
    )
    assert [type(each) for each in created] == [ProjectNotFound, ReturnPolicy]
    assert await storage.counts.read_daily_counts(["proj_unknown"], 0) == []


async def test_poll_session_says_what_a_poll_needs(storage: Storage, seed: Seed) -> None:
    """The result has the project, the current public access, the stored status and the expiry.

    A token of another day finds nothing.
    """
    project = await seed.project()
    new = await seed.session(project)
    assert await storage.sessions.poll_session(new.key) == PolledSession(project.id, True, "pending", new.expires_at)  # noqa: FBT003 — a tuple.
    await seed.update(project, public_access=False)
    polled = present(await storage.sessions.poll_session(new.key))
    assert not polled.public_access
    assert await storage.sessions.poll_session(SessionKey(new.key.day + 1, new.key.token_hash)) is None
    assert await storage.sessions.poll_session(SessionKey(new.key.day, b"?" * 32)) is None
    other = await seed.project()
    confirmed = await seed.confirmed(other)
    polled = present(await storage.sessions.poll_session(confirmed.key))
    assert polled.webhook_secrets == other.webhook_secrets
    await storage.sessions.consume_session(confirmed.key, seed.now)
    polled = present(await storage.sessions.poll_session(confirmed.key))
    assert polled[-3:] == (None, None, None)


async def test_read_session_tells_its_viewer_of_a_block(storage: Storage, seed: Seed) -> None:
    """Several accounts read one session concurrently, and only the one that blocked its project sees the block."""
    project, other = await seed.project(), await seed.project()
    new = await seed.session(project)
    assert await storage.users.block_project("1001", project.id, seed.now)
    assert await storage.users.block_project("2002", other.id, seed.now)
    viewers = ("1001", "2002", "", "1001")
    found = await asyncio.gather(*(storage.sessions.read_session(new.key, each) for each in viewers))
    assert [each is not None and each.prompt is not None and each.prompt.is_blocked for each in found] == [
        each == "1001" for each in viewers
    ]


async def test_set_hint_changes_a_pending_session_only(storage: Storage, seed: Seed) -> None:
    """Opening and `set_hint` change the hint of a pending session only; a decided or unknown one has no new hint."""
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
    polled = present(await storage.sessions.poll_session(key))
    return polled.hint


async def test_read_session_shows_each_step(storage: Storage, seed: Seed) -> None:
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
    seen = present(await storage.sessions.read_session(cancelled.key))
    assert (seen.status, seen.cancelled_at, seen.confirmed_at, seen.identity) == ("cancelled", now + 4, None, None)
    assert await storage.sessions.read_session(SessionKey(0, b"?" * 32)) is None


async def test_open_session_has_one_owner(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Twelve accounts open one link concurrently on two nodes: one owns it, and it counts as opened once."""
    project = await seed.project()
    new = await seed.session(project)
    won = await at_once(
        12, lambda node, number: node.sessions.open_session(new.key, f"{number}", seed.now), storage, other_node
    )
    assert won.count(True) == 1
    seen = present(await storage.sessions.read_session(new.key))
    assert seen.opener_id == f"{won.index(True)}"
    assert (await storage.counts.read_daily_counts([project.id], 0))[0].opened == 1
    assert not await storage.sessions.open_session(new.key, f"{won.index(True)}", seed.now)


async def test_cancel_session_confirm_and_open_end_at_the_edge(storage: Storage, seed: Seed) -> None:
    """A decision fails exactly from the expiry on, even if the expiry is not recorded; a late tap records no event."""
    project = await seed.project(webhook_url="https://example.com/")
    for late_by, works in ((0, False), (1, False), (-1, True)):
        link, confirmed, cancelled = await seed.session(project), await seed.opened(project), await seed.opened(project)
        at, event, identity = link.expires_at + late_by, seed.event(project), seed.identity("1001")
        assert bool(await storage.sessions.open_session(link.key, "1001", at)) is works
        assert bool(await storage.sessions.confirm_session(confirmed.key, identity, at, event)) is works
        due = await storage.deliveries.claim_deliveries(NOW + DAY, NOW + DAY, 10)
        assert [each.event for each in due] == [event] * works
        assert bool(await storage.sessions.cancel_session(cancelled.key, "1001", at, seed.event(project))) is works


async def test_consume_session_gives_the_identity_to_one_caller(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Of sixteen readers on two nodes, one gets the whole identity."""
    project = await seed.project()
    new = await seed.confirmed(project)
    results = await at_once(16, lambda node, _: node.sessions.consume_session(new.key, seed.now), storage, other_node)
    expected = ConsumedSession(project.id, seed.identity("1001"), seed.now, project.webhook_secrets, seed.now, new.id)
    assert [result for result in results if result is not None] == [expected]
    assert (await storage.counts.read_daily_counts([project.id], 0))[0].used == 1


async def test_consume_session_needs_a_confirmed_one(storage: Storage, seed: Seed) -> None:
    """Pending, opened, cancelled, expired, used and unknown sessions give nothing and do not change."""
    project = await seed.project()
    cancelled, expired = await seed.opened(project), await seed.opened(project, at=0)
    used = await seed.confirmed(project)
    await storage.sessions.cancel_session(cancelled.key, "1001", seed.now, seed.event(project))
    await storage.sessions.expire_sessions(seed.now, 10, expired_event)
    await storage.sessions.consume_session(used.key, seed.now)
    for session in (await seed.session(project), await seed.opened(project), cancelled, expired, used):
        before = await storage.sessions.read_session(session.key)
        assert await storage.sessions.consume_session(session.key, seed.now + 1) is None
        assert await storage.sessions.read_session(session.key) == before
    assert await storage.sessions.consume_session(SessionKey(0, b"?" * 32), seed.now) is None


async def test_expire_sessions_takes_only_pending_ones_from_the_edge_on(storage: Storage, seed: Seed) -> None:
    """Opened and unopened sessions expire, decided ones stay; each is counted once on the day of its creation."""
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


async def test_expire_sessions_goes_in_steps_oldest_first(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A step never exceeds the limit, over several projects and days; on two nodes, each session has one event."""
    events: tuple[ProjectEvent, ...] = ("auth.expired",)
    projects = [await seed.project(webhook_url="https://example.com/", webhook_events=events) for _ in range(3)]
    made = [await seed.session(projects[number % 3], seed.now - number * 4 * 60 * MINUTE) for number in range(30)]
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
    due = await storage.deliveries.claim_deliveries(later, later + 1, 100)
    assert sorted(each.event.id for each in due) == sorted(f"evt_{each.id.removeprefix('sess_')}" for each in made)


CHALLENGE = b"\x07" * 32


async def used(storage: Storage, seed: Seed, project: Project) -> tuple[NewSession, ConsumedSession]:
    """Return a bound session that was confirmed and read, and its reader's result."""
    new = await seed.confirmed(project, code_challenge=CHALLENGE)
    return new, present(await storage.sessions.consume_session(new.key, seed.now))


async def test_poll_session_tells_the_challenge(storage: Storage, seed: Seed) -> None:
    """Each poll has the challenge of its own session, and none for another session."""
    project = await seed.project()
    for challenge in (CHALLENGE, None):
        new = await seed.session(project, code_challenge=challenge)
        assert present(await storage.sessions.poll_session(new.key)).code_challenge == challenge


async def test_reread_session_gives_what_was_consumed(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Any node can repeat the result any number of times without counting it.

    It must have been consumed after `since`.
    """
    project = await seed.project()
    new, consumed = await used(storage, seed, project)
    for store in (storage, other_node, storage):
        assert await store.sessions.reread_session(new.key, seed.now - 1) == consumed
    assert await storage.sessions.reread_session(new.key, seed.now) is None
    assert (await storage.counts.read_daily_counts([project.id], 0))[0].used == 1
    await seed.delete(project)
    assert await storage.sessions.reread_session(new.key, 0) is None


async def test_reread_session_needs_a_challenge_and_a_consumed_session(storage: Storage, seed: Seed) -> None:
    """A session without a challenge is read once, and rereading does not consume an unread one."""
    project = await seed.project()
    unbound = await seed.confirmed(project)
    assert await storage.sessions.consume_session(unbound.key, seed.now) is not None
    assert await storage.sessions.reread_session(unbound.key, 0) is None
    bound = await seed.confirmed(project, code_challenge=CHALLENGE)
    assert await storage.sessions.reread_session(bound.key, 0) is None
    assert await storage.sessions.consume_session(bound.key, seed.now) is not None


@pytest.mark.parametrize("change", ["replaced", "promoted", "rotated after an end"])
async def test_reread_session_ends_with_the_secret(storage: Storage, seed: Seed, change: str) -> None:
    """Once proofs are signed with another secret, the same proof cannot be repeated, so there is no result."""
    project = await seed.project()
    developer_id, now = project.developer_id, seed.now
    if change != "replaced":
        assert await storage.projects.rotate_webhook_secret(developer_id, project.id, b"next", now - 10, now + 5)
    new, consumed = await used(storage, seed, project)
    assert await storage.sessions.reread_session(new.key, 0) == consumed
    if change == "replaced":
        assert await storage.projects.regenerate_secrets(developer_id, project.id, b"h" * 32, "sk_…", b"other")
    elif change == "promoted":
        assert await storage.projects.promote_webhook_secret(developer_id, project.id, now + 1)
    else:
        assert await storage.projects.rotate_webhook_secret(developer_id, project.id, b"third", now + 5, now + 9)
    assert await storage.sessions.reread_session(new.key, 0) is None


async def test_reread_session_goes_on_while_a_rotation_begins(storage: Storage, seed: Seed) -> None:
    """A next secret signs no proofs yet, so the answer stays the same."""
    project = await seed.project()
    new, consumed = await used(storage, seed, project)
    assert await storage.projects.rotate_webhook_secret(
        project.developer_id, project.id, b"next", seed.now, seed.now + 9
    )
    again = present(await storage.sessions.reread_session(new.key, 0))
    assert signing_secrets(again.webhook_secrets, again.used_at)[0] == consumed.webhook_secrets.current
