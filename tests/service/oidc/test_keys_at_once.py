"""Signing keys while many sign-ins need them at once."""

import asyncio
from collections import Counter

import pytest
from tests.service.conftest import Node

from taproof.core.entropy import system_entropy
from taproof.core.oidc import signing
from taproof.service.oidc import keys
from taproof.service.oidc.keys import SigningKeys


async def test_a_key_is_loaded_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that arrive together share the 50 ms of CPU time that loading an RSA key takes."""
    loaded: Counter[str] = Counter()

    def load(pem: str) -> signing.PrivateKey:
        loaded[pem] += 1
        return signing.load_private_key(pem)

    monkeypatch.setattr(keys, "load_private_key", load)
    signing_keys = SigningKeys(node.storage, node.encryptor, node.clock, system_entropy)
    await signing_keys.read_jwks()
    signers = await asyncio.gather(*(signing_keys.find_signer("RS256") for _ in range(20)))
    assert len({signer.kid for signer in signers}) == 1
    assert list(loaded.values()) == [1]
