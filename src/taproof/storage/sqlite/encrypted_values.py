"""All encrypted values of a SQLite file."""

from collections.abc import Sequence

import apsw

from taproof.storage.encrypted_value_protocol import EncryptedKind, EncryptedPage, Replacement, RowKey
from taproof.storage.queries.encrypted_values import (
    ENCRYPTED_COLUMNS,
    LIST_ENCRYPTED,
    REPLACE_ENCRYPTED,
    encrypted_page,
)
from taproof.storage.sqlite.access import SqliteAccess
from taproof.storage.sqlite.group_commit import rows


class SqliteEncryptedValues(SqliteAccess):
    """Lists and replaces encrypted values, for re-encryption."""

    async def list_encrypted_values(self, kind: EncryptedKind, after: RowKey | None, limit: int) -> EncryptedPage:
        start = ENCRYPTED_COLUMNS[kind].before_all if after is None else after
        return encrypted_page(kind, self._read(LIST_ENCRYPTED[kind], (*start, limit)), limit)

    async def replace_encrypted_values(self, kind: EncryptedKind, replacements: Sequence[Replacement]) -> int:
        def write(connection: apsw.Connection) -> int:
            statement = REPLACE_ENCRYPTED[kind]
            return sum(len(rows(connection, statement, (each.new, *each.key, each.old))) for each in replacements)

        return int(await self._writer.run(write)) if replacements else 0
