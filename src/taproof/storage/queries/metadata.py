"""What the installation remembers about itself."""

from typing import Final

from taproof.storage.queries.database import AnyDatabase, Queries

READ_MARK: Final = "SELECT value FROM marks WHERE name = $1"
CLAIM_MARK: Final = """
INSERT INTO marks (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = marks.value RETURNING value"""


class MetadataQueries(Queries[AnyDatabase]):
    """See `storage.protocol.MetadataStorage`."""

    async def read_mark(self, name: str) -> bytes | None:
        found = await self._database.read(READ_MARK, name)
        return found[0][0] if found else None

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        kept: bytes = (await self._database.add(CLAIM_MARK, name, value))[0][0]
        return kept
