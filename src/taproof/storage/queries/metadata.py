"""An installation's named values."""

from typing import Final

from taproof.storage.queries.database import Queries

READ_MARK: Final = "SELECT value FROM metadata WHERE name = $1"
CLAIM_MARK: Final = """
INSERT INTO metadata (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = metadata.value RETURNING value"""
SET_MARK: Final = """
INSERT INTO metadata (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
RETURNING name"""

REPLACE_MARK: Final = "UPDATE metadata SET value = $1 WHERE name = $2 AND value = $3 RETURNING name"


class MetadataQueries(Queries):
    """An installation's named values."""

    async def read_mark(self, name: str) -> bytes | None:
        """Return the value stored under `name`; None if there is none."""
        found = await self._database.read(READ_MARK, name)
        return found[0][0] if found else None

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        """Store `value` under `name` unless a value exists; return the stored value."""
        kept: bytes = (await self._database.add(CLAIM_MARK, name, value))[0][0]
        return kept

    async def set_mark(self, name: str, value: bytes, *, instead_of: bytes | None = None) -> bool:
        """Store `value` under `name`; with `instead_of`, only if that is the stored value. Return whether it was."""
        if instead_of is None:
            return bool(await self._database.add(SET_MARK, name, value))
        return bool(await self._database.change(REPLACE_MARK, value, name, instead_of))
