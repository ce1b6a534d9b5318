"""The keys that sign ID tokens: held on every driver."""

import asyncio
from dataclasses import replace

from tests.databases import NOW

from taproof.core.clock import DAY
from taproof.core.oidc.model import SigningKey
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
