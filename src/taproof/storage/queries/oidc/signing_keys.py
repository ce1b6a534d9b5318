"""The keys that sign ID tokens."""

from typing import Final

from taproof.core.oidc.model import SigningKey
from taproof.storage.queries.database import AnyDatabase, Purge, Queries

_COLUMNS: Final = "alg, generation, kid, encrypted_private_key, public_jwk, created_at, signs_from"
LIST_SIGNING_KEYS: Final = f"SELECT {_COLUMNS} FROM oidc_signing_keys ORDER BY alg, generation"
CREATE_SIGNING_KEY: Final = f"""
INSERT INTO oidc_signing_keys ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (alg, generation) DO NOTHING RETURNING kid"""
ADVANCE_SIGNING_KEY: Final = """
UPDATE oidc_signing_keys SET signs_from = $1 WHERE kid = $2 AND signs_from > $1 RETURNING kid"""
PURGE_SIGNING_KEYS: Final = Purge(
    "oidc_signing_keys",
    "alg, generation",
    """EXISTS (SELECT 1 FROM oidc_signing_keys n
  WHERE n.alg = oidc_signing_keys.alg AND n.generation > oidc_signing_keys.generation AND n.signs_from <= $1)""",
)


class SigningKeyQueries(Queries[AnyDatabase]):
    """See `storage.protocol.SigningKeyStorage`."""

    async def list_signing_keys(self) -> list[SigningKey]:
        return [SigningKey(*row) for row in await self._database.read(LIST_SIGNING_KEYS)]

    async def create_signing_key(self, key: SigningKey) -> bool:
        named = (key.alg, key.generation, key.kid, key.encrypted_private_key, key.public_jwk)
        return bool(await self._database.add(CREATE_SIGNING_KEY, *named, key.created_at, key.signs_from))

    async def advance_signing_key(self, kid: str, signs_from: int) -> bool:
        return bool(await self._database.change(ADVANCE_SIGNING_KEY, signs_from, kid))

    async def purge_signing_keys(self, replaced_before: int, limit: int) -> int:
        return await self._database.purge(PURGE_SIGNING_KEYS, replaced_before, limit)
