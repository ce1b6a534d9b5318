"""Conformance: the sessions of Mini Apps, which begin in their last state, once each."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest
from tests.giving_bots import give_bot

from taproof.core.clock import DAY
from taproof.core.errors import (
    BotBroken,
    InitDataExpired,
    InitDataInvalid,
    InitDataUsed,
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    SignInBlocked,
    TaproofError,
)
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import EncryptedWebhookSecrets, Project, ProjectChanges
from taproof.core.sessions import ConsumedSession, NewSession, SessionKey
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed

BOT_ID = 7_000_000_001


async def project_with_bot(seed: "Seed", webhook_url: str = "") -> Project:
    project = await seed.project(webhook_url=webhook_url)
    bot = ProjectBot(project.id, BOT_ID, "shop_bot", b"token")
    assert await give_bot(seed.storage, project.developer_id, project.id, bot) == "set"
    return project


def new_session(seed: "Seed", project: Project, bot_id: int = BOT_ID) -> NewSession:
    return seed.new_session(project)._replace(bot_id=bot_id)


async def create(
    seed: "Seed", storage: Storage, project: Project, session: NewSession, user: str = "1001", *, public: bool = True
) -> type[TaproofError] | None:
    """Create a session; return the reason if the store refuses it."""
    made = (session, seed.identity(user), seed.now + 2, seed.event(project))
    try:
        await storage.mini_apps.create_used_session(*made, public=public)
    except TaproofError as error:
        return type(error)
    return None


async def test_create_used_session_stores_all_steps_at_once(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """It is opened, confirmed and used at the same time, counts as each of these, and its event is due."""
    project = await project_with_bot(seed, "https://example.com/")
    new, identity, now = new_session(seed, project), seed.identity("1001"), seed.now + 2
    event = seed.event(project)
    consumed = await storage.mini_apps.create_used_session(new, identity, now, event, public=True)
    secrets = EncryptedWebhookSecrets(project.encrypted_webhook_secret)
    assert consumed == ConsumedSession(project.id, identity, now, secrets, now, new.id)
    stored = await other_node.sessions.read_session(new.key)
    assert stored is not None
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


async def test_create_used_session_once_among_many(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Of any number of calls with one key, on any node, one creates the session, which counts once."""
    project = await project_with_bot(seed, "https://example.com/")
    sessions = [new_session(seed, project) for _ in range(5)]
    calls = [
        create(seed, (storage, other_node)[number % 2], project, session._replace(id=f"{session.id}{number}"))
        for number in range(6)
        for session in sessions
    ]
    won = await asyncio.gather(*calls)
    assert Counter(won) == {None: len(sessions), InitDataUsed: 5 * len(sessions)}
    (counts,) = await storage.counts.read_daily_counts([project.id], 0)
    assert (counts.requested, counts.opened, counts.confirmed, counts.used) == (5, 5, 5, 5)
    assert counts.unique_users == 1
    assert len(await storage.deliveries.claim_deliveries(seed.now + DAY, seed.now + 2 * DAY, 50)) == 5


async def test_create_used_session_of_days_around_midnight(storage: Storage, seed: "Seed") -> None:
    """A session of a day that nobody has prepared is stored too."""
    project = await project_with_bot(seed)
    for day in (-1, 1, 40):
        new = new_session(seed, project)
        new = new._replace(key=SessionKey(new.key.day + day, new.key.token_hash))
        assert await create(seed, storage, project, new) is None


REFUSALS: dict[type[TaproofError], Callable[["Seed", Project], Awaitable[object]]] = {
    SignInBlocked: lambda seed, project: seed.storage.users.block_project("1001", project.id, seed.now),
    ProjectPaused: lambda seed, project: seed.storage.projects.update_project(
        project.developer_id, project.id, ProjectChanges(is_active=False), seed.now
    ),
    PublicAccessDisabled: lambda seed, project: seed.storage.projects.update_project(
        project.developer_id, project.id, ProjectChanges(public_access=False), seed.now
    ),
    InitDataInvalid: lambda seed, project: give_bot(
        seed.storage, project.developer_id, project.id, ProjectBot(project.id, BOT_ID + 1, "new_bot", b"token")
    ),
    BotBroken: lambda seed, project: seed.storage.bots.mark_bot_broken(project.id, b"token", seed.now),
    ProjectNotFound: lambda seed, project: seed.storage.projects.delete_project(project.developer_id, project.id),
}


@pytest.mark.parametrize("reason", REFUSALS)
async def test_create_used_session_is_refused(storage: Storage, seed: "Seed", reason: type[TaproofError]) -> None:
    """A session that its project or user no longer admits is refused with the reason.

    It is neither stored nor counted.
    """
    project = await project_with_bot(seed, "https://example.com/")
    await REFUSALS[reason](seed, project)
    new = new_session(seed, project)
    assert await create(seed, storage, project, new) is reason
    assert await storage.sessions.poll_session(new.key) is None
    assert await storage.counts.read_daily_counts([project.id], 0) == []
    assert await storage.deliveries.claim_deliveries(seed.now + DAY, seed.now + 2 * DAY, 10) == []
    user = "1002" if reason is SignInBlocked else "1001"
    of_others = None if reason in {SignInBlocked, PublicAccessDisabled} else reason
    assert await create(seed, storage, project, new, user, public=False) is of_others


async def test_create_used_session_needs_a_bot(storage: Storage, seed: "Seed") -> None:
    """A project without its own bot gets no session, whatever the data."""
    project = await project_with_bot(seed)
    await give_bot(seed.storage, project.developer_id, project.id, None)
    assert await create(seed, storage, project, new_session(seed, project)) is InitDataInvalid


async def test_create_used_session_ends_at_the_edge(storage: Storage, seed: "Seed") -> None:
    """Data that expires while a call waits for the store does not sign in."""
    project = await project_with_bot(seed)
    for late_by, reason in ((-1, None), (0, InitDataExpired), (1, InitDataExpired)):
        new = new_session(seed, project)._replace(expires_at=seed.now + 2 - late_by)
        assert await create(seed, storage, project, new) is reason
