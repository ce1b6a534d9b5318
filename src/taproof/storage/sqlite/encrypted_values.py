"""All sealed values of a SQLite file."""

from collections.abc import Sequence

import apsw

from taproof.storage.queries.encrypted_values import LIST_SEALED, REPLACE_SEALED, SEALED_COLUMNS, sealed_page
from taproof.storage.sealed_protocol import Replacement, RowKey, SealedKind, SealedPage
from taproof.storage.sqlite.access import SqliteAccess
from taproof.storage.sqlite.group_commit import rows


class SqliteSealed(SqliteAccess):
    """The part of the store that sealed values are walked through. See `storage.sealed_protocol.SealedStorage`."""

    async def list_sealed(self, kind: SealedKind, after: RowKey | None, limit: int) -> SealedPage:
        start = SEALED_COLUMNS[kind].before_all if after is None else after
        return sealed_page(kind, self._read(LIST_SEALED[kind], (*start, limit)), limit)

    async def replace_sealed(self, kind: SealedKind, replacements: Sequence[Replacement]) -> int:
        def write(connection: apsw.Connection) -> int:
            statement = REPLACE_SEALED[kind]
            return sum(len(rows(connection, statement, (each.new, *each.key, each.old))) for each in replacements)

        return int(await self._writer.run(write)) if replacements else 0
