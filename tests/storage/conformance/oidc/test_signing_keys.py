"""Conformance: the keys that sign ID tokens."""

import asyncio
from dataclasses import replace

from tests.databases import NOW
from tests.storage.seed import Seed

from taproof.core.accounts import Actor
from taproof.core.clock import DAY
from taproof.core.entropy import system_entropy
from taproof.core.oidc.clients import SIGNING_ALGS
from taproof.core.oidc.model import SigningKey
from taproof.service.audit import audit_entry
from taproof.storage.protocol import Storage

KEY = SigningKey("RS256", 1, "kid 1", b"encrypted 1", '{"kty": "RSA"}', NOW, NOW)


async def test_create_signing_key_once_for_each_generation(storage: Storage, other_node: Storage) -> None:
    """Two nodes that create the same generation agree on one key."""
    created = await asyncio.gather(
        storage.signing_keys.create_signing_key(KEY),
        other_node.signing_keys.create_signing_key(replace(KEY, kid="kid 2")),
    )
    assert sorted(created) == [False, True]
    assert await storage.signing_keys.list_signing_keys() == [KEY if created[0] else replace(KEY, kid="kid 2")]


async def test_list_signing_keys_in_order(storage: Storage) -> None:
    """Keys are listed by algorithm and generation, as a number."""
    keys = [replace(KEY, generation=each, kid=f"kid {each}") for each in (10, 9)]
    keys.append(replace(KEY, alg="ES256", kid="ec"))
    for key in keys:
        assert await storage.signing_keys.create_signing_key(key)
    assert await storage.signing_keys.list_signing_keys() == keys[::-1]


async def test_advance_signing_key_to_an_earlier_time(storage: Storage) -> None:
    """A key can only sign earlier than planned, never later."""
    await storage.signing_keys.create_signing_key(KEY)
    advance = storage.signing_keys.advance_signing_key
    assert await advance("kid 1", NOW - 5)
    assert not await advance("kid 1", NOW - 5)
    assert not await advance("kid 1", NOW)
    assert not await advance("unknown", NOW - 9)
    assert [key.signs_from for key in await storage.signing_keys.list_signing_keys()] == [NOW - 5]


async def test_replace_signing_keys_leaves_no_old_one(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The old keys are gone even if another node creates the next generation or replaces them at the same time."""
    actor = Actor(await seed.developer(), "command_line")
    for turn in range(10):
        before = await storage.signing_keys.list_signing_keys()
        last = max((key.generation for key in before), default=0)
        made = [[replace(KEY, alg=alg, kid=f"kid {turn} {node} {alg}") for alg in SIGNING_ALGS] for node in range(2)]
        following = replace(KEY, generation=last + 1, kid=f"next {turn}", signs_from=NOW + DAY)
        entries = [
            [audit_entry(actor, "signing_keys.replaced", NOW, system_entropy, subject=actor.developer.id)] for _ in made
        ]
        await asyncio.gather(
            storage.signing_keys.replace_signing_keys(made[0], entries[0]),
            other_node.signing_keys.create_signing_key(following),
            other_node.signing_keys.replace_signing_keys(made[1], entries[1]),
        )
        left = await storage.signing_keys.list_signing_keys()
        assert not {key.kid for key in left} & {key.kid for key in before}
        for alg in SIGNING_ALGS:
            signing = {key.kid for key in left if key.alg == alg and key.signs_from <= NOW}
            assert signing
            assert signing <= {f"kid {turn} {node} {alg}" for node in range(2)}
    logged = await storage.audit.list_audit_entries(actor.developer.id, None, 50)
    assert len(logged) == 20


async def test_purge_signing_keys_keeps_the_previous_one(storage: Storage) -> None:
    """A key is erased only when its successor has signed since the given time."""
    for generation in (1, 2, 3):
        signs_from = NOW + generation * DAY
        await storage.signing_keys.create_signing_key(
            replace(KEY, generation=generation, kid=f"kid {generation}", signs_from=signs_from)
        )
    await storage.signing_keys.create_signing_key(replace(KEY, alg="ES256", kid="ec"))
    assert await storage.signing_keys.purge_signing_keys(NOW + 2 * DAY - 1, 9) == 0
    assert await storage.signing_keys.purge_signing_keys(NOW + 2 * DAY, 9) == 1
    assert [key.kid for key in await storage.signing_keys.list_signing_keys()] == ["ec", "kid 2", "kid 3"]
    await storage.signing_keys.create_signing_key(replace(KEY, generation=4, kid="kid 4", signs_from=NOW + 4 * DAY))
    assert [await storage.signing_keys.purge_signing_keys(NOW + 4 * DAY, 1) for _ in range(3)] == [1, 1, 0]
    assert [key.kid for key in await storage.signing_keys.list_signing_keys()] == ["ec", "kid 4"]
