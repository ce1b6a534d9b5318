"""The replacement of encrypted values in a SQLite file."""

from collections.abc import Sequence

import apsw

from taproof.storage.protocol import EncryptedKind, Replacement
from taproof.storage.queries import encrypted_values as queries
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows


class SqliteEncryptedValues(queries.EncryptedValueQueries[SqliteDatabase]):
    """See `storage.protocol.EncryptedValueStorage`."""

    async def replace_encrypted_values(self, kind: EncryptedKind, replacements: Sequence[Replacement]) -> int:
        def write(connection: apsw.Connection) -> int:
            statement = queries.REPLACE_ENCRYPTED[kind]
            return sum(len(rows(connection, statement, (each.new, *each.key, each.old))) for each in replacements)

        return await self._database.writer.run(write) if replacements else 0
