"""Reading the answer of a bound session again, in the store: held on every driver."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from taproof.core.projects import Project
from taproof.core.proof import signing_secrets
from taproof.core.sessions import ConsumedSession, NewSession

if TYPE_CHECKING:
    from tests.storage.seed import Seed

    from taproof.storage.protocol import Storage

CHALLENGE = b"\x07" * 32


async def used(storage: "Storage", seed: "Seed", project: Project) -> tuple[NewSession, ConsumedSession]:
    """Return a bound session that was confirmed and read, and what its reader got."""
    new = replace(seed.new_session(project), code_challenge=CHALLENGE)
    assert await storage.sessions.create_session(new, public=True)
    await storage.sessions.open_session(new.key, "1001", seed.now)
    assert await storage.sessions.confirm_session(new.key, seed.identity("1001"), seed.now, seed.event(project))
    consumed = await storage.sessions.consume_session(new.key, seed.now)
    assert consumed is not None
    return new, consumed


async def test_poll_session_tells_the_challenge(storage: "Storage", seed: "Seed") -> None:
    """Whoever polls is held to it, from the first poll on; another session has none."""
    project = await seed.project()
    new = replace(seed.new_session(project), code_challenge=CHALLENGE)
    assert await storage.sessions.create_session(new, public=True)
    polled, other = (
        await storage.sessions.poll_session(new.key),
        await storage.sessions.poll_session((await seed.session(project)).key),
    )
    assert polled is not None
    assert other is not None
    assert (polled.code_challenge, other.code_challenge) == (CHALLENGE, None)


async def test_reread_session_gives_what_was_consumed(storage: "Storage", other_node: "Storage", seed: "Seed") -> None:
    """On any node, any number of times, and nothing is counted again."""
    project = await seed.project()
    new, consumed = await used(storage, seed, project)
    for store in (storage, other_node, storage):
        assert await store.sessions.reread_session(new.key, seed.now - 1) == consumed
    assert (await storage.counts.read_daily_counts([project.id], 0))[0].used == 1


async def test_reread_session_ends(storage: "Storage", seed: "Seed") -> None:
    """From `since` on: what was consumed at that instant is over."""
    new, _ = await used(storage, seed, await seed.project())
    assert await storage.sessions.reread_session(new.key, seed.now) is None


async def test_reread_session_needs_a_challenge_and_a_consumed_session(storage: "Storage", seed: "Seed") -> None:
    """A session that is not bound is read once; one that nobody has read yet is not consumed by this."""
    project = await seed.project()
    unbound = await seed.confirmed(project)
    assert await storage.sessions.consume_session(unbound.key, seed.now) is not None
    assert await storage.sessions.reread_session(unbound.key, 0) is None
    bound = replace(seed.new_session(project), code_challenge=CHALLENGE)
    assert await storage.sessions.create_session(bound, public=True)
    await storage.sessions.open_session(bound.key, "1001", seed.now)
    await storage.sessions.confirm_session(bound.key, seed.identity("1001"), seed.now, seed.event(project))
    assert await storage.sessions.reread_session(bound.key, 0) is None
    assert await storage.sessions.consume_session(bound.key, seed.now) is not None


async def test_reread_session_of_a_deleted_project(storage: "Storage", seed: "Seed") -> None:
    """Of a project that is gone nothing is found."""
    project = await seed.project()
    new, _ = await used(storage, seed, project)
    assert await storage.projects.delete_project(project.developer_id, project.id)
    assert await storage.sessions.reread_session(new.key, 0) is None


@pytest.mark.parametrize("change", ["replaced", "promoted", "rotated after an end"])
async def test_reread_session_ends_with_the_secret(storage: "Storage", seed: "Seed", change: str) -> None:
    """Once proofs are signed with another secret the same proof cannot be made: there is no answer any more."""
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


async def test_reread_session_goes_on_while_a_rotation_begins(storage: "Storage", seed: "Seed") -> None:
    """A next secret signs no proofs yet, so the answer stays the same."""
    project = await seed.project()
    new, consumed = await used(storage, seed, project)
    assert await storage.projects.rotate_webhook_secret(
        project.developer_id, project.id, b"next", seed.now, seed.now + 9
    )
    again = await storage.sessions.reread_session(new.key, 0)
    assert again is not None
    assert signing_secrets(again.webhook_secrets, again.used_at)[0] == consumed.webhook_secrets.current
