"""Conformance: the sessions of Mini Apps, which begin in their last state, once each."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.giving_bots import give_bot
from tests.storage.seed import Seed, present

from taproof.core.clock import DAY
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import EncryptedWebhookSecrets, Project, ProjectChanges
from taproof.core.sessions import ConsumedSession, NewSession, SessionKey
from taproof.storage.protocol import Storage

BOT_ID = 7_000_000_001


async def project_with_bot(seed: Seed, webhook_url: str = "") -> Project:
    project = await seed.project(webhook_url=webhook_url)
    bot = ProjectBot(project.id, BOT_ID, "shop_bot", b"token")
    assert await give_bot(seed.storage, project.developer_id, project.id, bot) == "set"
    return project


def new_session(seed: Seed, project: Project, bot_id: int = BOT_ID) -> NewSession:
    return seed.new_session(project, bot_id=bot_id)


async def create(seed: Seed, storage: Storage, project: Project, session: NewSession, user: str = "1001") -> bool:
    identity = seed.identity(user)
    event = seed.event(project)
    found = await storage.mini_apps.create_used_session(session, identity, seed.now + 2, event, public=True)
    return found is not None


async def test_create_used_session_stores_all_steps_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """It is opened, confirmed and used at the same time, counts as each of these, and its event is due."""
    project = await project_with_bot(seed, "https://example.com/")
    new, identity, now = new_session(seed, project), seed.identity("1001"), seed.now + 2
    event = seed.event(project)
    consumed = await storage.mini_apps.create_used_session(new, identity, now, event, public=True)
    secrets = EncryptedWebhookSecrets(project.encrypted_webhook_secret)
    assert consumed == ConsumedSession(project.id, identity, now, secrets, now, new.id)
    stored = present(await other_node.sessions.read_session(new.key))
    assert (stored.status, stored.identity, stored.opener_id) == ("used", identity, "1001")
    assert (stored.created_at, stored.opened_at, stored.confirmed_at, stored.used_at) == (new.created_at, now, now, now)
    assert stored.prompt is not None
    assert stored.prompt.bot_id == BOT_ID
    (counts,) = await storage.counts.read_daily_counts([project.id], 0)
    seen = (counts.requested, counts.opened, counts.confirmed, counts.used, counts.unique_users, counts.latest_users)
    assert seen == (1, 1, 1, 1, 1, 1)
    (users,) = await storage.counts.read_daily_users(project.developer_id, 0)
    assert (users.unique_users, users.latest_users) == (1, 1)
    (due,) = await storage.deliveries.claim_deliveries(seed.now + DAY, seed.now + 2 * DAY, 10)
    assert due.event == event
    assert [each.id for each in await storage.sessions.list_sign_ins("1001", 0, 10, now)] == [new.id]
    assert await seed.report(new.key, "1001", now + 1) == "used"


async def test_create_used_session_once_among_many(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of any number of calls with one key, on any node, one creates the session; it counts once."""
    project = await project_with_bot(seed, "https://example.com/")
    sessions = [new_session(seed, project) for _ in range(5)]
    calls = [
        create(seed, (storage, other_node)[number % 2], project, replace(session, id=f"{session.id}{number}"))
        for number in range(6)
        for session in sessions
    ]
    won = await asyncio.gather(*calls)
    assert won.count(True) == len(sessions)
    (counts,) = await storage.counts.read_daily_counts([project.id], 0)
    assert (counts.requested, counts.opened, counts.confirmed, counts.used) == (5, 5, 5, 5)
    assert counts.unique_users == 1
    assert len(await storage.deliveries.claim_deliveries(seed.now + DAY, seed.now + 2 * DAY, 50)) == 5


async def test_create_used_session_of_days_around_midnight(storage: Storage, seed: Seed) -> None:
    """A session of a day that nobody has prepared is stored too."""
    project = await project_with_bot(seed)
    for day in (-1, 1, 40):
        new = new_session(seed, project)
        new = replace(new, key=SessionKey(new.key.day + day, new.key.token_hash))
        assert await create(seed, storage, project, new)


REFUSALS: dict[str, Callable[[Seed, Project], Awaitable[object]]] = {
    "blocked": lambda seed, project: seed.storage.users.block_project("1001", project.id, seed.now),
    "paused": lambda seed, project: seed.storage.projects.update_project(
        project.developer_id, project.id, ProjectChanges(is_active=False), seed.now
    ),
    "no public access": lambda seed, project: seed.storage.projects.update_project(
        project.developer_id, project.id, ProjectChanges(public_access=False), seed.now
    ),
    "another bot": lambda seed, project: give_bot(
        seed.storage, project.developer_id, project.id, ProjectBot(project.id, BOT_ID + 1, "new_bot", b"token")
    ),
    "no bot": lambda seed, project: give_bot(seed.storage, project.developer_id, project.id, None),
    "a broken bot": lambda seed, project: seed.storage.bots.mark_bot_broken(project.id, b"token", seed.now),
    "deleted": lambda seed, project: seed.storage.projects.delete_project(project.developer_id, project.id),
}


@pytest.mark.parametrize("reason", REFUSALS)
async def test_create_used_session_is_refused(storage: Storage, seed: Seed, reason: str) -> None:
    """Refuse a session whose project or user no longer admits it, and store and count nothing."""
    project = await project_with_bot(seed, "https://example.com/")
    await REFUSALS[reason](seed, project)
    new = new_session(seed, project)
    assert not await create(seed, storage, project, new)
    assert await storage.sessions.poll_session(new.key) is None
    assert await storage.counts.read_daily_counts([project.id], 0) == []
    assert await storage.deliveries.claim_deliveries(seed.now + DAY, seed.now + 2 * DAY, 10) == []
    identity = seed.identity("1001" if reason != "blocked" else "1002")
    found = await storage.mini_apps.create_used_session(new, identity, seed.now, seed.event(project), public=False)
    assert (found is not None) is (reason in {"blocked", "no public access"})


async def test_create_used_session_ends_at_the_edge(storage: Storage, seed: Seed) -> None:
    """Data that expires while a call waits for the store does not sign in."""
    project = await project_with_bot(seed)
    for late_by, works in ((-1, True), (0, False), (1, False)):
        new = replace(new_session(seed, project), expires_at=seed.now + 2 - late_by)
        assert await create(seed, storage, project, new) is works
