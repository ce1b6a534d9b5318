"""The keys that sign ID tokens: the previous, the current and the next one of each algorithm.

Every process creates a missing key, and the store keeps one key of each generation. A key is published for at least
24 hours before it signs, so an application with a cached JWKS can verify every ID token. Only after a leak are all
keys replaced at once.
"""

import asyncio
import json
from dataclasses import replace
from typing import Any, NamedTuple

from taproof.contract.client import SigningAlg
from taproof.core.accounts import Actor
from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.oidc.clients import SIGNING_ALGS
from taproof.core.oidc.model import (
    KEY_LIFETIME,
    KEYS_RELOADED_AFTER,
    PUBLISHED_AFTER,
    PUBLISHED_BEFORE,
    SigningKey,
)
from taproof.core.oidc.signing import (
    PrivateKey,
    dump_private_key,
    key_id_of,
    load_private_key,
    new_private_key,
    public_jwk,
    read_id_token,
    sign_id_token,
    sign_logout_token,
)
from taproof.service.audit import audit_entry
from taproof.storage.protocol import Storage


class Signer(NamedTuple):
    """The key that signs now."""

    alg: SigningAlg
    kid: str
    key: PrivateKey

    def sign(self, claims: dict[str, Any]) -> str:
        """Return the signed ID token."""
        return sign_id_token(claims, self.key, self.alg, self.kid)

    def sign_logout(self, claims: dict[str, Any]) -> str:
        """Return the signed logout token."""
        return sign_logout_token(claims, self.key, self.alg, self.kid)


class RotatedKey(NamedTuple):
    """The key that signs next, and from when (ms)."""

    alg: SigningAlg
    kid: str
    signs_from: int


