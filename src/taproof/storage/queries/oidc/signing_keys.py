"""The keys that sign ID tokens."""

from collections.abc import Sequence
from typing import Final

from taproof.core.accounts import AuditEntry
from taproof.core.oidc.model import SigningKey
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import Values

_COLUMNS: Final = "alg, generation, kid, encrypted_private_key, public_jwk, created_at, signs_from"
LIST_SIGNING_KEYS: Final = f"SELECT {_COLUMNS} FROM oidc_signing_keys ORDER BY alg, generation"
CREATE_SIGNING_KEY: Final = f"""
INSERT INTO oidc_signing_keys ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (alg, generation) DO NOTHING RETURNING kid"""
DELETE_SIGNING_KEYS: Final = "DELETE FROM oidc_signing_keys"
# Another node may create the next generation at the same time.
PUT_SIGNING_KEY: Final = f"""
INSERT INTO oidc_signing_keys ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (alg, generation) DO UPDATE SET kid = excluded.kid, public_jwk = excluded.public_jwk,
  encrypted_private_key = excluded.encrypted_private_key, created_at = excluded.created_at,
  signs_from = excluded.signs_from"""
ADVANCE_SIGNING_KEY: Final = """
UPDATE oidc_signing_keys SET signs_from = $1 WHERE kid = $2 AND signs_from > $1 RETURNING kid"""
PURGE_SIGNING_KEYS: Final = Purge(
    "oidc_signing_keys",
    "alg, generation",
    """EXISTS (SELECT 1 FROM oidc_signing_keys n
  WHERE n.alg = oidc_signing_keys.alg AND n.generation > oidc_signing_keys.generation AND n.signs_from <= $1)""",
)


class SigningKeyQueries(Queries):
    """The keys that sign ID tokens."""

    async def list_signing_keys(self) -> list[SigningKey]:
        """Return all keys, ordered by algorithm and generation."""
        return [SigningKey(*row) for row in await self._database.read(LIST_SIGNING_KEYS)]

    async def create_signing_key(self, key: SigningKey) -> bool:
        """Store a key. Return False if its algorithm has a key of this generation: another node was faster."""
        return bool(await self._database.add(CREATE_SIGNING_KEY, *_values(key, key.generation)))

    async def advance_signing_key(self, kid: str, signs_from: int) -> bool:
        """Make a key sign from an earlier time on. Return False if it already signs from then or earlier."""
        return bool(await self._database.change(ADVANCE_SIGNING_KEY, signs_from, kid))

    async def replace_signing_keys(self, keys: Sequence[SigningKey], entries: Sequence[AuditEntry]) -> None:
        """Erase all keys, store these instead and add `entries` to the audit log, in one transaction.

        Each key gets the generation after the last one of its algorithm. A key that another node stores at the same
        time may stay: it is as new as these.
        """

        async def replace(transaction: Transaction) -> None:
            found = await transaction.lock(LIST_SIGNING_KEYS)
            await transaction.fetch(DELETE_SIGNING_KEYS)
            for key in keys:
                last = max((row[1] for row in found if row[0] == key.alg), default=0)
                await transaction.add(PUT_SIGNING_KEY, *_values(key, last + 1))
            for entry in entries:
                await transaction.add_entry(entry)

        await self._database.in_transaction(replace)

    async def purge_signing_keys(self, replaced_before: int, limit: int) -> int:
        """Erase at most `limit` keys whose successors have signed since `replaced_before` (ms)."""
        return await self._database.purge(PURGE_SIGNING_KEYS, replaced_before, limit)


def _values(key: SigningKey, generation: int) -> Values:
    named = (key.alg, generation, key.kid, key.encrypted_private_key, key.public_jwk)
    return (*named, key.created_at, key.signs_from)
