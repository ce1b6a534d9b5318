"""Conformance: a webhook secret is replaced with an overlap in which both are valid."""

import asyncio

from tests.storage.seed import Seed, at_once, present

from taproof.core.projects import EncryptedWebhookSecrets, Project
from taproof.core.proof import signing_secrets
from taproof.storage.protocol import Storage

HOURS = 3_600_000


async def rotate(storage: Storage, project: Project, secret: bytes, now: int, hours: int = 24) -> bool:
    return await storage.projects.rotate_webhook_secret(
        project.developer_id, project.id, secret, now, now + hours * HOURS
    )


async def test_rotate_webhook_secret_lets_the_next_one_follow(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """The project, the proof and the delivery have both secrets and the time of the change, on every node."""
    project = await seed.project(webhook_url="https://example.com/")
    session = await seed.confirmed(project)
    next_at = seed.now + 24 * HOURS
    assert await storage.projects.rotate_webhook_secret(project.developer_id, project.id, b"next", seed.now, next_at)
    secrets = EncryptedWebhookSecrets(project.encrypted_webhook_secret, b"next", next_at)
    assert await other_node.projects.read_webhook_secrets(project.id) == secrets
    read = present(await other_node.projects.read_project(project.id))
    assert read.webhook_secrets == secrets
    assert [each.webhook_secrets for each in await other_node.projects.list_projects(project.developer_id)] == [secrets]
    (delivery,) = await other_node.deliveries.claim_deliveries(seed.now, seed.now + 1, 10)
    assert delivery.webhook_secrets == secrets
    consumed = present(await other_node.sessions.consume_session(session.key, seed.now))
    assert consumed.webhook_secrets == secrets


async def test_rotate_webhook_secret_is_one_at_a_time(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of concurrent rotations, one wins, and no other is possible until exactly the end of its overlap."""
    project = await seed.project()
    won = await at_once(6, lambda node, each: rotate(node, project, b"%d" % each, seed.now), storage, other_node)
    assert won.count(True) == 1
    end = seed.now + 24 * HOURS
    winner = EncryptedWebhookSecrets(project.encrypted_webhook_secret, b"%d" % won.index(True), end)
    assert await storage.projects.read_webhook_secrets(project.id) == winner
    assert not await rotate(storage, project, b"early", end - 1)
    assert await storage.projects.read_webhook_secrets(project.id) == winner


async def test_rotate_webhook_secret_after_an_overlap_keeps_the_secret_in_force(storage: Storage, seed: Seed) -> None:
    """The second secret took effect without a write, so it is the one that a third replaces."""
    project = await seed.project()
    assert await rotate(storage, project, b"second", seed.now, hours=1)
    end = seed.now + HOURS
    assert await rotate(storage, project, b"third", end, hours=2)
    found = await storage.projects.read_webhook_secrets(project.id)
    assert found == EncryptedWebhookSecrets(b"second", b"third", end + 2 * HOURS)
    assert signing_secrets(found, end) == (b"second", b"third")


async def test_promote_webhook_secret_ends_the_overlap(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The overlap ends on every node immediately; of two calls, one succeeds, and then a new rotation may begin."""
    project = await seed.project()
    assert await rotate(storage, project, b"next", seed.now)
    of = (project.developer_id, project.id, seed.now)
    promoted = await at_once(2, lambda node, _: node.projects.promote_webhook_secret(*of), storage, other_node)
    assert sorted(promoted) == [False, True]
    assert await other_node.projects.read_webhook_secrets(project.id) == EncryptedWebhookSecrets(b"next")
    assert await rotate(other_node, project, b"third", seed.now)
    found = await storage.projects.read_webhook_secrets(project.id)
    assert found == EncryptedWebhookSecrets(b"next", b"third", seed.now + 24 * HOURS)


async def test_promote_webhook_secret_needs_a_rotation_under_way(storage: Storage, seed: Seed) -> None:
    """Without a rotation, or after its overlap, the secrets stay unchanged."""
    project = await seed.project()
    assert not await storage.projects.promote_webhook_secret(project.developer_id, project.id, seed.now)
    assert await storage.projects.read_webhook_secrets(project.id) == project.webhook_secrets
    assert await rotate(storage, project, b"next", seed.now, hours=1)
    end = seed.now + HOURS
    assert not await storage.projects.promote_webhook_secret(project.developer_id, project.id, end)
    found = present(await storage.projects.read_webhook_secrets(project.id))
    assert signing_secrets(found, end) == (b"next", None)
    assert await rotate(storage, project, b"third", end)


async def test_regenerate_secrets_ends_a_rotation(storage: Storage, seed: Seed) -> None:
    """`regenerate` invalidates all old secrets, including the next one of a rotation; then a rotation may begin."""
    project = await seed.project()
    assert await rotate(storage, project, b"next", seed.now)
    assert await storage.projects.regenerate_secrets(project.developer_id, project.id, b"n" * 32, "sk_n", b"new")
    assert await storage.projects.read_webhook_secrets(project.id) == EncryptedWebhookSecrets(b"new")
    assert not await storage.projects.promote_webhook_secret(project.developer_id, project.id, seed.now)
    assert await rotate(storage, project, b"after", seed.now)


async def test_regenerate_secrets_against_a_rotation(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """On two nodes at the same time, the old secret is invalid in any case, and the current one is a new one."""
    for _ in range(5):
        project = await seed.project()
        rotated, _ = await asyncio.gather(
            other_node.projects.rotate_webhook_secret(
                project.developer_id, project.id, b"next", seed.now, seed.now + HOURS
            ),
            storage.projects.regenerate_secrets(
                project.developer_id, project.id, seed.name("k").encode(), "sk", b"new"
            ),
        )
        assert rotated
        found = await storage.projects.read_webhook_secrets(project.id)
        assert found in {EncryptedWebhookSecrets(b"new"), EncryptedWebhookSecrets(b"new", b"next", seed.now + HOURS)}
