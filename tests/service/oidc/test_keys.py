"""The keys that sign ID tokens, from their creation to their end (RFC 7517; contract.md, OpenID provider)."""

import asyncio
from collections import Counter
from typing import Any

import jwt
import pytest
from tests.openid_provider import Provider, Shop
from tests.service.conftest import HandClock, Node
from tests.signals import unheard

from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.oidc import signing
from taproof.core.oidc.clients import SIGNING_ALGS
from taproof.core.oidc.model import KEYS_RELOADED_AFTER
from taproof.service.oidc.keys import SigningKeys
from taproof.service.reencryption import Reencryptor

OLD, NEW = (new_master_key(system_entropy) for _ in range(2))


def keys_of(node: Node, encryptor: Encryptor | None = None) -> SigningKeys:
    """Return the keys as another process reads them."""
    return SigningKeys(node.storage, encryptor or node.encryptor, node.clock, system_entropy)


async def published(keys: SigningKeys) -> list[str]:
    """Return the published key ids of RS256."""
    return [jwk["kid"] for jwk in (await keys.read_jwks())["keys"] if jwk["alg"] == "RS256"]


async def test_keys_are_created_once(node: Node, other_node: Node) -> None:
    """Two processes that start at the same time agree on two keys of each algorithm: the current and the next one."""
    first, second = keys_of(node), keys_of(other_node)
    sets = await asyncio.gather(*(keys.read_jwks() for keys in (first, second, first, second)))
    assert all(each == sets[0] for each in sets)
    assert sorted(jwk["alg"] for jwk in sets[0]["keys"]) == ["ES256", "ES256", "RS256", "RS256"]
    for alg in SIGNING_ALGS:
        assert (await first.find_signer(alg)).kid == (await second.find_signer(alg)).kid
    assert len(await node.storage.signing_keys.list_signing_keys()) == 4


async def test_a_key_is_published_a_day_before_it_signs(node: Node, clock: HandClock) -> None:
    """As the clock moves, every signing key was in the JWK set 24 hours before, and stays for longer than a day."""
    keys = keys_of(node)
    first_seen: dict[str, int] = {}
    last_signed: dict[str, int] = {}
    ends: dict[str, int] = {}
    began = clock.now
    for _ in range(200 * 2):
        known = await published(keys)
        signer = (await keys.find_signer("RS256")).kid
        for kid in known:
            first_seen.setdefault(kid, clock.now)
        for kid in first_seen.keys() - set(known):
            ends.setdefault(kid, clock.now)
        assert signer in known
        assert signer not in ends
        assert 2 <= len(known) <= 3
        if clock.now - began >= DAY:
            assert clock.now - first_seen[signer] >= DAY
        last_signed[signer] = clock.now
        clock.now += 12 * HOUR
    assert len(last_signed) == 3
    assert len(ends) == 2
    for kid, ended in ends.items():
        assert DAY < ended - last_signed[kid] <= DAY + 25 * HOUR


async def test_the_first_key_on_a_clock_that_is_behind(node: Node, clock: HandClock) -> None:
    """The first key signs on every node at once, although another clock decided from when it signs."""
    kid = (await keys_of(node).find_signer("RS256")).kid
    clock.now -= 5 * SECOND
    assert (await keys_of(node).find_signer("RS256")).kid == kid


async def test_keys_after_a_long_pause(node: Node, clock: HandClock) -> None:
    """If no process ran when a key was due, the key after it is still published for a day before it signs."""
    _, following = await published(keys_of(node))
    clock.now += 200 * DAY
    keys = keys_of(node)
    assert (await keys.find_signer("RS256")).kid == following
    added = (await published(keys))[-1]
    clock.now += DAY - 1
    assert (await keys.find_signer("RS256")).kid == following
    clock.now += 1
    assert (await keys_of(node).find_signer("RS256")).kid == added


async def test_rotation_at_once(node: Node, clock: HandClock) -> None:
    """The next key signs as soon as it has been published for a day; repeated rotations change nothing more."""
    keys = keys_of(node)
    current, following = await published(keys)
    first = await keys.rotate_keys()
    assert {each.signs_from for each in first} == {clock.now + DAY}
    assert await keys.rotate_keys() == first
    clock.now += DAY - 1
    assert (await keys.find_signer("RS256")).kid == current
    clock.now += 1 + KEYS_RELOADED_AFTER
    assert (await keys.find_signer("RS256")).kid == following
    clock.now += 2 * DAY
    assert {each.signs_from for each in await keys.rotate_keys()} == {clock.now}
    assert (await keys.find_signer("RS256")).kid not in {current, following}


