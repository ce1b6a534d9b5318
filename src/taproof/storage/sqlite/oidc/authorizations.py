"""Sign-ins through the OpenID provider on SQLite."""

from typing import Final

import apsw

from taproof.core.model import SessionKey
from taproof.core.oidc.model import NewCode, NewTokens
from taproof.storage.queries.oidc import authorizations as queries
from taproof.storage.queries.sessions import CONSUME_SESSION
from taproof.storage.sqlite.counts import Counters
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows

_FINISH: Final = f"""
UPDATE oidc_authorizations SET {queries.FINISHED}
  AND EXISTS (SELECT 1 FROM sessions s JOIN projects p ON p.id = s.project_id
    WHERE s.day = $10 AND s.token_hash = $8 AND s.status = 'confirmed')
RETURNING id"""


class SqliteAuthorizations(queries.AuthorizationQueries[SqliteDatabase]):
    """See `storage.protocol.AuthorizationStorage`.

    Args:
        database: reads and writes.
        counters: counts the consumed sessions of a group of writes.
    """

    def __init__(self, database: SqliteDatabase, counters: Counters) -> None:
        super().__init__(database)
        self._counters = counters

    async def finish_authorization(
        self, authorization_id: str, session: SessionKey, now: int, given: NewCode | NewTokens
    ) -> bool:
        values = (*queries.finish_values(authorization_id, session, now, given), session.day)

        def write(connection: apsw.Connection) -> bool:
            if not rows(connection, _FINISH, values):
                return False
            ((project_id, *_),) = rows(connection, CONSUME_SESSION, (now, *session))
            self._counters.add("used", project_id, session.day)
            return True

        return await self._database.writer.run(write)