class SigningKeys:
    """Reads, creates and rotates the keys. Each process keeps the decrypted keys in memory."""

    def __init__(self, storage: Storage, encryptor: Encryptor, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._entropy = entropy
        self._keys: list[SigningKey] = []
        self._private: dict[str, PrivateKey] = {}
        self._read_at = -KEYS_RELOADED_AFTER
        self._reading = asyncio.Lock()
        self._loading = asyncio.Lock()

    async def read_jwks(self) -> dict[str, Any]:
        """Return the JWK set (RFC 7517): keys that sign, will sign next, or signed ID tokens that may be valid."""
        now = self._clock()
        keys = await self._current_keys(now)
        return {"keys": [json.loads(key.public_jwk) for key in keys if not _is_over(key, keys, now)]}

    async def find_signer(self, alg: SigningAlg) -> Signer:
        """Return the key that signs now.

        Raises:
            DecryptionFailed: the key cannot be decrypted.
        """
        now = self._clock()
        keys = sorted((key for key in await self._current_keys(now) if key.alg == alg), key=lambda key: key.generation)
        # The clock of the node that created the first key can be ahead of this one.
        key = [key for key in keys if key.signs_from <= now or key is keys[0]][-1]
        return Signer(alg, key.kid, await self._private_key(key))

    async def read_id_token(self, id_token: str, *, issuer: str, client_id: str) -> dict[str, Any] | None:
        """Return the claims of an ID token of a client, also if it has expired (OpenID Connect Core, section 3.1.2.1).

        Return None for any other text, for a token of another client, and for one whose key was erased: after a leak,
        or `HINTS_ACCEPTED_FOR` after its successor began to sign.
        """
        kid = key_id_of(id_token)
        jwk = next((key.public_jwk for key in await self._current_keys(self._clock()) if key.kid == kid), None)
        return None if jwk is None else read_id_token(id_token, json.loads(jwk), issuer=issuer, client_id=client_id)

    async def rotate_keys(self) -> list[RotatedKey]:
        """Make the next key of each algorithm sign as soon as it has been published for 24 hours."""
        now = self._clock()
        rotated = []
        for alg in SIGNING_ALGS:
            key = max((key for key in await self._read_keys(now) if key.alg == alg), key=lambda key: key.generation)
            signs_from = min(key.signs_from, max(now, key.created_at + PUBLISHED_BEFORE))
            await self._storage.signing_keys.advance_signing_key(key.kid, signs_from)
            rotated.append(RotatedKey(alg, key.kid, signs_from))
        await self._read_keys(now)
        return rotated

    async def replace_keys(self) -> list[RotatedKey]:
        """Erase all keys, because one of them has leaked, and sign with new ones at once.

        This includes the next keys, which whoever could read one may have read too. Other processes use the old keys
        for at most `KEYS_RELOADED_AFTER`.
        """
        now = self._clock()
        keys = [await self._new_key(alg, now, now) for alg in SIGNING_ALGS]
        kids: dict[str, object] = {key.alg: key.kid for key in keys}
        entries = [
            audit_entry(
                Actor(each, "command_line"),
                "signing_keys.replaced",
                now,
                self._entropy,
                subject=each.id,
                details=kids,
            )
            for each in await self._storage.developers.list_developers()
            if each.is_owner
        ]
        await self._storage.signing_keys.replace_signing_keys(keys, entries)
        await self._read_keys(now)
        return [RotatedKey(key.alg, key.kid, key.signs_from) for key in keys]

    async def _current_keys(self, now: int) -> list[SigningKey]:
        if not 0 <= now - self._read_at < KEYS_RELOADED_AFTER:
            async with self._reading:
                if not 0 <= now - self._read_at < KEYS_RELOADED_AFTER:
                    await self._read_keys(now)
        return self._keys

    async def _read_keys(self, now: int) -> list[SigningKey]:
        keys = await self._storage.signing_keys.list_signing_keys()
        while missing := _missing(keys, now):
            for alg, generation, signs_from in missing:
                key = await self._new_key(alg, now, signs_from)
                await self._storage.signing_keys.create_signing_key(replace(key, generation=generation))
            keys = await self._storage.signing_keys.list_signing_keys()
        self._private = {key.kid: self._private[key.kid] for key in keys if key.kid in self._private}
        self._keys, self._read_at = keys, now
        return keys

    async def _new_key(self, alg: SigningAlg, now: int, signs_from: int) -> SigningKey:
        """Return a new key, whose generation is left to the caller."""
        key = await asyncio.to_thread(new_private_key, alg)
        jwk = public_jwk(key, alg)
        kid: str = jwk["kid"]
        encrypted = self._encryptor.encrypt(
            dump_private_key(key), associated_data_of("signing_key", kid), self._entropy
        )
        return SigningKey(
            alg=alg,
            generation=0,
            kid=kid,
            encrypted_private_key=encrypted,
            public_jwk=json.dumps(jwk),
            created_at=now,
            signs_from=signs_from,
        )

    async def _private_key(self, key: SigningKey) -> PrivateKey:
        found = self._private.get(key.kid)
        if found is not None:
            return found
        # Loading an RSA key takes 50 ms of CPU time, so calls that arrive together must not load it once each.
        async with self._loading:
            found = self._private.get(key.kid)
            if found is None:
                pem = self._encryptor.decrypt(key.encrypted_private_key, associated_data_of("signing_key", key.kid))
                found = self._private[key.kid] = await asyncio.to_thread(load_private_key, pem)
            return found


def _missing(keys: list[SigningKey], now: int) -> list[tuple[SigningAlg, int, int]]:
    """Return the algorithm, the generation and the first time of signing of each key to create."""
    missing = []
    for alg in SIGNING_ALGS:
        latest = max((key for key in keys if key.alg == alg), key=lambda key: key.generation, default=None)
        if latest is None:
            missing.append((alg, 1, now))
        elif latest.signs_from <= now:
            signs_from = max(latest.signs_from + KEY_LIFETIME, now + PUBLISHED_BEFORE)
            missing.append((alg, latest.generation + 1, signs_from))
    return missing


def _is_over(key: SigningKey, keys: list[SigningKey], now: int) -> bool:
    """Return whether no valid ID token is signed with this key."""
    return any(
        each.alg == key.alg and each.generation > key.generation and each.signs_from <= now - PUBLISHED_AFTER
        for each in keys
    )