async def test_a_leaked_key_ends(node: Node, other_node: Node, clock: HandClock) -> None:
    """All keys are replaced, the next ones too. Five seconds later, every process signs with and publishes new ones."""
    here, elsewhere = keys_of(node), keys_of(other_node)
    await node.developer("free")
    old = {jwk["kid"] for jwk in (await elsewhere.read_jwks())["keys"]}
    signers = {alg: await elsewhere.find_signer(alg) for alg in SIGNING_ALGS}
    replaced = await here.replace_keys()
    assert {each.alg for each in replaced} == set(SIGNING_ALGS)
    assert {each.signs_from for each in replaced} == {clock.now}
    stored = await node.storage.signing_keys.list_signing_keys()
    assert not old & {key.kid for key in stored}
    clock.now += 5 * SECOND
    for keys in (here, elsewhere):
        published_now = {jwk["kid"] for jwk in (await keys.read_jwks())["keys"]}
        assert published_now == {key.kid for key in stored}
        for each in replaced:
            assert (await keys.find_signer(each.alg)).kid == each.kid != signers[each.alg].kid
    # The next keys are published for a day before they sign, as after any rotation.
    assert {each.signs_from for each in await here.rotate_keys()} == {clock.now - 5 * SECOND + DAY}


async def test_tokens_verify_with_cached_keys(provider: Provider, clock: HandClock, subtests: pytest.Subtests) -> None:
    """An ID token signed just before or after a rotation verifies with a JWK set that may still be cached."""

    async def id_token(shop: Shop) -> str:
        token: str = (await shop.redeem(await shop.sign_in()))["id_token"]
        return token

    # The process that serves learns of a rotation by another one.
    operator = keys_of(provider.node)
    shops = [await provider.shop(signing_alg=alg) for alg in SIGNING_ALGS]
    await provider.keys.read_jwks()
    clock.now += 2 * DAY
    steps = [0, 30 * MINUTE, 59 * MINUTE, 60 * MINUTE, 61 * MINUTE, 90 * MINUTE, 24 * HOUR, 25 * HOUR]
    began, sets, tokens = clock.now, [], []
    for step in steps:
        clock.now = began + step
        if step == 60 * MINUTE:
            assert {each.signs_from for each in await operator.rotate_keys()} == {clock.now}
        sets.append((clock.now, await provider.keys.read_jwks()))
        tokens += [(clock.now, await id_token(shop)) for shop in shops]
    used = {jwt.get_unverified_header(token)["kid"] for _, token in tokens}
    assert len(used) == 4
    for signed_at, token in tokens:
        header = jwt.get_unverified_header(token)
        options: Any = {"verify_aud": False, "verify_exp": False, "verify_iat": False}
        for cached_at, jwks in sets:
            # A copy that is cached when the token arrives, or one that is read while the token is valid.
            if not -HOUR <= cached_at - signed_at <= DAY:
                continue
            with subtests.test(signed_at=signed_at - began, cached_at=cached_at - began):
                key = jwt.PyJWKSet.from_dict(jwks)[header["kid"]]
                assert jwt.decode(token, key, algorithms=[header["alg"]], options=options)["sub"] == "1001"


async def test_keys_under_another_master_key(node: Node) -> None:
    """After the re-encryption, the new master key alone opens every key, and the JWK set is the same."""
    before = keys_of(node, Encryptor(OLD))
    jwks = await before.read_jwks()
    assert (
        await Reencryptor(node.storage, Encryptor(f"{NEW},{OLD}"), system_entropy, on_progress=unheard).reencrypt(
            _at_once
        )
    ).left == 0
    after = keys_of(node, Encryptor(NEW))
    assert await after.read_jwks() == jwks
    for alg in SIGNING_ALGS:
        token = (await after.find_signer(alg)).sign({"sub": "1001"})
        key = jwt.PyJWKSet.from_dict(jwks)[jwt.get_unverified_header(token)["kid"]]
        assert jwt.decode(token, key, algorithms=[alg]) == {"sub": "1001"}


async def _at_once() -> None:
    """Return immediately instead of waiting."""


async def test_private_keys_are_encrypted(node: Node) -> None:
    """The store holds no private key in plaintext, and no private member is published."""
    jwks = await keys_of(node).read_jwks()
    assert not {"d", "p", "q", "dp", "dq", "qi", "k"} & {member for jwk in jwks["keys"] for member in jwk}
    for key in await node.storage.signing_keys.list_signing_keys():
        assert b"PRIVATE" not in key.encrypted_private_key
        assert b"MII" not in key.encrypted_private_key


async def test_a_key_is_loaded_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that arrive together share the 50 ms of CPU time that loading an RSA key takes."""
    loaded: Counter[str] = Counter()

    def load(pem: str) -> signing.PrivateKey:
        loaded[pem] += 1
        return signing.load_private_key(pem)

    monkeypatch.setattr("taproof.service.oidc.keys.load_private_key", load)
    signing_keys = keys_of(node)
    await signing_keys.read_jwks()
    signers = await asyncio.gather(*(signing_keys.find_signer("RS256") for _ in range(20)))
    assert len({signer.kid for signer in signers}) == 1
    assert list(loaded.values()) == [1]
